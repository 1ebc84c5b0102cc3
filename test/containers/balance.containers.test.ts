import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '@kronos/clock/testing';
import { loadConfig } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import type { LogEvent } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type { MigrationRecord } from '@kronos/simcloud';
import { createLogger } from '@kronos/telemetry';
import {
  GenericContainer,
  Network,
  type StartedTestContainer as StartedContainer,
  type StartedNetwork,
  Wait,
} from 'testcontainers';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ended, released, settled } from '../e2e/world.ts';

const none = inject('noContainers');
const docker = async (...args: string[]) => (await promisify(execFile)('docker', args, { maxBuffer: 2 ** 26 })).stdout;

const CAPS = { total: 6, inbound: 2, outbound: 1 };
const config = `[engine]
aggregates = general
dry_run = false
evaluation_interval = 3
search_work_limit = 200000
cooldown = 5
instance_cooldown = 30
settle_seconds = 4
[executor]
max_concurrent_migrations = ${CAPS.total}
max_inbound_per_host = ${CAPS.inbound}
max_outbound_per_host = ${CAPS.outbound}
poll_interval = 0.5
retry_backoff = 2
[nova]
auth_url = http://simcloud:9780/identity/v3
username = admin
password = secret
project_name = admin
user_domain_id = default
project_domain_id = default
region_name = RegionOne
[prometheus]
url = http://simcloud:9780/prometheus
staleness_threshold = 15
[nats]
servers = nats://nats:4222
ack_wait = 5
log_max_bytes = 64MiB
snapshot_max_bytes = 256MiB
`;
/** The load varies. A plan that ends just below its threshold would not keep the cloud there. */
const MARGIN = 0.05;
const policy = (name: string, weight: number, threshold: number, host: string, vm: string) => `  - name: ${name}
    mode: spread
    weight: ${weight}
    imbalance_query: ${host}
    vm_profile_query: ${vm}
    vm_profile_label: instance_uuid
    threshold: ${threshold}
    target: ${(threshold - MARGIN).toFixed(2)}
    max_migrations_per_cycle: 10
`;
const THRESHOLDS = { host_cpu_utilisation: 0.2, host_mem_utilisation: 0.25 };
const policies = `policies:
${policy('cpu', 0.6, 0.2, 'host_cpu_utilisation', 'vm_cpu_cores / 64')}${policy('memory', 0.4, 0.25, 'host_mem_utilisation', 'vm_mem_mb / 262144')}`;

/** Each service says so in its log. */
const STARTED = Wait.forLogMessage(/"message":"started"/);
const files = none === null ? mkdtempSync(join(tmpdir(), 'kronos-containers-')) : '';

/** A container of ours as compose and the chart run it. */
class Hardened extends GenericContainer {
  constructor(image: string, network: StartedNetwork) {
    super(`${image}:test`);
    Object.assign(this.hostConfig, {
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true'],
    });
    this.withNetwork(network).withStartupTimeout(240_000);
  }

  configured(): this {
    return this.withBindMounts([{ source: files, target: '/etc/kronos', mode: 'ro' }]);
  }
}

