/**
 * The cost of `kronos backtest` on a simulated cloud with a random life: people move, create, delete and stop VMs. The command runs as a
 * process of its own; the cloud and its Prometheus are this one. Prints JSON.
 *
 *   npm run bench:backtest [-- DAYS, default 30] [HOSTS, default 100] [VMS, default 3000] [STEP, default 5m] [LOST: the day of which
 *   Prometheus has no sample, default none]
 */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { random as seeded } from '@kronos/projections/testing';
import { generate, manualClock, type Sim, startSim } from '@kronos/simcloud';
import { measuredKronos } from './measured.ts';

const days = Number(process.argv[2] ?? 30);
const hosts = Number(process.argv[3] ?? 100);
const vms = Number(process.argv[4] ?? 3000);
const step = process.argv[5] ?? '5m';
const lostDay = Number(process.argv[6] ?? Number.POSITIVE_INFINITY);
const SEED = 33;
const DAY_MS = 86_400_000;
/** Acts of people a day. */
const ACTS = 40;

const root = mkdtempSync(join(tmpdir(), 'kronos-bench-'));

let sentBytes = 0;
const { end } = ServerResponse.prototype;
ServerResponse.prototype.end = function count(this: ServerResponse, ...args: Parameters<typeof end>) {
  const [body] = args as readonly unknown[];
  if (typeof body === 'string') sentBytes += Buffer.byteLength(body);
  return Reflect.apply(end, this, args);
} as typeof end;

/** Lives the days. */
function live(sim: Sim, clock: ReturnType<typeof manualClock>, untilMs: number): number {
  const chance = seeded(SEED);
  const lostMs = clock.now() + (lostDay - 1) * DAY_MS;
  let acts = 0;
  let lost = false;
  for (let atMs = clock.now(); atMs < untilMs; atMs += DAY_MS / ACTS) {
    clock.set(atMs);
    if (lost !== (atMs >= lostMs && atMs < lostMs + DAY_MS)) {
      lost = !lost;
      sim.act(lost ? { act: 'faultSeries', fault: { kind: 'missing' } } : { act: 'mendSeries' });
    }
    const names = [...sim.cloud.servers.values()].map(({ name }) => name);
    const server = names[Math.floor(chance() * names.length)] ?? '';
    const host = `host-${String(1 + Math.floor(chance() * hosts)).padStart(String(hosts).length, '0')}`;
    const kind = chance();
    try {
      if (kind < 0.4) sim.act({ act: 'migrateServer', server, host });
      else if (kind < 0.65) sim.act({ act: 'deleteServer', server });
      else if (kind < 0.95) sim.act({ act: 'createServer', server: { name: `new-${acts}`, host, flavor: 'g.small' } });
      else sim.act({ act: 'setServer', server, vmState: 'stopped' });
      acts += 1;
    } catch {
      // Refused, as Nova does: the server is on that host, stopped, or moving.
    }
  }
  clock.set(untilMs);
  return acts;
}

const sizeOf = (directory: string): number =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);

const endMs = Math.floor(Date.now() / 3_600_000) * 3_600_000;
const clock = manualClock(endMs - days * DAY_MS);
const scenario = {
  ...generate({ hosts, vms, seed: SEED, varying: 0.5 }),
  tokenSeconds: 400 * 86_400,
  scrapeSeconds: 60,
};
const sim = await startSim({ scenario, clock });
try {
  const acts = live(sim, clock, endMs);
  const perHost = scenario.hosts[0] ?? { vcpus: 64, memoryMb: 262_144 };
  writeFileSync(
    join(root, 'policies.yaml'),
    `policies:
  - {name: cpu, mode: spread, weight: 0.6, imbalance_query: host_cpu_utilisation, host_label: host, vm_profile_query: vm_cpu_cores / ${perHost.vcpus}, vm_profile_label: instance_uuid, vm_profile_label_type: nova_instance_uuid, threshold: 0.2, max_migrations_per_cycle: 10}
  - {name: memory, mode: spread, weight: 0.4, imbalance_query: host_mem_utilisation, host_label: host, vm_profile_query: vm_mem_mb / ${perHost.memoryMb}, vm_profile_label: instance_uuid, vm_profile_label_type: nova_instance_uuid, threshold: 0.25, max_migrations_per_cycle: 10}
`,
  );
  writeFileSync(
    join(root, 'kronos.conf'),
    `[engine]
aggregates = aggregate-1
policies_file = ${join(root, 'policies.yaml')}
[nova]
auth_type = password
auth_url = ${sim.urls.identity}
username = admin
password = secret
project_name = admin
user_domain_id = default
project_domain_id = default
[prometheus]
url = ${sim.urls.prometheus}
`,
  );
  sentBytes = 0;
  const before = Object.values(sim.counts()).reduce((a, b) => a + b, 0);
  const range = ['--since', new Date(endMs - days * DAY_MS).toISOString(), '--until', new Date(endMs).toISOString()];
  const from = ['backtest', '-c', join(root, 'kronos.conf'), ...range, '--step', step];
  const to = ['--to', join(root, 'case'), '--rate', '1000', '-o', 'json'];
  const { status, seconds, cpuSeconds, peakMb, out } = await measuredKronos([...from, ...to], join(root, 'usage.json'));
  if (status !== 0) throw new Error(`kronos backtest ended with ${status}`);
  const { aggregates } = JSON.parse(out) as {
    aggregates: { steps: number; moves: unknown; people: { listed?: unknown } }[];
  };
  for (const { people } of aggregates) delete people.listed;
  const figures = {
    given: { days, hosts, vms, step, lostDay: Number.isFinite(lostDay) ? lostDay : null, acts, rate: 1000 },
    seconds: Math.round(seconds),
    cpuSeconds: Math.round(cpuSeconds),
    peakMb: Math.round(peakMb),
    calls: Object.values(sim.counts()).reduce((a, b) => a + b, 0) - before,
    readMb: Math.round(sentBytes / 1e6),
    keptMb: Math.round(sizeOf(join(root, 'case')) / 1e6),
    aggregates,
  };
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
} finally {
  await sim.close();
  rmSync(root, { recursive: true });
}
