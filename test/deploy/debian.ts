/** Programs from Debian's packages, unpacked into the cache: nothing is installed, no service is started. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kronos');

/** Libraries that must be those of the machine. */
const OF_THE_MACHINE = /^(libc6|libgcc-s1|libcrypt1|libstdc\+\+6|gcc-.*-base)$/;

export type Unpacked = {
  readonly root: string;
  /** Environment in which its programs find their libraries. */
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** The packages with the libraries that they depend on, or why they cannot be had. */
export async function unpackDebian(name: string, packages: readonly string[]): Promise<Unpacked | string> {
  const root = join(cache, `${name}-debian`);
  if (!existsSync(root)) {
    mkdirSync(cache, { recursive: true });
    const draft = mkdtempSync(join(cache, `draft-${name}-`));
    try {
      const names = [...packages, ...(await libraries(packages))];
      const download = () => run('apt-get', ['download', ...names], { cwd: draft, timeout: 240_000 });
      await download().catch(async () => {
        // A fresh machine knows no packages yet.
        await run('apt-get', ['update'], { timeout: 240_000 });
        await download();
      });
      for (const deb of readdirSync(draft).filter((file) => file.endsWith('.deb'))) {
        await run('dpkg-deb', ['-x', join(draft, deb), draft], { timeout: 60_000 });
        rmSync(join(draft, deb));
      }
      renameSync(draft, root);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      return `${packages.join(', ')} cannot be unpacked: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  const { stdout } = await run('find', [root, '-name', '*.so*', '-printf', '%h\n']);
  const path = [...new Set(stdout.trim().split('\n'))].filter((directory) => directory !== '').join(':');
  return { root, env: { ...process.env, ...(path === '' ? {} : { LD_LIBRARY_PATH: path }) } };
}

/** Library packages that these depend on, directly or through each other. */
async function libraries(packages: readonly string[]): Promise<string[]> {
  const without = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map(
    (word) => `--no-${word}`,
  );
  const { stdout } = await run('apt-cache', ['depends', '--recurse', ...without, ...packages], { maxBuffer: 2 ** 24 });
  const names = stdout.split('\n').filter((line) => /^lib[\w.+-]+$/.test(line) && !OF_THE_MACHINE.test(line));
  return [...new Set(names)].filter((each) => !packages.includes(each));
}
