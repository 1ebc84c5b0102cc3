import { execFileSync } from 'node:child_process';
import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { architecture, releaseFiles } from './files.ts';
import { debianTree, lintianTree, noMachines } from './machine.ts';

const none = noMachines();
if (none !== null) console.warn(`skipped: lintian does not check the Debian package; ${none}`);

it.skipIf(none !== null)('lintian finds no error and no warning in the Debian package', async () => {
  const files = releaseFiles();
  const name = readdirSync(files).find((each) => each.endsWith(`${architecture}.deb`)) ?? '';
  const tree = await lintianTree(await debianTree());
  copyFileSync(join(files, name), join(tree, 'tmp', name));
  try {
    const args = [tree, 'lintian', '--allow-root', '--fail-on', 'error,warning', join('/tmp', name)];
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/tmp' };
    expect(execFileSync('chroot', args, { encoding: 'utf8', env })).toBe('');
  } finally {
    rmSync(join(tree, 'tmp', name));
  }
});
