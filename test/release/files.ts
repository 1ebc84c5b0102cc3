import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
/** Debian's name of this machine's architecture. */
export const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
/** The variable of the environment with the directory that setup.ts makes. */
export const MADE_BY_TESTS = 'KRONOS_RELEASE_OF_TESTS';

const makeRelease = (directory: string): void => {
  const args = [join(root, 'scripts/run.mjs'), 'release', directory];
  execFileSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'], maxBuffer: 2 ** 26 });
};

/** The directory with the files of a release: KRONOS_RELEASE, which has them already, or one that is made once in a run. */
export function releaseFiles(): string {
  const directory = process.env.KRONOS_RELEASE ?? process.env[MADE_BY_TESTS];
  if (directory === undefined) throw new Error('setup.ts did not run');
  if (!existsSync(join(directory, 'SHA256SUMS'))) makeRelease(directory);
  return directory;
}
