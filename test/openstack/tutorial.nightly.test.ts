/** The first hour on a real cloud: docs/tutorial.md word for word, with real exporters, from kronos init to a true plan in dry run. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { freePorts } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findExporters, libvirtNode, runExporters } from '../deploy/exporters.ts';
import { findPrometheus, startPrometheus } from '../deploy/prometheus.ts';
import { followTutorial, shownOutput } from '../deploy/tutorial.ts';
import { runKronos } from '../e2e/command.ts';
import { bed, bedUrls } from './urls.ts';

/** The second aggregate is balanced. It also has the computes of the second cell, which exists only in the nightly cloud. */
const AGGREGATES = {
  'kronos-east': ['cmp1', 'cmp2', 'cmp3'],
  'kronos-west': ['cmp4', 'cmp5', 'cmp6', 'cmp101', 'cmp102'],
};
/** Number of servers per host at the start. */
const SERVERS: Readonly<Record<string, number>> = {
  cmp1: 5,
  cmp2: 1,
  cmp3: 1,
  cmp4: 1,
  cmp5: 1,
  cmp6: 1,
  cmp101: 1,
  cmp102: 1,
};
const HOSTS = Object.keys(SERVERS);
const CPUS = 8;
const MEMORY_KIB = 16 * 1024 ** 2;

const prometheus = await findPrometheus('prometheus');
const exporters = await findExporters();

/** The /proc of a host whose servers use one CPU each. node_exporter reads it. */
class Kernel {
  readonly #started = Date.now();
  readonly #directory: string;
  readonly #busy: number;

  constructor(directory: string, busy: number) {
    this.#directory = directory;
    this.#busy = busy;
    mkdirSync(directory);
  }

