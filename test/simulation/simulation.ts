/** One run: a cloud, its NATS, several of each service, what goes wrong, and who watches. */
import { DAY_MS } from '@kronos/contracts';
import { SimulatedServer } from '@kronos/eventlog/simulated';
import { Approvers } from './approvers.ts';
import { audit } from './audit.ts';
import { Chance } from './chance.ts';
import { type Breach, Checker } from './checker/checker.ts';
import { rulesOf } from './checker/rulesOf.ts';
import { SimulatedRecord } from './cloudRecord.ts';
import { Commands } from './commands.ts';
import { Custodian } from './custodian.ts';
import { drawFaults, type Fault, kinds } from './faults.ts';
import { keptInventory } from './keptInventory.ts';
import { LastMessages } from './lastMessages.ts';
import { LogDigest } from './logDigest.ts';
import { LogLoss } from './logLoss.ts';
import { Moments } from './moments.ts';
import { CloudNetwork, NatsNetwork } from './network.ts';
import { OpenTasks } from './openTasks.ts';
import { Operator } from './operator.ts';
import { type Asked, type Drawn, draw, settingOf } from './options.ts';
import { Provisioner } from './provisioner.ts';
import { type Site, serviceNames } from './services.ts';
import { openCloud, usingCloud, watchCalls } from './simulatedCloud.ts';
import { cloudActs } from './stage/cloud.ts';
import { networkActs } from './stage/networks.ts';
import { notificationActs } from './stage/notifications.ts';
import { processActs } from './stage/processes.ts';
import type { Stage } from './stage/stage.ts';
import { allowWrites, streamActs } from './stage/streams.ts';
import { taskActs } from './stage/tasks.ts';
import { Supervisor } from './supervisor.ts';
import { watchLog } from './watchLog.ts';
import { Process, trueClock, World } from './world.ts';

const LOOK_MS = 10_000;
/** The audit takes no time of the simulation but that of its requests. */
const AUDIT_MS = 3_600_000;

export interface Report {
  readonly asked: Asked;
  readonly drawn: Drawn;
  readonly faults: readonly Fault[];
  readonly breaches: readonly Breach[];
  /** Digest of every message that was stored, with its sequence and time. */
  readonly digest: string;
  readonly events: number;
  readonly messages: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly cpuSeconds: number;
}

export interface Observer {
  readonly onBreach?: (breach: Breach) => void;
  readonly onProgress?: (day: number, text: string) => void;
  readonly onLine?: (process: string, line: string) => void;
  /** Ends the run at the first breach. */
  readonly stopAtBreach?: boolean;
}

