/** An earlier version of Kronos beside this one: its sources, from the commit. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The last commit of 0.1.0. */
export const COMMIT_OF_0_1_0 = '85727f0';

const has = (commit: string): boolean => {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** Why the sources of a commit cannot be had; null: they can. A shallow clone has no old commits. */
export const missing = (commit: string): string | null =>
  has(commit) ? null : `this clone has no commit ${commit}: git fetch --unshallow`;

/**
 * Unpacks the sources of a commit into a new directory, on today's installed dependencies.
 *
 * @returns the path of a service's program there
 */
export function checkOut(commit: string, directory: string): (service: string) => string {
  mkdirSync(directory);
  const tar = execFileSync('git', ['archive', commit, 'package.json', 'libs', 'services', 'docs/runbook.md'], {
    cwd: root,
    maxBuffer: 2 ** 28,
  });
  execFileSync('tar', ['-x', '-C', directory], { input: tar });
  const modules = join(directory, 'node_modules');
  mkdirSync(join(modules, '@kronos'), { recursive: true });
  for (const name of readdirSync(join(root, 'node_modules')))
    if (name !== '@kronos') symlinkSync(join(root, 'node_modules', name), join(modules, name));
  // The rooms of the workspace are links to this version's: there they lead to the other's.
  const rooms = join(root, 'node_modules/@kronos');
  for (const name of readdirSync(rooms)) {
    const to = readlinkSync(join(rooms, name));
    if (existsSync(join(rooms, to).replace(root, `${directory}/`))) symlinkSync(to, join(modules, '@kronos', name));
  }
  return (service) => join(directory, 'services', service, 'src/main.ts');
}