describe.skipIf(none !== null)('Kronos in containers', () => {
  let network: StartedNetwork;
  let cloud: StartedContainer;
  let nats: StartedContainer;
  let log: EventLog;
  const started: StartedContainer[] = [];
  const events: LogEvent[] = [];
  const keep = (container: StartedContainer) => {
    started.push(container);
    return container;
  };
  const service = async (name: 'scorer' | 'planner' | 'executor' | 'ledger') =>
    keep(await new Hardened(`kronos-${name}`, network).configured().withWaitStrategy(STARTED).start());
  const sim = (path: string) => `http://${cloud.getHost()}:${cloud.getMappedPort(9780)}${path}`;
  const migrations = async () =>
    ((await (await fetch(sim('/_sim/migrations'))).json()) as { migrations: MigrationRecord[] }).migrations;
  const inspect = async (container: StartedContainer, format: string) =>
    (await docker('inspect', container.getId(), '--format', format)).trim();

  const lastOf = (what: string) => () =>
    `${what}; the last of ${events.length} events: ${events
      .slice(-10)
      .map(({ type }) => type)
      .join(', ')}`;

  beforeAll(async () => {
    // The containers' user is nobody.
    chmodSync(files, 0o755);
    writeFileSync(join(files, 'kronos.conf'), config);
    writeFileSync(join(files, 'policies.yaml'), policies);
    network = await new Network().start();
    nats = keep(
      await new GenericContainer('kronos-nats:test')
        .withNetwork(network)
        .withNetworkAliases('nats')
        .withCommand(['-js', '-sd', '/data', '-m', '8222'])
        .withExposedPorts(4222)
        .withWaitStrategy(Wait.forHealthCheck())
        .start(),
    );
    cloud = keep(
      await new Hardened('kronos-simcloud', network)
        .withNetworkAliases('simcloud')
        .withCommand(['--host', 'simcloud', '--speed', '5'])
        .withExposedPorts(9780)
        .withWaitStrategy(Wait.forHealthCheck())
        .start(),
    );
    keep(
      await new Hardened('kronos', network)
        .configured()
        .withCommand(['provision'])
        .withWaitStrategy(Wait.forOneShotStartup())
        .start(),
    );
    const env = {
      OS_ENGINE__AGGREGATES: 'general',
      OS_NATS__SERVERS: `nats://${nats.getHost()}:${nats.getMappedPort(4222)}`,
    };
    const { config: ours } = loadConfig({ file: '/dev/null', env, role: 'cli' });
    const quiet = createLogger({ service: 'test', version: '0', level: 'silent' });
    log = await connectLog(ours, 'test', quiet);
    const follow = async () => {
      for await (const { message, problem } of log.tail({ families: ['plans', 'results'], since: 'all' }))
        if (problem === undefined) events.push(message as LogEvent);
    };
    follow().catch(() => {});
  }, 300_000);
  afterAll(async () => {
    await log?.close();
    for (const container of started.reverse()) await docker('rm', '-f', '-v', container.getId()).catch(() => '');
    await network?.stop();
    rmSync(files, { recursive: true, force: true });
  }, 120_000);

  it('balances a cloud with three executors while containers are killed', async () => {
    const executor = await service('executor');
    const [planner] = await Promise.all([service('planner'), service('ledger')]);
    // Scaled to three before there is anything to do.
    const [second] = await Promise.all([service('executor'), service('executor')]);
    const scorer = await service('scorer');
    const inFlight = () => {
      const over = ended(events);
      return events.some((e) => e.type === 'migration.started' && !over.has(e.data.taskId));
    };
    await until(inFlight, 300_000, lastOf('a move in flight'));
    for (const victim of [executor, second, planner, scorer]) await docker('kill', victim.getId());
    // An orchestrator would start them again.
    await Promise.all([service('executor'), service('planner'), service('scorer')]);
    await until(() => settled(events), 400_000, lastOf('a balanced cloud'));
  }, 900_000);

  it('each released task ended once, with one migration in the cloud per attempt that it took', async () => {
    const tasks = released(events);
    expect(new Set(tasks).size).toBe(tasks.length);
    expect(ended(events)).toEqual(new Set(tasks));
    const results = events.filter(
      (e) => e.type === 'migration.completed' || (e.type === 'migration.failed' && !e.data.retryPending),
    );
    expect(results).toHaveLength(tasks.length);
    const completed = events.filter((e) => e.type === 'migration.completed');
    const done = (await migrations()).filter((migration) => migration.status === 'completed');
    expect(done).toHaveLength(completed.length);
  });

  it('never more at a time than the caps, by the record of the cloud', async () => {
    const records = (await migrations()).map(({ source, dest, history }) => ({
      source,
      dest,
      from: history[0]?.atMs ?? 0,
      to: history.at(-1)?.atMs ?? 0,
    }));
    expect(records.length).toBeGreaterThan(0);
    for (const { from } of records) {
      const running = records.filter((record) => record.from <= from && from < record.to);
      expect(running.length).toBeLessThanOrEqual(CAPS.total);
      const most = (key: 'source' | 'dest') =>
        Math.max(...running.map((a) => running.filter((b) => b[key] !== null && b[key] === a[key]).length), 0);
      expect(most('source')).toBeLessThanOrEqual(CAPS.outbound);
      expect(most('dest')).toBeLessThanOrEqual(CAPS.inbound);
    }
  });

  it('the cloud is balanced, by its own figures', async () => {
    const { hosts } = (await (await fetch(sim('/_sim/hosts'))).json()) as {
      hosts: { name: string; disabled: boolean }[];
    };
    const enabled = new Set(hosts.filter(({ disabled }) => !disabled).map(({ name }) => name));
    const shown: Record<string, Record<string, number>> = {};
    const isBalanced = async (query: string, threshold: number): Promise<boolean> => {
      const answer = await fetch(sim(`/prometheus/api/v1/query?query=${query}`));
      const { data } = (await answer.json()) as {
        data: { result: { metric: { host: string }; value: [number, string] }[] };
      };
      const ofEnabled = data.result.filter(({ metric }) => enabled.has(metric.host));
      const byHost = Object.fromEntries(ofEnabled.map(({ metric, value }) => [metric.host, Number(value[1])]));
      shown[query] = byHost;
      const values = Object.values(byHost);
      expect(values.length).toBeGreaterThan(5);
      return Math.max(...values) - Math.min(...values) <= threshold;
    };
    const all = async () => {
      for (const [query, threshold] of Object.entries(THRESHOLDS))
        if (!(await isBalanced(query, threshold))) return false;
      return true;
    };
    const facts = async () => {
      const decided = events.flatMap((e) => (e.type === 'cycle.decided' ? [e.data] : [])).slice(-3);
      const decisions = decided.map(({ snapshotId, reason, before }) => ({ snapshotId, reason, before }));
      const last = (await migrations()).slice(-5);
      return JSON.stringify({ shown, decisions, last });
    };
    // A decision made since may have begun further moves: then Kronos goes on until the figures are balanced again.
    await until(all, 120_000, async () => `balanced figures: ${await facts()}`);
  }, 180_000);

  it('no service ends when it is scraped while NATS is away, and all are ready again when it is back', async () => {
    const running = [];
    for (const container of started.slice(3)) {
      if ((await inspect(container, '{{.State.Running}}')) === 'true') running.push(container);
    }
    expect(running.length).toBeGreaterThanOrEqual(5);
    const probe = (container: StartedContainer, path: string) =>
      docker(
        ...['exec', container.getId(), 'node', '-e'],
        `fetch(process.env.KRONOS_HEALTH.replace('/healthz', '${path}')).then((r) => console.log(r.status))`,
      );
    // Not `docker pause`, which failed on a busy machine: a signal needs no freezer.
    await docker('kill', '--signal', 'STOP', nats.getId());
    try {
      for (const container of running) expect((await probe(container, '/metrics')).trim()).toBe('200');
    } finally {
      await docker('kill', '--signal', 'CONT', nats.getId());
    }
    for (const container of running) {
      // A service that does not answer in time is not ready yet.
      const ready = async () => (await probe(container, '/readyz').catch(() => '')).trim() === '200';
      await until(ready, 180_000, `${await inspect(container, '{{.Config.Image}}')} to be ready`);
    }
  }, 600_000);

  it('containers are nobody, write nowhere, and end in time with status 0', async () => {
    for (const container of started.slice(3)) {
      if ((await inspect(container, '{{.State.Running}}')) !== 'true') continue;
      expect(await inspect(container, '{{.Config.User}} {{.HostConfig.ReadonlyRootfs}}')).toBe('65532:65532 true');
      expect(await docker('diff', container.getId())).not.toMatch(/^[ACD] (?!\/etc(\/kronos)?$)/m);
      await docker('stop', '-t', '12', container.getId());
      // Not 137, as after 12 s.
      expect(await inspect(container, '{{.State.ExitCode}}')).toBe('0');
    }
  }, 240_000);
});
