/** Programs that were fetched for the demo and the tests, one directory each. */
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where fetched programs are kept: `${XDG_CACHE_HOME:-~/.cache}/kronos`. */
export const cacheDir = (env: NodeJS.ProcessEnv = process.env): string =>
  join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kronos');

/** Fills a directory of the cache in one step: two processes may do so at once, and one may be killed. */
export async function intoCache(
  env: NodeJS.ProcessEnv,
  name: string,
  fill: (dir: string) => Promise<void>,
): Promise<string> {
  const target = join(cacheDir(env), name);
  mkdirSync(cacheDir(env), { recursive: true });
  const draft = mkdtempSync(join(cacheDir(env), `draft-${name}-`));
  try {
    await fill(draft);
    rmSync(target, { recursive: true, force: true });
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw error;
  }
  return target;
}
