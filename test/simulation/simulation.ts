/** One run: a cloud, its NATS, several of each service, what goes wrong, and who watches. */
import { DAY_MS, streamNames, subject } from '@kronos/contracts';
import { SimulatedServer } from '@kronos/eventlog/simulated';
import { Approvers } from './approvers.ts';
import { audit } from './audit.ts';
import { Chance } from './chance.ts';
import { type Breach, Checker } from './checker/checker.ts';
import { rulesOf } from './checker/rulesOf.ts';
import { SimulatedRecord } from './cloudRecord.ts';
import { Commands, publish } from './commands.ts';
import { Custodian } from './custodian.ts';
import { drawFaults, type Fault, kinds, type Stage } from './faults.ts';
import { FORGED, forge } from './forgery.ts';
import { keptInventory } from './keptInventory.ts';
import { LastMessages } from './lastMessages.ts';
import { LogDigest } from './logDigest.ts';
import { LogLoss } from './logLoss.ts';
import { Moments } from './moments.ts';
import { CloudNetwork, NatsNetwork } from './network.ts';
import { OpenTasks } from './openTasks.ts';
import { isStuck } from './operator.ts';
import { type Asked, type Drawn, draw, settingOf } from './options.ts';
import { Provisioner } from './provisioner.ts';
import { readMessage } from './readMessage.ts';
import { type Site, serviceNames } from './services.ts';
import { actIfPossible, openCloud, usingCloud, watchCalls } from './simulatedCloud.ts';
import { Supervisor } from './supervisor.ts';
import { watchLog } from './watchLog.ts';
import { Process, trueClock, World } from './world.ts';

const LOOK_MS = 10_000;
/** The audit takes no time of the simulation but that of its requests. */
const AUDIT_MS = 3_600_000;
/** How often an operator looks for servers that are stuck. */
const RESET_MS = 1_800_000;
/** What a killed process has sent arrives within this. */
const LAST_WORDS_MS = 60_000;

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
  const processOf = (name: string): Process | null => supervisor.processOf(name);

  // ---------------------------------------------------------------- what goes wrong
  let repeated = 0;
  const commands = new Commands(server, () => world.wall);
  const command: Stage['command'] = (type, aggregate, data) => void commands.append(type, aggregate, data);
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

  const stage: Stage = {
    aggregates,
    processes: (service) => supervisor.names(service),
    kill: (name, ms) => supervisor.kill(name, ms),
    terminate: (name, ms) => supervisor.terminate(name, ms),
    pause: (name, ms) => supervisor.pause(name, ms),
    skew(name, ms) {
      const process = processOf(name);
      if (process === null) return;
      process.skewMs = ms;
      witness?.skewed(process.name, ms, world.wall);
    },
    reconfigure: (name, downMs, lastsMs) => supervisor.reconfigure(name, downMs, lastsMs),
    cut: (name, ms) => nats.cut(processOf(name)?.name ?? '', ms),
    stall: (name, ms) => nats.stall(processOf(name)?.name ?? '', ms),
    refuse: (name, ms) => cloudNetwork.refuse(processOf(name)?.name ?? '', ms),
    natsWeather: (weather) => Object.assign(nats.weather, weather),
    httpDelay(ms) {
      cloudNetwork.weather.delayMs = ms;
    },
    act: (act) => actIfPossible(sim, act),
    hosts: () => [...cloud.hosts.keys()],
    movingHosts: () => record.running().flatMap(({ source, dest }) => (dest === null ? [source] : [source, dest])),
    closeAbandoned() {
      sim.settle();
      for (const { taskId, server } of openTasks.all())
        if (cloud.migrationsByServer.get(server)?.some((one) => cloud.abandoned(one)) === true)
          stage.command('migration.closed', stage.aggregates.find((each) => taskId.startsWith(`${each}-`)) ?? '', {
            taskId,
          });
    },
    aggregateOf: (host) => scenario.aggregates.find((each) => each.hosts.includes(host))?.name ?? aggregates[0] ?? '',
    servers: () => [...cloud.servers.values()].map(({ uuid, name, host }) => ({ id: uuid, name, host })),
    command,
    loseTasks(downMs) {
      for (const name of supervisor.names('executor')) supervisor.kill(name, downMs);
      const starts = supervisor.starts('executor');
      // By then what they had sent has arrived.
      world.after(LAST_WORDS_MS, () => {
        // An executor that was back meanwhile has tasks in its hands.
        if (supervisor.starts('executor') !== starts) return;
        const queue = server.stream(streamNames.migrations);
        if (queue === undefined) return;
        for (let sequence = queue.first; sequence <= queue.last; sequence++) {
          const message = queue.get(sequence);
          if (message === undefined) continue;
          const task = readMessage(message);
          if (task?.type === 'migration.requested' && openTasks.isWaiting(task.data.taskId)) queue.remove(sequence);
        }
      });
    },
    repeatTask(which) {
      const { tasks } = lastMessages;
      const one = which === 'newest' ? tasks.at(-1) : tasks.length === 0 ? undefined : which.pick(tasks);
      if (one === undefined) return;
      publish(server, one.subject, one.data, `again-${++repeated}`);
    },
    garble(aggregate, skippedAfterMs) {
      const sequence = publish(server, subject('controls', aggregate), new Uint8Array(), `garbled-${++repeated}`);
      if (sequence !== null) custodian.skipAfter(sequence, aggregate, skippedAfterMs);
    },
    fill(name, ms) {
      const stream = server.stream(name);
      if (stream === undefined) return;
      stream.full = true;
      world.after(ms, () => {
        stream.full = false;
      });
    },
    forge(own) {
      const { family, body } = forge(own, lastMessages.ofType);
      const aggregate = own.pick(aggregates);
      const sequence = publish(server, subject(family, aggregate), body, `${FORGED}${own.int(0, 1e9)}`);
      if (sequence !== null) custodian.skipAfter(sequence, aggregate, own.exponential(300_000));
    },
    wipe: (streams, goneMs, named, statedAfterMs) => logLoss.begin(streams, goneMs, named, statedAfterMs),
    stopBroker: (host, ms, keeps) => notifications?.rabbit.stop(host, ms, keeps),
    cutBroker: (name, own) => notifications?.rabbit.cut(processOf(name)?.name ?? '', own),
    post(post) {
      if (notifications !== null) Object.assign(notifications.rabbit.post, post);
    },
    dropQueue: () => notifications?.rabbit.dropQueue(),
    unversioned(host, yes) {
      if (yes) notifications?.notices.unversioned.add(host);
      else notifications?.notices.unversioned.delete(host);
    },
    openTasks: () => openTasks.all(),
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
  /**
   * What nova-conductor lost, or a compute that died, never ends by itself: an operator resets the state of such servers.
   * A server that arrived on a dead host is in ERROR until an operator has looked.
   */
  const resetStuck = (): void => {
    sim.settle();
    stage.closeAbandoned();
    for (const { uuid, host, vmState } of cloud.servers.values()) {
      if (isStuck(cloud, uuid, world.wall)) stage.act({ act: 'setServer', server: uuid, taskState: null });
      if (vmState === 'error' && record.open(host)) stage.act({ act: 'setServer', server: uuid, vmState: 'active' });
    }
    world.after(RESET_MS, resetStuck);
  };
  world.after(RESET_MS, resetStuck);
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
    for (const name of Object.values(streamNames)) {
      const stream = server.stream(name);
      if (stream !== undefined) stream.full = false;
    }
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
    resetStuck();
    const calmMs = world.wall;
    command('aggregate.resumed', '_all_', {});
    for (const aggregate of aggregates) command('aggregate.resumed', aggregate, {});
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
