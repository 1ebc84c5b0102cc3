/** A whole installation on three NATS servers with three copies of everything, and a cloud with fifty servers to be moved. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '@kronos/clock/testing';
import { streamNames } from '@kronos/contracts';
import { type ClusterNode, type NatsServer, startNatsCluster } from '@kronos/eventlog/testing';
import { clusterServer } from '@kronos/eventlog/testing/newest';
import { breaches } from '@kronos/executor/testing';
import { type Sim, startSim } from '@kronos/simcloud';
import { statusOf, unreadableFacts } from '@kronos/status';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { onTestFinished } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { ended, released, type Watch, watch } from '../e2e/world.ts';

/** The title that the tests of a system share. */
export const SCENE = 'three copies, fifty moves under way: nothing is lost, nothing done twice, and all services go on';

const TASKS = 50;
const AGGREGATE = 'general';
/** Hosts that are emptied first, of ten servers each; one more is emptied when all is over; and where they go. */
const LEAVING = ['h1', 'h2', 'h3', 'h4', 'h5'];
const LAST = 'h6';
const HOSTS = [...LEAVING, LAST, 'h7', 'h8', 'h9', 'h10', 'h11', 'h12'];
const EXECUTORS = 3;

const CAPS = { maxConcurrentMigrations: TASKS, maxOutboundPerHost: 10, maxInboundPerHost: 20 };

const config = (sim: Sim, places: { natsUrl: string; policiesFile: string }) => `[engine]
aggregates = ${AGGREGATE}
policies_file = ${places.policiesFile}
dry_run = false
evaluation_interval = 2
cooldown = 1
instance_cooldown = 1
settle_seconds = 2.5
evacuate_disabled_hosts = true
[executor]
max_concurrent_migrations = ${CAPS.maxConcurrentMigrations}
max_outbound_per_host = ${CAPS.maxOutboundPerHost}
max_inbound_per_host = ${CAPS.maxInboundPerHost}
poll_interval = 0.5
retry_backoff = 1
[nova]
auth_url = ${sim.urls.identity}
username = admin
password = secret
project_name = admin
user_domain_id = default
project_domain_id = default
region_name = RegionOne
[prometheus]
url = ${sim.urls.prometheus}
staleness_threshold = 15
[nats]
servers = ${places.natsUrl}
replicas = 3
ack_wait = 6
log_max_bytes = 64MiB
snapshot_max_bytes = 64MiB
[http]
scorer_port = 0
planner_port = 0
executor_port = 0
ledger_port = 0
[log]
format = json
`;

const policies = `policies:
  - name: cpu
    mode: spread
    weight: 1
    imbalance_query: host_cpu_utilisation
    vm_profile_query: vm_cpu_cores / 64
    vm_profile_label: instance_uuid
    threshold: 0.9
    max_migrations_per_cycle: ${TASKS}
`;

interface System extends Watch {
  readonly servers: readonly NatsServer[];
  /** The server that leads the log, and the others. */
  leader(): Promise<{ readonly leader: NatsServer; readonly followers: readonly NatsServer[] }>;
  /** The alarm of a reader of the log, in words; empty while it can be read. */
  alarm(): Promise<string>;
  /** Makes a server the leader of the log. */
  promote(server: NatsServer): Promise<void>;
  /** The server that an executor is connected to. */
  serverOfExecutor(): Promise<NatsServer>;
  /** Waits until that number of the fifty moves has been started, and returns their tasks. */
  moving(started: number): Promise<readonly string[]>;
  /** Waits until all copies of the log are level. */
  level(): Promise<void>;
  /** Waits until all is done and whole again, moves a few more servers, and says in words what does not hold. */
  aftermath(): Promise<readonly string[]>;
}

export const completed = (events: System['events']): number =>
  events.filter((event) => event.type === 'migration.completed').length;

