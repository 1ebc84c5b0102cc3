import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '@kronos/clock/testing';
import { freePorts } from '@kronos/eventlog/testing';

const run = promisify(execFile);

const runs = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/**
 * A program of Prometheus: from the PATH, or from the distribution's package, unpacked into the cache. Null where neither
 * can be had.
 */
export async function findPrometheus(program: 'prometheus' | 'promtool'): Promise<string | null> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kronos');
  const places = [...(process.env.PATH ?? '').split(delimiter), join(cache, 'prometheus-debian', 'usr/bin')];
  const found = () => places.map((place) => join(place, program)).find(runs) ?? null;
  if (found() !== null) return found();
  mkdirSync(cache, { recursive: true });
  const draft = mkdtempSync(join(cache, 'draft-prometheus-'));
  try {
    await run('apt-get', ['download', 'prometheus'], { cwd: draft, timeout: 120_000 });
    const [deb = ''] = readdirSync(draft).filter((file) => file.endsWith('.deb'));
    await run('dpkg-deb', ['-x', join(draft, deb), draft], { timeout: 60_000 });
    rmSync(join(draft, deb));
    rmSync(join(cache, 'prometheus-debian'), { recursive: true, force: true });
    renameSync(draft, join(cache, 'prometheus-debian'));
  } catch {
    rmSync(draft, { recursive: true, force: true });
  }
  return found();
}

export type Target = { readonly job: string; readonly address: string };

/** A Prometheus of its own that scrapes the targets every second. */
export async function startPrometheus(
  program: string,
  targets: readonly Target[],
  more: readonly string[] = [],
): Promise<{ url: string; stop: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-prometheus-'));
  const [port = 0] = await freePorts(1);
  const jobs = [...new Set(targets.map(({ job }) => job))].map((job) => ({
    job_name: job,
    static_configs: [{ targets: targets.filter((t) => t.job === job).map((t) => t.address) }],
  }));
  const file = join(directory, 'prometheus.yml');
  writeFileSync(file, JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: jobs }));
  const child: ChildProcess = spawn(
    program,
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      ...more,
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
    await until(ready, 60_000, 'prometheus to be ready');
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}
