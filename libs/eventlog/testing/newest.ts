import { test } from 'vitest';
import { type FoundServer, findNatsServer } from '../src/local/find.ts';

/** The newest server that this machine has or gets; else the reason that there is none. */
const newest = await findNatsServer('newest').catch((error: Error) => error.message);

/** Tests on the newest server. They are skipped, with the reason, on a machine that has none and cannot fetch or build one. */
export function onNewest(what: string, tests: (server: FoundServer) => void): void {
  if (typeof newest === 'string') test.skip(`${what}: ${newest}`);
  else tests(newest);
}
