/** Debian systems of their own: made by debootstrap, booted by systemd-nspawn. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '@kronos/clock/testing';
import { cacheDir, intoCache, onPath, unpackDebian, withLibraries } from '@kronos/eventlog/testing';

const run = promisify(execFile);
const MINUTE = 60_000;
const SECOND = 1000;

/** Why no system can be booted here; null when one can. */
export const noMachines = (): string | null => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'a system is booted by root on Linux only';
  return onPath('apt-get', process.env) === null ? 'only Debian and Ubuntu have apt-get and debootstrap' : null;
};

/** A command of Debian: the machine's, or that of the package, unpacked into the cache. `env` is its environment. */
export async function tool(
  name: string,
  packaged: string,
): Promise<{ readonly path: string; readonly env: NodeJS.ProcessEnv }> {
  const installed = onPath(name, process.env, ['/usr/sbin']);
  if (installed !== null) return { path: installed, env: process.env };
  const kept = join(cacheDir(), packaged);
  const directory = existsSync(kept)
    ? kept
    : await unpackDebian(process.env, packaged, { packages: [packaged], dependencies: true });
  const path = ['usr/bin', 'usr/sbin'].map((bin) => join(directory, bin, name)).find((each) => existsSync(each));
  if (path === undefined) throw new Error(`${packaged} has no ${name}`);
  const env = { ...process.env, DEBOOTSTRAP_DIR: join(directory, 'usr/share/debootstrap') };
  return { path, env: withLibraries(env, directory) };
}

/** The mirror and the release of this machine, from its own package lists. */
async function mirror(): Promise<{ readonly uri: string; readonly codename: string }> {
  const { stdout } = await run('apt-get', [
    'indextargets',
    '--format',
    '$(REPO_URI) $(CODENAME) $(COMPONENT)',
    'Created-By: Packages',
  ]);
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const targets = stdout.split('\n').map((line) => line.split(' '));
  const uri = targets.find(([, name, component]) => name === codename && component === 'main')?.[0];
  if (codename === undefined || uri === undefined)
    throw new Error('apt knows no package list of this release: run apt-get update');
  return { uri, codename };
}

/** systemd, and what the Debian package of Kronos depends on: a booted system reaches no mirror. */
const PACKAGES = ['systemd', 'systemd-sysv', 'dbus', 'libatomic1', 'libstdc++6', 'ca-certificates'];

/** The directory of a small Debian system, kept in the cache. */
export async function debianTree(): Promise<string> {
  const { uri, codename } = await mirror();
  const entry = `system-${codename}`;
  const kept = join(cacheDir(), entry);
  if (existsSync(kept)) return kept;
  const { path, env } = await tool('debootstrap', 'debootstrap');
  return await intoCache(process.env, entry, async (draft) => {
    const args = ['--variant=minbase', `--include=${PACKAGES.join(',')}`, codename, draft, uri];
    await run(path, args, { env, timeout: 15 * MINUTE, maxBuffer: 2 ** 26 });
    // Its users other than root enter it too.
    chmodSync(draft, 0o755);
  });
}

/** A copy of a system with lintian, kept in the cache. */
export async function lintianTree(system: string): Promise<string> {
  const entry = `${basename(system)}-lintian`;
  const kept = join(cacheDir(), entry);
  if (existsSync(kept)) return kept;
  return await intoCache(process.env, entry, async (draft) => {
    await run('cp', ['-a', '--reflink=auto', `${system}/.`, draft]);
    copyFileSync('/etc/resolv.conf', join(draft, 'etc/resolv.conf'));
    const script = 'apt-get update -q && apt-get install -yq --no-install-recommends lintian';
    const env = Object.fromEntries(ENVIRONMENT.map((line) => line.split('=')));
    await run('chroot', [draft, 'sh', '-ec', script], { env, timeout: 15 * MINUTE, maxBuffer: 2 ** 26 });
  });
}

export type Machine = {
  /** Its root, seen from outside. */
  readonly directory: string;
  /** Runs a script as root; gives what it prints. @throws Error with its output when it fails */
  readonly run: (script: string) => Promise<string>;
  readonly stop: () => Promise<void>;
};

/** Boots a copy of a system. It has a network of its own with a loopback interface alone. */
export async function boot(tree: string, directory: string): Promise<Machine> {
  await run('cp', ['-a', '--reflink=auto', tree, directory]);
  const { path, env } = await tool('systemd-nspawn', 'systemd-container');
  const flags = ['--quiet', '--register=no', '--keep-unit', '--private-network', '--boot', '-D', directory];
  const nspawn = spawn(path, [...flags, `--machine=kronos-${process.pid}`], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let console = '';
  for (const stream of [nspawn.stdout, nspawn.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      console = (console + text).slice(-4000);
    });
  const ended = new Promise<void>((resolve) => nspawn.once('exit', () => resolve()));
  const inside = async (script: string): Promise<string> => {
    const args = ['-t', String(init(nspawn)), '-a', '--root', '--wd', '--', 'env', '-i', ...ENVIRONMENT];
    try {
      const { stdout } = await run('nsenter', [...args, 'bash', '-ec', `cd /root\n${script}`], {
        timeout: 10 * MINUTE,
        maxBuffer: 2 ** 26,
      });
      return stdout;
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      throw new Error(`${script}\n${stdout}${stderr}`, { cause: error });
    }
  };
  const stop = async (): Promise<void> => {
    nspawn.kill('SIGTERM');
    const hard = setTimeout(() => nspawn.kill('SIGKILL'), MINUTE);
    await ended;
    clearTimeout(hard);
    rmSync(directory, { recursive: true, force: true });
  };
  const isUp = async (): Promise<boolean> => {
    if (nspawn.exitCode !== null) throw new Error(`the system ended:\n${console}`);
    const state = await inside('systemctl is-system-running || true').catch(() => '');
    return /running|degraded/.test(state);
  };
  try {
    await until(isUp, 5 * MINUTE, () => `a system that is up; its console:\n${console}`, SECOND);
  } catch (error) {
    await stop();
    throw error;
  }
  return { directory, run: inside, stop };
}

const ENVIRONMENT = [
  'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  'HOME=/root',
  'DEBIAN_FRONTEND=noninteractive',
];

/** The process id, outside, of the system's first process. */
function init(nspawn: ChildProcess): number {
  const children = readFileSync(`/proc/${nspawn.pid}/task/${nspawn.pid}/children`, 'utf8').trim().split(' ');
  return Number(children[0]);
}
