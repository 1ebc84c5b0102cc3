import { statSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

/**
 * Lets Node keep what it compiled for the next start: that costs less than half the CPU. The directory is the user's own
 * (`${XDG_CACHE_HOME:-~/.cache}/kronos/compiled`): a user who can write there decides what runs, so a home of another user, as
 * with some forms of sudo, is not used, and neither is a directory that all may write to. Without a cache all works the same.
 */
export function keepCompiled(env: Readonly<Record<string, string | undefined>>): void {
  const base = env.XDG_CACHE_HOME || (env.HOME === undefined || env.HOME === '' ? '' : join(env.HOME, '.cache'));
  try {
    const { uid, mode } = statSync(base);
    if (uid === process.getuid?.() && (mode & 0o022) === 0) enableCompileCache(join(base, 'kronos', 'compiled'));
  } catch {
    // There is no home, or it has no cache.
  }
}
