import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { architecture, makeRelease } from './files.ts';
import { debianTree, lintianTree, noMachines } from './machine.ts';

const none = noMachines();
if (none !== null) console.warn(`skipped: lintian does not check the Debian package; ${none}`);

const directory = mkdtempSync(join(tmpdir(), 'kronos-lintian-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it.skipIf(none !== null)('lintian finds no error and no warning in the Debian package', async () => {
  const files = join(directory, 'release');
  makeRelease(files, architecture);
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