export async function simulate(asked: Asked, observer: Observer = {}): Promise<Report> {
  const cpu = process.cpuUsage();
  const chance = new Chance(`run/${asked.seed}`);
  const drawn = draw(asked);
  const setting = settingOf(asked, drawn);
  const { aggregates, config, policies, scenario } = setting;
  const durationMs = asked.days * DAY_MS;
  const intervalMs = drawn.intervalSeconds * 1000;
  const all = drawFaults(chance.fork('faults'), drawn, durationMs);
  const faults = asked.only === null ? all : all.filter(({ number }) => asked.only?.has(number) === true);

  const world = new World(chance);
  const right = trueClock(world);
  const sim = openCloud(scenario, asked.seed, world);
  const { cloud } = sim;

  // ---------------------------------------------------------------- who watches
  const record = new SimulatedRecord(cloud, scenario);
  const checker = new Checker(
    rulesOf(drawn, setting, cloud),
    record,
    () => world.wall,
    (breach) => {
      observer.onBreach?.(breach);
      if (observer.stopAtBreach === true) ended = true;
    },
  );
  let ended = false;
  const server = new SimulatedServer({
    clock: right,
    idsFirst: drawn.idsFirst,
    onStored: (stream, message) => onStored(stream, message),
    onDelivered: (reply) => checker.queue.delivered(reply),
    onAnswered: (reply, answer) => checker.queue.answered(reply, answer),
  });
  const nats = new NatsNetwork(world, server, chance, drawn.taskPollMs);
  nats.onAnswer = (process, reply) => checker.queue.answering(process, reply);
  const cloudNetwork = new CloudNetwork(world, sim, chance);
  watchCalls(sim, {
    read: (path) => checker.cloud.read(path),
    called(made) {
      record.requested(made.requestId);
      if (checker.cloud.called({ ...made, leftMs: cloudNetwork.leftMs }) === 'former') record.disown(made.requestId);
    },
  });

  const { witness, notifications } = keptInventory(world, chance, drawn, config.engine.optOut, sim, cloudNetwork);

  // ---------------------------------------------------------------- processes
  const site: Site = {
    config: usingCloud(config, sim),
    policies,
    nats,
    cloud: cloudNetwork,
    rabbit: notifications?.rabbit ?? null,
    onLine: observer.onLine ?? (() => undefined),
    logLevel: observer.onLine === undefined ? 'silent' : asked.verbose ? 'debug' : 'info',
  };
  const supervisor = new Supervisor({
    world,
    chance,
    site,
    services: serviceNames,
    replicas: asked.replicas,
    onStart(service, process, configuration) {
      if (service === 'scorer') witness?.started(process, world.wall);
      checker.log.configured(process, configuration);
    },
  });

  // ---------------------------------------------------------------- what goes wrong
  const commands = new Commands(server, () => world.wall);
  const custodian = new Custodian(world, commands);
  const approvers =
    drawn.approval === 'manual' ? new Approvers(world, chance, drawn.approvalTtlSeconds * 1000, commands) : null;
  const digest = new LogDigest();
  const lastMessages = new LastMessages();
  const openTasks = new OpenTasks();
  const moments = new Moments();
  const onStored = watchLog({
    world,
    settleCloud: () => sim.settle(),
    digest,
    checker,
    record,
    witness,
    lastMessages,
    openTasks,
    moments,
    approvers,
  });

  // ---------------------------------------------------------------- who provisions, and states which log it is
  const provisioner = new Provisioner({
    world,
    chance,
    nats,
    config,
    aggregates,
    ackWaitSeconds: drawn.ackWaitSeconds,
    onLine: (process, line) => observer.onLine?.(process, line),
  });
  const logLoss = new LogLoss(world, server, provisioner, (streams) => {
    custodian.forget();
    openTasks.forget();
    checker.log.wiped(streams);
  });

  const operator = new Operator(world, sim, record, openTasks, aggregates, commands);
  const stage: Stage = {
    aggregates,
    ...processActs(world, supervisor, witness),
    ...networkActs(supervisor, nats, cloudNetwork),
    ...cloudActs(sim, record, scenario),
    ...streamActs({ world, server, aggregates, custodian, lastMessages, logLoss }),
    ...taskActs(world, server, supervisor, openTasks),
    ...notificationActs(supervisor, notifications),
    command: (type, aggregate, data) => void commands.append(type, aggregate, data),
    closeAbandoned: () => operator.closeAbandoned(),
    // Snapshots are taken at multiples of the interval.
    nextSnapshotMs: () => intervalMs - (world.wall % intervalMs),
    after: (ms, act) => void world.after(ms, act),
    onNext: (type, act) => moments.onNext(type, act),
  };

  // ---------------------------------------------------------------- the run
  const ready = provisioner.begin();
  let provisioned = false;
  ready.then(
    () => {
      provisioned = true;
    },
    (error: unknown) => world.fail(error),
  );
  await world.run(60_000, () => provisioned);
  const beginMs = world.now;
  for (const name of supervisor.names()) world.after(chance.between(0, 5000), () => supervisor.start(name));
  for (const { kind, source, atMs } of faults) {
    const own = chance.fork(`fault/${source}`);
    world.at(beginMs + 30_000 + atMs, () => {
      if (!calm) kinds[kind]?.act(stage, own);
    });
  }
  let calm = false;
  operator.begin();
  const look = (): void => {
    sim.settle();
    checker.cloud.look(cloud.servers.values(), cloud.hosts.keys());
    world.after(LOOK_MS, look);
  };
  look();
  const over = (): boolean => ended;
  for (let day = 0; day < asked.days && !ended; day += 0.125) {
    await world.run(beginMs + Math.min(asked.days, day + 0.125) * DAY_MS, over);
    observer.onProgress?.(Math.min(asked.days, day + 0.125), summary());
  }
  if (!ended) {
    // From here on nothing goes wrong any more, and everything that must finish finishes.
    calm = true;
    moments.clear();
    nats.calm();
    cloudNetwork.calm();
    notifications?.rabbit.calm();
    sim.act({ act: 'mendAll' });
    allowWrites(server);
    custodian.skipAllNow();
    logLoss.stateNow();
    for (const process of supervisor.processes()) {
      witness?.skewed(process.name, 0, world.wall);
      process.skewMs = 0;
      if (process.paused) process.resume();
    }
    for (const host of cloud.hosts.keys()) {
      stage.act({ act: 'startHost', host });
      stage.act({ act: 'setHost', host, disabled: false, up: true, forcedDown: false });
    }
    operator.mend();
    const calmMs = world.wall;
    for (const aggregate of ['_all_', ...aggregates]) commands.append('aggregate.resumed', aggregate, {});
    // The longest wait: a task that no executor started ends one plan_ttl after its last start time.
    const longestMs = 2 * drawn.planTtlSeconds * 1000 + 3_600_000;
    await world.run(
      world.now + longestMs,
      () => ended || (world.wall - calmMs > 1_800_000 && checker.unfinished(calmMs).length === 0),
    );
    checker.settled(calmMs, aggregates);
  }
  if (!ended) {
    const auditor = new Process(world, 'auditor', chance);
    let done = false;
    const audited = nats
      .connect(auditor)
      .then((log) =>
        audit(
          log,
          chance.fork('audit'),
          (rule, text) => checker.breach(rule, text),
          witness === null ? null : (snapshot, process, storedMs) => witness.judge(snapshot, process, storedMs),
        ),
      );
    audited.then(
      () => {
        done = true;
      },
      (error: unknown) => world.fail(error),
    );
    await world.run(world.now + AUDIT_MS, () => done);
    if (!done) throw new Error('the audit did not end');
  }
  supervisor.end();

  function summary(): string {
    const { counts } = checker;
    const of = (name: string): number => counts.get(name) ?? 0;
    return `${of('cycle.decided')} decisions, ${of('plans')} plans, ${of('posts')} requests, ${of('finals')} results, ${checker.breaches.length} breaches`;
  }
  const used = process.cpuUsage(cpu);
  return {
    asked,
    drawn,
    faults,
    breaches: checker.breaches,
    digest: digest.hex(),
    events: world.events,
    messages: digest.messages,
    counts: Object.fromEntries([...checker.counts, ...(witness?.counts ?? [])].sort(([a], [b]) => (a < b ? -1 : 1))),
    cpuSeconds: (used.user + used.system) / 1e6,
  };
}
