/** Programs from Debian's packages, unpacked into the cache: nothing is installed, no service is started, no root is needed. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { intoCache } from './cache.ts';

const run = promisify(execFile);

export type DebianPackages = {
  readonly packages: readonly string[];
  /** Also those dependencies that this machine does not have. */
  readonly dependencies?: boolean;
  /** A package list to use in place of the machine's, as in sources.list. */
  readonly sources?: string;
};

/** Libraries that must be those of the machine: its dynamic linker belongs to them. */
const OF_THE_MACHINE = /^(libc6|libgcc-s1|libcrypt1|libstdc\+\+6|gcc-.*-base)_/;

/**
 * Downloads packages with apt-get, which checks their digests, and unpacks them.
 *
 * @returns the directory of the cache; it holds `usr/bin` and so on
 * @throws Error when apt-get or dpkg-deb is missing, or when they cannot get the packages
 */
export const unpackDebian = (env: NodeJS.ProcessEnv, name: string, wanted: DebianPackages): Promise<string> =>
  intoCache(env, name, async (draft) => {
    const state = mkdtempSync(join(tmpdir(), 'kronos-apt-'));
    try {
      const archives = await download(state, wanted);
      for (const deb of readdirSync(archives).filter((file) => file.endsWith('.deb') && !OF_THE_MACHINE.test(file)))
        await run('dpkg-deb', ['-x', join(archives, deb), draft], { timeout: 120_000 });
    } finally {
      rmSync(state, { recursive: true, force: true });
    }
  });

/**
 * Packages of Debian's development release, from the mirror that this machine uses for its own packages.
 *
 * @returns the directory of the cache, or null where the machine has no mirror of Debian
 * @throws Error as {@link unpackDebian}
 */
export async function unpackNewerDebian(
  env: NodeJS.ProcessEnv,
  name: string,
  packages: readonly string[],
): Promise<string | null> {
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages']);
  const mirror = stdout.split('\n').find((uri) => /\/debian\/?$/.test(uri));
  return mirror === undefined ? null : await unpackDebian(env, name, { packages, sources: `deb ${mirror} sid main` });
}

/** Downloads into a directory below `state`, and gives it. */
async function download(state: string, { packages, dependencies = false, sources }: DebianPackages): Promise<string> {
  const archives = join(state, 'archives');
  const lists = join(state, 'lists');
  for (const directory of [join(archives, 'partial'), lists]) mkdirSync(directory, { recursive: true });
  const apt = (options: readonly string[], ...args: readonly string[]) =>
    run('apt-get', [...options.flatMap((option) => ['-o', option]), ...args], { cwd: archives, timeout: 240_000 });
  const what = dependencies
    ? ['--yes', '--no-install-recommends', '--download-only', 'install', ...packages]
    : ['download', ...packages];
  // apt-get keeps what it fetches to itself: it needs no root then, and the machine stays as it is.
  const own = [`Dir::Cache::archives=${archives}`, 'Debug::NoLocking=1', 'APT::Sandbox::User='];
  const fresh = async () => {
    const list = join(state, 'sources.list');
    if (sources !== undefined) writeFileSync(list, `${sources}\n`);
    const from = sources === undefined ? [] : [`Dir::Etc::sourcelist=${list}`, 'Dir::Etc::sourceparts=-'];
    const options = [...own, `Dir::State::lists=${lists}`, `Dir::Cache=${state}`, ...from];
    await apt(options, 'update');
    await apt(options, ...what);
  };
  // A fresh machine knows no packages yet.
  if (sources === undefined) await apt(own, ...what).catch(fresh);
  else await fresh();
  return archives;
}

/** An environment in which unpacked programs find the libraries that were unpacked with them. */
export function withLibraries(env: NodeJS.ProcessEnv, root: string): NodeJS.ProcessEnv {
  const files = readdirSync(root, { recursive: true, withFileTypes: true });
  const directories = files.filter(({ name }) => /\.so(\.|$)/.test(name)).map(({ parentPath }) => parentPath);
  return directories.length === 0 ? env : { ...env, LD_LIBRARY_PATH: [...new Set(directories)].join(':') };
}