/** A system on three of the newest servers, until the end of the running test. */
export async function systemFor(nodes: readonly ClusterNode[] | 3 = 3): Promise<System> {
  const server = await clusterServer();
  const undo: (() => Promise<unknown>)[] = [];
  onTestFinished(async () => {
    for (const step of undo.reverse()) await step().catch(() => undefined);
  });
  const sim = await startSim({
    speed: 20,
    scenario: {
      name: 'cluster',
      maxConcurrentLiveMigrations: CAPS.maxOutboundPerHost,
      hosts: HOSTS.map((name) => ({ name, vcpus: 64, memoryMb: 262_144 })),
      aggregates: [{ name: AGGREGATE, hosts: HOSTS }],
      flavors: [{ name: 'm1', vcpus: 1, memoryMb: 2048, diskGb: 10 }],
      servers: LEAVING.flatMap((host) =>
        Array.from({ length: TASKS / LEAVING.length }, (_, i) => ({ name: `${host}-${i + 1}`, host, flavor: 'm1' })),
      ).concat([{ name: 'last', host: LAST, flavor: 'm1' }]),
    },
  });
  undo.push(() => sim.close());
  // Twelve seconds each, at this pace: the fault comes about while they are copied.
  for (const host of LEAVING)
    for (let i = 1; i <= TASKS / LEAVING.length; i++)
      sim.act({ act: 'faultServer', server: `${host}-${i}`, fault: { kind: 'slow', seconds: 240, times: 1 } });

  const cluster = await startNatsCluster(nodes, { server, jetstream: 'sync_interval: always' });
  undo.push(() => cluster.stop());
  const exits: string[] = [];
  const kronos = await openInstallation({
    config: (places) => config(sim, places),
    policies,
    nats: async () => ({ urls: cluster.urls, stop: async () => undefined }),
    onExit: (service, code) => exits.push(`${service} ended with ${code}`),
    say: () => undefined,
  });
  undo.push(() => kronos.close());
  for (let i = 1; i < EXECUTORS; i++) kronos.start('executor');
  return { ...system(sim, cluster.servers, kronos, exits), alarm: () => alarmOf(kronos) };
}

async function alarmOf({ log }: DemoInstallation): Promise<string> {
  const error = await log.usage(streamNames.log).then(
    () => null,
    (reason: unknown) => reason,
  );
  const facts = error === null ? null : unreadableFacts(error, Date.now());
  return facts === null
    ? ''
    : statusOf(facts)
        .alarms.map(({ code, text }) => `${code}: ${text}`)
        .join('\n');
}

/** The log as its servers keep it. */
function copiesOf(servers: readonly NatsServer[], comes: Comes) {
  const asked = async <T>(what: (jsm: JetStreamManager) => Promise<T>): Promise<T> => {
    const nc = await connect({ servers: servers.map((s) => s.url), timeout: 5_000 });
    try {
      return await what(await jetstreamManager(nc, { checkAPI: false }));
    } finally {
      await nc.close();
    }
  };
  const info = (stream: string) => asked((jsm) => jsm.streams.info(stream));
  const leader = async () => {
    const named = (await info(streamNames.log)).cluster?.leader;
    const [found] = servers.filter((server) => server.name === named);
    if (found === undefined) throw new Error(`the log is led by ${named}`);
    return { leader: found, followers: servers.filter((server) => server !== found) };
  };
  const level = () =>
    comes('all copies of the log to be level', async () => {
      const { cluster } = await info(streamNames.log);
      return cluster?.replicas?.length === 2 && cluster.replicas.every((r) => r.current && r.lag === undefined);
    });
  const promote = (server: NatsServer) =>
    comes(`${server.name} to lead the log`, async () => {
      if ((await leader()).leader === server) return true;
      const nc = await connect({ servers: servers.map((s) => s.url) });
      await nc.request(
        `$JS.API.STREAM.LEADER.STEPDOWN.${streamNames.log}`,
        JSON.stringify({ placement: { preferred: server.name } }),
      );
      await nc.close();
      return false;
    });
  return { info, leader, level, promote };
}

/** Waits until a condition holds. @throws Error with the answers of the services when it does not come to hold */
type Comes = (what: string, condition: () => Promise<boolean>) => Promise<void>;

