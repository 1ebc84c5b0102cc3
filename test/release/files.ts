import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
/** Debian's name of this machine's architecture. */
export const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

/** Makes the files of a release in a directory; with KRONOS_RELEASE, a directory that has them, takes those. */
export function makeRelease(directory: string, architectures: string): void {
  const made = process.env.KRONOS_RELEASE;
  if (made !== undefined) {
    cpSync(made, directory, { recursive: true });
    return;
  }
  const args = [join(root, 'scripts/run.mjs'), 'release', directory, '--arch', architectures];
  execFileSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'], maxBuffer: 2 ** 26 });
}
