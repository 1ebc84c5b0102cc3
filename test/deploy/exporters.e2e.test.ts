/** The real exporters in a real Prometheus: kronos init writes a configuration that passes, and the presets return data. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheDir, freePorts, startNatsServer, unpackDebian, withLibraries } from '@kronos/eventlog/testing';
import { parseScenario, startSim } from '@kronos/simcloud';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runKronos as run } from '../e2e/command.ts';
import { findPrometheus, startPrometheus } from './prometheus.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const presets = fileURLToPath(new URL('../../deploy/policies/', import.meta.url));
/** Two addresses of this machine stand for two hosts. */
const HOSTS = ['127.0.0.1', '127.0.0.2'] as const;
const VMS = [0, 1, 2].map((i) => ({
  id: `6695eb01-f6a4-4304-89aa-97f2502e19${30 + i}`,
  name: `vm-${i}`,
  host: HOSTS[i % 2] ?? HOSTS[0],
}));

const prometheus = await findPrometheus('prometheus');
const CACHED = 'exporters-debian';
const unpacked = existsSync(join(cacheDir(), CACHED))
  ? join(cacheDir(), CACHED)
  : await unpackDebian(process.env, CACHED, {
      packages: ['prometheus-node-exporter', 'prometheus-libvirt-exporter'],
      dependencies: true,
    }).catch((error: Error) => error);
const missing =
  prometheus === null
    ? 'there is no prometheus, and its package cannot be downloaded'
    : unpacked instanceof Error
      ? `the exporters cannot be unpacked: ${unpacked.message}`
      : null;
if (missing !== null) console.warn(`skipped: ${missing}`);

/** A node for libvirt's test driver. */
const libvirtNode = (domains: readonly { readonly name: string; readonly uuid: string }[]): string =>
  `<node>${domains
    .map(
      ({ name, uuid }) =>
        `<domain type='test'><name>${name}</name><uuid>${uuid}</uuid><memory>524288</memory><vcpu>1</vcpu><os><type>hvm</type></os></domain>`,
    )
    .join('')}</node>`;

