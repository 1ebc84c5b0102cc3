import { test } from 'vitest';
import { type FoundBinary, findNatsServer } from '../src/local/find.ts';
import { judgeNatsServer } from '../src/wire/capabilities.ts';

/**
 * For tests of clusters: the server that KRONOS_NATS_SERVER names, if it may have replicas, or the newest.
 *
 * @throws ServerNotFound
 */
export async function clusterServer(): Promise<FoundBinary> {
  const { KRONOS_NATS_SERVER: named } = process.env;
  const found = await findNatsServer(named === undefined ? 'newest' : 'any');
  return judgeNatsServer(found.version, 3).verdict === 'refuse' ? await findNatsServer('newest') : found;
}

/** The server, or the reason that there is none. */
const server = await clusterServer().catch((error: Error) => error.message);

/** Tests on {@link clusterServer}. They are skipped, with the reason, on a machine that has none and cannot fetch or build one. */
export function onNewest(what: string, tests: (server: FoundBinary) => void): void {
  if (typeof server === 'string') test.skip(`${what}: ${server}`);
  else tests(server);
}
