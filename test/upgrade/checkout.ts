import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { here } from '../e2e/command.ts';

const run = promisify(execFile);

/**
 * The files of a commit with their own dependencies, under this directory.
 *
 * @throws where the clone has no such commit, as a shallow one
 */
export async function checkOut(commit: string, under: string): Promise<string> {
  const root = join(under, commit);
  if (existsSync(root)) return root;
  const making = `${root}.making`;
  await rm(making, { recursive: true, force: true });
  await mkdir(making, { recursive: true });
  await run('sh', ['-c', `git -C "$1" archive "$2" | tar -x -C "$3"`, 'sh', here, commit, making]);
  await run('npm', ['ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: making });
  await rename(making, root);
  return root;
}