/** Readers of the services' logs and answers. */
function servicesOf(kronos: DemoInstallation) {
  const lines = async (service: string): Promise<Record<string, unknown>[]> =>
    (await readFile(join(kronos.directory, 'logs', `${service}.log`), 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const started = async (): Promise<string[]> =>
    (await Promise.all(['scorer', 'planner', 'executor', 'ledger'].map(lines)))
      .flat()
      .flatMap(({ message, url }) => (message === 'starting' ? [String(url)] : []));
  const ready = async (): Promise<boolean> => {
    const answers = await Promise.all((await started()).map((url) => fetch(`${url}/readyz`)));
    return answers.length === EXECUTORS + 3 && answers.every((answer) => answer.status === 200);
  };
  const complaints = async (): Promise<string> =>
    (await Promise.all((await started()).map(async (url) => (await fetch(`${url}/readyz`)).text()))).join('');
  const comes: Comes = async (what, condition) => {
    const holds = () => condition().catch(() => false);
    await until(holds, 180_000, async () => `${what}:\n${await complaints()}`);
  };
  return { lines, ready, comes };
}

/** The ids of the stored events, and the breaches of these tasks, in words. */
async function check(sim: Sim, { log }: DemoInstallation, tasks: readonly string[]) {
  const stored: string[] = [];
  const results: Parameters<typeof breaches>[1][number][] = [];
  for await (const { sequence, storedAt, event } of log.replay()) {
    if (event.type === 'unreadable') throw new Error(`sequence ${sequence}: ${event.problem}`);
    stored.push(event.id);
    switch (event.type) {
      case 'migration.started':
      case 'migration.observed':
      case 'migration.completed':
      case 'migration.failed':
      case 'migration.skipped':
        results.push({ sequence, storedAt, event });
    }
  }
  const found = [...breaches(sim, results, tasks, CAPS)];
  const twice = stored.filter((id, i) => stored.indexOf(id) !== i);
  if (twice.length > 0) found.push(`on the log twice: ${twice.join(', ')}`);
  return { stored, found };
}

/** The differences between the events that were read live and the stored ones, in words. @param seen their ids, read before the log */
function differences({ events }: Watch, seen: readonly string[], stored: readonly string[]): string[] {
  const found: string[] = [];
  const other = seen.findIndex((id, i) => id !== stored[i]);
  if (other !== -1)
    found.push(`event ${other + 1} of ${seen.length}: ${seen[other]} was read live, the log has ${stored[other]}`);
  // An attempt whose request could not be sent in time is tried again: that is no failure of the move.
  for (const event of events)
    if (event.type === 'migration.failed' && !event.data.retryPending)
      found.push(`${event.data.taskId}: ${event.data.errorType} ${event.data.reason.text}`);
  return found;
}

/** A system whose alarm cannot be asked for. */
type Silent = Omit<System, 'alarm'>;

function system(sim: Sim, servers: readonly NatsServer[], kronos: DemoInstallation, exits: readonly string[]): Silent {
  const log = watch(kronos);
  const { lines, ready, comes } = servicesOf(kronos);
  const { info, leader, level, promote } = copiesOf(servers, comes);
  const disable = (hosts: readonly string[]) => {
    for (const host of hosts) sim.act({ act: 'setHost', host, disabled: true });
  };
  const finished = (tasks: readonly string[]) => {
    const over = ended(log.events);
    return tasks.every((task) => over.has(task));
  };
  return {
    ...log,
    servers,
    leader,
    level,
    promote,
    async serverOfExecutor() {
      const connected = (await lines('executor')).flatMap(({ status, detail }) =>
        status === 'connected' || status === 'reconnected' ? [String(detail)] : [],
      );
      const found = servers.find(({ url }) => url.endsWith(connected[0] ?? 'none'));
      if (found === undefined) throw new Error(`the executors are connected to ${connected.join(', ')}`);
      return found;
    },
    async moving(started: number) {
      await comes('all services to be ready', ready);
      disable(LEAVING);
      const count = () => log.events.filter((event) => event.type === 'migration.started').length;
      await log.until(`${started} moves under way`, () => count() >= started, 90_000);
      const tasks = released(log.events);
      if (tasks.length !== TASKS) throw new Error(`${tasks.length} tasks were released, not ${TASKS}`);
      return tasks;
    },
    async aftermath() {
      await log.until('an end of every task', () => finished(released(log.events)), 120_000);
      const tasks = released(log.events);
      // A former leader that was cut off answers with the last sequence that it knows, until it learns of its successor.
      await level();
      const { found } = await check(sim, kronos, tasks);
      await comes('all services to be ready again', ready);
      // Life goes on: one more host is emptied, by the same processes.
      disable([LAST]);
      const all = () => released(log.events).length > TASKS && finished(released(log.events));
      await log.until('the host that is emptied afterwards', all, 60_000);

      const more = released(log.events).filter((task) => !tasks.includes(task));
      // Read before the log: the planner goes on deciding while the log is read.
      const seen = log.events.map(({ id }) => id);
      const after = await check(sim, kronos, more);
      found.push(...after.found, ...exits, ...differences(log, seen, after.stored));
      // The ack comes after the result.
      await comes('an empty work queue', async () => (await info(streamNames.migrations)).state.messages === 0);
      for (const host of [...LEAVING, LAST])
        for (const server of sim.cloud.servers.values())
          if (server.host === host) found.push(`${server.name} is still on ${host}`);
      return found;
    },
  };
}