  /** @param backSeconds how long ago */
  write(backSeconds = 0): void {
    // In ticks of 10 ms, from a day on.
    const ticks = 8.64e6 + (Date.now() - this.#started) / 10 - backSeconds * 100;
    const lines = Array.from({ length: CPUS }, (_, i) => {
      const user = Math.round(i < this.#busy ? ticks : 0);
      return `cpu${i} ${user} 0 0 ${Math.round(ticks - user)} 0 0 0 0 0 0`;
    });
    const free = MEMORY_KIB - this.#busy * 1024 ** 2;
    writeFileSync(join(this.#directory, 'stat'), `cpu  0 0 0 0 0 0 0 0 0 0\n${lines.join('\n')}\nbtime 1\n`);
    writeFileSync(
      join(this.#directory, 'meminfo'),
      `MemTotal: ${MEMORY_KIB} kB\nMemFree: ${free} kB\nMemAvailable: ${free} kB\n`,
    );
  }
}

const COUNTERS = ['node_cpu_seconds_total', 'libvirt_domain_info_cpu_time_seconds_total'];
const STEP_SECONDS = 15;

/**
 * The counters of the last minutes as OpenMetrics, from the real exporters: node_exporter reads the kernel of then, and each CPU
 * of libvirt's test driver is always busy.
 */
async function pastOf(
  targets: readonly { readonly job: string; readonly address: string; readonly instance: string }[],
  kernels: readonly Kernel[],
): Promise<string> {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const samples = new Map(COUNTERS.map((name) => [name, [] as string[]]));
  for (let back = 24 * STEP_SECONDS; back > 0; back -= STEP_SECONDS) {
    for (const kernel of kernels) kernel.write(back);
    const answers = await Promise.all(
      targets.map(async (target) => {
        const get = async () => (await fetch(`http://${target.address}/metrics`).catch(() => null))?.text();
        return { target, text: await until(get, 60_000, `the exporter ${target.instance}`) };
      }),
    );
    for (const { target, text } of answers)
      for (const [, name = '', labels = '', value = ''] of text.matchAll(/^(\w+_total)\{(.*)\} (\S+)$/gm)) {
        const seconds = target.job === 'libvirt' ? Number(value) - back : Number(value);
        const own = `${labels},job="${target.job}",instance="${target.instance}"`;
        samples.get(name)?.push(`${name}{${own}} ${seconds} ${nowSeconds - back}`);
      }
  }
  const families = [...samples].flatMap(([name, lines]) => [`# TYPE ${name.replace(/_total$/, '')} counter`, ...lines]);
  return `${families.join('\n')}\n# EOF\n`;
}

describe('docs/tutorial.md on a real OpenStack, with a real Prometheus and real exporters', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-tutorial-'));
  const clouds = join(directory, 'clouds.yaml');
  const running = runExporters(exporters);
  let endKernels = (): void => {};
  let metrics: Awaited<ReturnType<typeof startPrometheus>>;

  beforeAll(async () => {
    expect(prometheus, 'there is no prometheus, and its package cannot be downloaded').not.toBeNull();
    await bed('reset');
    for (const [name, members] of Object.entries(AGGREGATES)) await bed('aggregate', name, ...members);
    const boots = Object.entries(SERVERS).map(([host, count]) => bed('servers', String(count), host));
    await Promise.all(boots);
    const { servers } = JSON.parse(await bed('api', 'GET', '/servers/detail?all_tenants=1')) as {
      servers: { id: string; 'OS-EXT-SRV-ATTR:host': string; 'OS-EXT-SRV-ATTR:instance_name': string }[];
    };
    const auth = {
      auth_url: bedUrls.identity,
      username: 'admin',
      password: 'secret',
      project_name: 'admin',
      user_domain_id: 'default',
      project_domain_id: 'default',
    };
    writeFileSync(clouds, JSON.stringify({ clouds: { lab: { auth, region_name: 'RegionOne' } } }));
    const ports = await freePorts(2 * HOSTS.length);
    const written: Kernel[] = [];
    const targets = HOSTS.flatMap((host, i) => {
      const node = `127.0.0.1:${ports[2 * i]}`;
      const libvirt = `127.0.0.1:${ports[2 * i + 1]}`;
      const own = servers.filter((one) => one['OS-EXT-SRV-ATTR:host'] === host);
      const kernel = new Kernel(join(directory, host), own.length);
      kernel.write();
      written.push(kernel);
      const domains = join(directory, `${host}.xml`);
      writeFileSync(
        domains,
        libvirtNode(own.map((one) => ({ name: one['OS-EXT-SRV-ATTR:instance_name'], uuid: one.id }))),
      );
      const collectors = ['--collector.disable-defaults', '--collector.cpu', '--collector.meminfo'];
      running.start('prometheus-node-exporter', [
        `--web.listen-address=${node}`,
        `--path.procfs=${join(directory, host)}`,
        ...collectors,
      ]);
      running.start('prometheus-libvirt-exporter', [
        `--web.listen-address=${libvirt}`,
        `--libvirt.uri=test://${domains}`,
      ]);
      return [
        { job: 'node', address: node, instance: `${host}:9100` },
        { job: 'libvirt', address: libvirt, instance: `${host}:9177` },
      ];
    });
    // The rates of the policies look 5 minutes back. The backfilled values of the exporters replace a wait.
    const past = join(directory, 'past.txt');
    writeFileSync(past, await pastOf(targets, written));
    endKernels = systemClock.every(250, () => {
      for (const kernel of written) kernel.write();
    });
    metrics = await startPrometheus(prometheus ?? '', targets, [], { past });
    const counted = async (metric: string, series: number): Promise<boolean> => {
      const answer = await fetch(`${metrics.url}/api/v1/query?query=${encodeURIComponent(`count(${metric})`)}`);
      const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
      return data.result[0]?.value[1] === String(series);
    };
    await until(
      async () =>
        (await counted('libvirt_domain_info_memory_usage_bytes', servers.length)) &&
        (await counted('node_memory_MemTotal_bytes', HOSTS.length)),
      120_000,
      'a scrape of every exporter',
    );
  });

  afterAll(async () => {
    endKernels();
    await metrics?.stop();
    await running.stop();
    rmSync(directory, { recursive: true, force: true });
    await bed('reset');
  });

  it('nine commands lead from nothing to a true plan in dry run, and nothing moves', async () => {
    const { outcomes, stderr } = await followTutorial({
      work: join(directory, 'kronos'),
      cloud: 'lab',
      cloudsFile: clouds,
      prometheusUrl: metrics.url,
    });
    const transcript = outcomes.map(({ command, text, status }) => `$ ${command}\n${text}(${status})`).join('\n');
    if (process.env.KRONOS_TRANSCRIPT !== undefined) writeFileSync(process.env.KRONOS_TRANSCRIPT, transcript);
    for (const { command, status } of outcomes) expect(status, `${command}\n${transcript}\n${stderr}`).toBe(0);
    const said = (beginning: string) => outcomes.find(({ command }) => command.startsWith(beginning))?.text;
    expect(said('kronos evaluate')).toMatch(/^kronos-east: planned/m);
    // Five servers against one: at least one of cmp1 goes to a host with one.
    expect(said('kronos plan show')).toMatch(/cmp1 +cmp[23]/);
    expect(said('kronos report')).toContain('dry run: nothing was moved');
    // The page shows the same lines as this cloud's answers, with other figures and names.
    const shape = (text: string): string[] =>
      text
        .split('\n')
        .map((line) =>
          line
            .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
            .replace(/\d+(\.\d+)?/g, 'N')
            .replace(/\s+/g, ' ')
            .trim(),
        )
        .filter((line) => line !== '');
    const lines = new Set(outcomes.flatMap(({ text }) => shape(text)));
    for (const block of shownOutput()) for (const line of shape(block)) expect([...lines]).toContain(line);
    const { servers } = JSON.parse(await bed('api', 'GET', '/servers/detail?all_tenants=1')) as {
      servers: { 'OS-EXT-SRV-ATTR:host': string }[];
    };
    for (const host of HOSTS)
      expect(servers.filter((one) => one['OS-EXT-SRV-ATTR:host'] === host)).toHaveLength(SERVERS[host] ?? 0);
  });

  it('kronos advise compares the settings of Nova and Placement', async () => {
    const file = join(directory, 'kronos', 'kronos.conf');
    const ask = async () => {
      const { status, text } = await runKronos(['advise', '-c', file, '-o', 'json'], { OS_CLIENT_CONFIG_FILE: clouds });
      expect(status, text).toBe(0);
      // Lines about a checkpoint come first.
      const found = JSON.parse(/^\[.*/ms.exec(text)?.[0] ?? '') as {
        aggregate: string;
        unread: string | null;
        advice: { code: string }[];
      }[];
      // A late scrape on a busy machine leaves a host without metrics, which says nothing about the settings.
      const settings = (advice: { code: string }[]) =>
        advice.map(({ code }) => code).filter((code) => code !== 'host-without-metrics');
      return found.map(({ aggregate, unread, advice }) => [aggregate, unread, settings(advice)]);
    };
    expect(await ask()).toEqual([
      ['kronos-east', null, []],
      ['kronos-west', null, []],
    ]);
    const { aggregates } = JSON.parse(await bed('api', 'GET', '/os-aggregates')) as {
      aggregates: { id: number; name: string }[];
    };
    const west = aggregates.find(({ name }) => name === 'kronos-west')?.id;
    const metadata = JSON.stringify({ set_metadata: { metadata: { ram_weight_multiplier: '-1.0' } } });
    await bed('api', 'POST', `/os-aggregates/${west}/action`, metadata);
    expect(await ask()).toEqual([
      ['kronos-east', null, []],
      ['kronos-west', null, ['nova-stacks']],
    ]);
  });
});
