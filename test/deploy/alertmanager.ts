import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@kronos/clock/testing';
import { cacheDir, freePorts, unpackDebian } from '@kronos/eventlog/testing';
import { endProcess } from '../../libs/cli/src/demo/serviceProcess.ts';

const CACHED = 'alertmanager-debian';
const place = join(cacheDir(), CACHED);
/** It reads templates only from /usr/share, so it runs in its own mount namespace with the package's templates there. */
const ALONE = [
  '-rm',
  'sh',
  '-c',
  'mount --bind "$0/usr/share" /usr/share && exec "$0/usr/bin/prometheus-alertmanager" "$@"',
];

/** Why Debian's Alertmanager cannot run here; null where it can. */
export async function noAlertmanager(): Promise<string | null> {
  if (!existsSync(join(place, 'usr/bin/prometheus-alertmanager'))) {
    const trouble = await unpackDebian(process.env, CACHED, { packages: ['prometheus-alertmanager'] }).then(
      () => null,
      (error: unknown) => `prometheus-alertmanager cannot be unpacked: ${String(error)}`,
    );
    if (trouble !== null) return trouble;
  }
  return spawnSync('unshare', ['-rm', 'true']).status === 0
    ? null
    : 'this machine allows no mount namespaces, which the package needs where it is not installed';
}

export type Alert = {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startsAt: string;
  readonly status: { readonly state: string };
};

/** An Alertmanager of its own that tells nobody. */
export async function startAlertmanager(): Promise<{
  readonly url: string;
  /** The alerts that have begun and not ended. */
  readonly active: () => Promise<Alert[]>;
  readonly stop: () => Promise<void>;
}> {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-alertmanager-'));
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const file = join(directory, 'alertmanager.yml');
  writeFileSync(file, JSON.stringify({ route: { receiver: 'none' }, receivers: [{ name: 'none' }] }));
  const args = [
    `--config.file=${file}`,
    `--storage.path=${join(directory, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
  ];
  const child: ChildProcess = spawn('unshare', [...ALONE, place, ...args], { stdio: 'ignore' });
  const stop = async () => {
    await endProcess(child);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await until(
      async () => (await fetch(`${url}/-/ready`).catch(() => null))?.ok,
      undefined,
      'alertmanager to be ready',
    );
  } catch (error) {
    await stop();
    throw error;
  }
  const active = async () => (await fetch(`${url}/api/v2/alerts`).then((response) => response.json())) as Alert[];
  return { url, active, stop };
}