describe.skipIf(missing !== null)('node_exporter and the libvirt exporter of Debian', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-exporters-'));
  const clouds = join(directory, 'clouds.yaml');
  const children: ChildProcess[] = [];
  let metrics: Awaited<ReturnType<typeof startPrometheus>>;
  let nats: Awaited<ReturnType<typeof startNatsServer>>;
  let sim: Awaited<ReturnType<typeof startSim>>;

  function start(program: string, args: readonly string[]): void {
    if (unpacked instanceof Error) throw unpacked;
    const env = withLibraries(process.env, unpacked);
    children.push(spawn(join(unpacked, 'usr/bin', program), args, { stdio: 'ignore', env }));
  }

  beforeAll(async () => {
    nats = await startNatsServer();
    sim = await startSim({
      scenario: parseScenario({
        hosts: HOSTS.map((name) => ({ name })),
        aggregates: [{ name: 'lab', hosts: [...HOSTS] }],
        flavors: [{ name: 'm1.small', vcpus: 1, memoryMb: 512 }],
        servers: VMS.map((vm) => ({ ...vm, flavor: 'm1.small' })),
      }),
    });
    writeFileSync(
      clouds,
      JSON.stringify({
        clouds: {
          lab: {
            auth: {
              auth_url: sim.urls.identity,
              username: 'admin',
              password: 'secret',
              project_name: 'admin',
              user_domain_id: 'default',
              project_domain_id: 'default',
            },
            region_name: 'RegionOne',
          },
        },
      }),
    );
    const ports = await freePorts(2 * HOSTS.length);
    const targets = HOSTS.flatMap((host, i) => {
      const node = `${host}:${ports[2 * i]}`;
      const libvirt = `${host}:${ports[2 * i + 1]}`;
      const file = join(directory, `node-${i}.xml`);
      writeFileSync(
        file,
        libvirtNode(
          VMS.map((vm, k) => ({
            name: `instance-${(k + 1).toString(16).padStart(8, '0')}`,
            uuid: vm.id,
            host: vm.host,
          })).filter((vm) => vm.host === host),
        ),
      );
      start('prometheus-node-exporter', [`--web.listen-address=${node}`]);
      start('prometheus-libvirt-exporter', [`--web.listen-address=${libvirt}`, `--libvirt.uri=test://${file}`]);
      return [
        { job: 'node', address: node },
        { job: 'libvirt', address: libvirt },
      ];
    });
    metrics = await startPrometheus(prometheus ?? '', targets);
    // A rate needs two scrapes of every target.
    const rates = async () => {
      const query = 'count(rate(libvirt_domain_info_cpu_time_seconds_total[5m]))';
      const answer = await fetch(`${metrics.url}/api/v1/query?query=${encodeURIComponent(query)}`);
      const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
      return data.result[0]?.value[1];
    };
    await vi.waitFor(async () => expect(await rates()).toBe(String(VMS.length)), { timeout: 120_000, interval: 250 });
  });

  afterAll(async () => {
    await metrics?.stop();
    await sim?.close();
    await nats?.stop();
    await Promise.all(
      children.map(async (child) => {
        const gone = new Promise((resolve) => child.once('exit', resolve));
        if (child.exitCode === null && child.kill('SIGTERM')) await gone;
      }),
    );
    rmSync(directory, { recursive: true, force: true });
  });

  const initArgs = (to: string) => [
    'init',
    '--cloud',
    'lab',
    '--clouds-file',
    clouds,
    '--prometheus',
    metrics.url,
    '--nats',
    nats.url,
    '--to',
    to,
  ];

  it('kronos init recognises both, finds the labels, and writes files that pass once NATS is provisioned', async () => {
    const to = join(directory, 'etc');
    const init = await run(initArgs(to));
    expect(init.status, init.text).toBe(0);
    expect(init.text).toContain('aggregates: lab');
    expect(init.text).toMatch(/node_exporter: label instance names 2 of 2 hosts/);
    expect(init.text).toMatch(/libvirt exporter .*: label uuid names 3 of 3 VMs \(nova_instance_uuid\)/);
    const file = join(to, 'kronos.conf');
    expect((await run(['provision', '-c', file])).status).toBe(0);
    const check = await run(['config', 'check', '-c', file]);
    expect(check.status, check.text).toBe(0);
    expect(check.text).toContain('3 of 3 VMs in scope have a value');
    expect(check.text).toContain('3 of 3 VMs may move (100 %)');
  });

  it('docs/tutorial.md: its commands lead to a first decision, a plan or the reason for none, and a report', async () => {
    const page = readFileSync(join(root, 'docs/tutorial.md'), 'utf8');
    const commands = [...page.matchAll(/^```\n(.*?)^```/gms)].flatMap(([, block = '']) => block.trim().split('\n'));
    expect(commands).toHaveLength(10);
    const given: Readonly<Record<string, string>> = {
      'http://PROMETHEUS:9090': metrics.url,
      'nats://127.0.0.1:4222': nats.url,
      NAME: 'lab',
    };
    const [clone, names, server, ...rest] = commands;
    expect([clone, server]).toEqual([
      expect.stringMatching(/^git clone .* && npm ci$/),
      expect.stringMatching(/^nats-server -js /),
    ]);
    // The project and the NATS server are there already. Each command states how it ended.
    const script = [
      `cd ${root}`,
      (names ?? '').replace('$PWD/kronos.conf', '$WORK/kronos.conf'),
      'cd "$WORK"',
      ...rest.map((command) => {
        const own = Object.entries(given).reduce((text, [from, to]) => text.replace(from, to), command);
        return `${own}\necho "status $?"`;
      }),
      'kill $(jobs -p) && wait',
    ].join('\n');
    const work = join(directory, 'tutorial');
    mkdirSync(work);
    const ports = await freePorts(4);
    const http = ['SCORER', 'PLANNER', 'EXECUTOR', 'LEDGER'].map((name, i) => [`OS_HTTP__${name}_PORT`, `${ports[i]}`]);
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', script], {
      env: { ...process.env, ...Object.fromEntries(http), WORK: work, OS_CLIENT_CONFIG_FILE: clouds },
    });
    const [init, provision, started, evaluated, explained, shown, reported] = stdout
      .split(/^status /m)
      .map((part, i) => ({
        text: part.replace(/^\d+\n/, ''),
        status: Number(/^\d+/.exec(stdout.split(/^status /m)[i + 1] ?? '')?.[0] ?? Number.NaN),
      }));
    for (const [name, one] of Object.entries({ init, provision, started, evaluated, explained, reported }))
      expect(one?.status, `${name}: ${stdout}`).toBe(0);
    expect(evaluated?.text).toMatch(/^lab: (planned|no plan)/);
    // The hosts of this stage are one machine: there is a plan only by chance, and without one it says so.
    if (shown?.status !== 0) expect(stderr).toContain('the log has no plan yet');
    expect(reported?.text).toMatch(/^lab .* (dry run: nothing was moved|no plan was released)/m);
    expect(readFileSync(join(work, 'report.html'), 'utf8')).toContain('<h2>lab: ');
  });

  it('kronos init leaves files that exist alone', async () => {
    const to = join(directory, 'etc');
    const again = await run(initArgs(to));
    expect(again.status).toBe(2);
    expect(again.text).toContain('--force');
  });

  it('kronos init without Prometheus balances by what is allocated, and its files pass', async () => {
    const to = join(directory, 'allocation');
    const args = initArgs(to).filter((word) => word !== '--prometheus' && word !== metrics.url);
    const init = await run(args);
    expect(init.status, init.text).toBe(0);
    expect(init.text).toContain('balancing by what is allocated');
    const check = await run(['config', 'check', '-c', join(to, 'kronos.conf')]);
    expect(check.status, check.text).toBe(0);
    expect(check.text).toContain('VCPU: 2 hosts');
    expect(check.text).toContain('3 of 3 VMs may move (100 %)');
  });

  it.each(['node-exporter.yaml', 'node-exporter+libvirt-exporter.yaml'])(
    'the preset %s returns what its policies need',
    async (preset) => {
      const file = join(directory, 'etc', 'kronos.conf');
      const check = await run(['config', 'check', '-c', file, '--json'], {
        OS_ENGINE__POLICIES_FILE: join(presets, preset),
      });
      const { findings } = JSON.parse(check.text) as {
        findings: { what: string; state: string; code: string; detail: Record<string, number> }[];
      };
      const of = (what: string) => findings.find((one) => one.what === what);
      for (const policy of ['cpu', 'memory']) {
        expect(of(`policy ${policy} imbalance_query`), check.text).toMatchObject({
          state: 'ok',
          detail: { hostsMatched: 2 },
        });
        if (preset.includes('libvirt'))
          expect(of(`policy ${policy} vm_profile_query`), check.text).toMatchObject({
            state: 'ok',
            detail: { vmsWithValue: VMS.length },
          });
      }
      expect(of('aggregate lab')).toMatchObject({ state: 'ok', detail: { movable: VMS.length } });
      expect(check.status, check.text).toBe(0);
    },
    120_000,
  );
});
