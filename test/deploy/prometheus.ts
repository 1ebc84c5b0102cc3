import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@kronos/clock/testing';
import { cacheDir, freePorts, onPath, unpackDebian } from '@kronos/eventlog/testing';

const CACHED = 'prometheus-debian';

/**
 * A program of Prometheus: from the PATH, or from the distribution's package, unpacked into the cache. Null where neither
 * can be had.
 */
export async function findPrometheus(program: 'prometheus' | 'promtool'): Promise<string | null> {
  const cached = join(cacheDir(), CACHED, 'usr/bin');
  const found = () => onPath(program, process.env, [cached]);
  if (found() === null && !existsSync(cached))
    await unpackDebian(process.env, CACHED, { packages: ['prometheus'] }).catch(() => null);
  return found();
}

/** `instance`: what the label of that name says, where it is not the address. */
export type Target = { readonly job: string; readonly address: string; readonly instance?: string };

/**
 * A Prometheus of its own that scrapes the targets every second.
 *
 * @param more `past`: a file in the format of OpenMetrics, with what it has scraped before; `remoteRead`: the URL of a store that
 * every query reads, too; `rules`: alerts and records, evaluated every second; `alertmanager`: the address that gets the alerts.
 */
export async function startPrometheus(
  program: string,
  targets: readonly Target[],
  args: readonly string[] = [],
  more: {
    readonly past?: string;
    readonly remoteRead?: string;
    readonly rules?: object;
    readonly alertmanager?: string;
  } = {},
): Promise<{ url: string; stop: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-prometheus-'));
  const [port = 0] = await freePorts(1);
  const jobs = [...new Set(targets.map(({ job }) => job))].map((job) => ({
    job_name: job,
    static_configs: targets
      .filter((target) => target.job === job)
      .map(({ address, instance }) => ({
        targets: [address],
        ...(instance === undefined ? {} : { labels: { instance } }),
      })),
  }));
  const file = join(directory, 'prometheus.yml');
  const remote = more.remoteRead === undefined ? {} : { remote_read: [{ url: more.remoteRead, read_recent: true }] };
  const told = { alertmanagers: [{ static_configs: [{ targets: [more.alertmanager] }] }] };
  const settings = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    scrape_configs: jobs,
    ...remote,
    ...(more.rules === undefined ? {} : { rule_files: [join(directory, 'rules.yml')] }),
    ...(more.alertmanager === undefined ? {} : { alerting: told }),
  };
  writeFileSync(file, JSON.stringify(settings));
  writeFileSync(join(directory, 'rules.yml'), JSON.stringify(more.rules ?? {}));
  if (more.past !== undefined) {
    const promtool = await findPrometheus('promtool');
    execFileSync(promtool ?? 'promtool', [
      'tsdb',
      'create-blocks-from',
      'openmetrics',
      more.past,
      join(directory, 'data'),
    ]);
  }
  const child: ChildProcess = spawn(
    program,
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      ...args,
    ],
    { stdio: 'ignore' },
  );
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.kill('SIGTERM')) await gone;
    rmSync(directory, { recursive: true, force: true });
  };
  const ready = async () => (await fetch(`${url}/-/ready`).catch(() => null))?.ok;
  try {
    await until(ready, undefined, 'prometheus to be ready');
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}
