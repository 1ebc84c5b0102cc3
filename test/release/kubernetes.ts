/** A Kubernetes of one node on this machine: etcd and containerd of Debian's packages, the rest built with Go. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from '@kronos/clock/testing';
import { cacheDir, unpackDebian } from '@kronos/eventlog/testing';
import { noMachines } from './machine.ts';

const run = promisify(execFile);
const MINUTE = 60_000;
/** Addresses for tests of network devices (RFC 2544), which no network uses. */
const ADDRESS = '198.18.77.1';
const BRIDGE = 'kronos-node';
const PACKAGES = ['etcd-server', 'containerd', 'runc', 'containernetworking-plugins', 'catatonit'];
const binaries = join(cacheDir(), 'gobin', 'kubernetes');

/** Why there is no Kubernetes here; null when one can be started. */
export const noKubernetes = (): string | null =>
  noMachines() ??
  (existsSync(binaries)
    ? null
    : 'there is no Kubernetes; with Go, `node scripts/run.mjs node scripts/goTools.ts kubernetes` builds it');

export type Kubernetes = {
  /** The environment of its administrator's commands. */
  readonly env: NodeJS.ProcessEnv;
  /** The address of this machine for pods. */
  readonly address: string;
  readonly stop: () => Promise<void>;
};

/** The control groups of its pods: one for each controller in version 1, one for all in version 2. */
const controlGroups = (): string[] => {
  const top = '/sys/fs/cgroup';
  const hierarchies = existsSync(join(top, 'cgroup.controllers')) ? [''] : readdirSync(top);
  return hierarchies.map((hierarchy) => join(top, hierarchy, BRIDGE));
};

/**
 * Starts it with the images of an archive in a directory of its own.
 *
 * @throws Error with what its programs wrote last when it does not come up
 */
export async function startKubernetes(directory: string, images: string): Promise<Kubernetes> {
  const kept = join(cacheDir(), 'node-debian');
  const programs = existsSync(kept) ? kept : await unpackDebian(process.env, 'node-debian', { packages: PACKAGES });
  // A run that was killed has left its bridge.
  await run('ip', ['link', 'delete', BRIDGE]).catch(() => undefined);
  await run('ip', ['link', 'add', BRIDGE, 'type', 'bridge']);
  await run('ip', ['address', 'add', `${ADDRESS}/24`, 'dev', BRIDGE]);
  await run('ip', ['link', 'set', BRIDGE, 'up']);
  for (const group of controlGroups()) mkdirSync(group, { recursive: true });
  const script = fileURLToPath(new URL('node', import.meta.url));
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const node = spawn('unshare', [...namespaces, script, directory, ADDRESS, programs, binaries, images], {
    stdio: 'ignore',
  });
  const env = {
    ...process.env,
    PATH: [binaries, process.env.PATH].join(delimiter),
    KUBECONFIG: join(directory, 'kubeconfig'),
  };
  const stop = async () => {
    await ended(node);
    await run('ip', ['link', 'delete', BRIDGE]);
    await until(removed, 2 * MINUTE, 'the end of the control groups');
  };
  const isReady = async (): Promise<boolean> => {
    if (hasEnded(node)) throw new Error('a program of Kubernetes ended');
    const look = run('kubectl', ['wait', '--for=condition=Ready', 'node/node', '--timeout=1s'], { env });
    return await look.then(
      () => true,
      () => false,
    );
  };
  try {
    await until(isReady, 10 * MINUTE, 'a node that is ready', 1000);
  } catch (error) {
    const logs = globSync(join(directory, '*.log')).map((log) => `${log}\n${readFileSync(log, 'utf8').slice(-1000)}`);
    await stop();
    throw new Error(logs.join('\n'), { cause: error });
  }
  return { env, address: ADDRESS, stop };
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null;

/** Ends it and all that it started, which shares its namespace of processes. */
async function ended(node: ChildProcess): Promise<void> {
  if (hasEnded(node)) return;
  const exit = new Promise((resolve) => node.once('exit', resolve));
  node.kill('SIGKILL');
  await exit;
}

/** Removes the control groups; false until none is left, which takes until the last of their processes has ended. */
async function removed(): Promise<boolean> {
  const groups = controlGroups().filter((group) => existsSync(group));
  if (groups.length === 0) return true;
  await run('find', [...groups, '-depth', '-type', 'd', '-delete']).catch(() => undefined);
  return false;
}
