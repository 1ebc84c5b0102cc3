/**
 * One run of moves between cells: a cloud of two cells, several scorers, planners and executors, an operator who asks for plans,
 * users who confirm, revert and delete, and faults. Nothing is balanced meanwhile.
 */
import { defaultConfig } from '@kronos/config';
import { streamNames } from '@kronos/contracts';
import { SimulatedServer, type StoredMessage } from '@kronos/eventlog/simulated';
import { type ActInput, parseScenario, type ScenarioInput } from '@kronos/simcloud';
import { type CellBreach, CellsChecker } from './cellsChecker.ts';
import { Chance } from './chance.ts';
import { Commands } from './commands.ts';
import { LogDigest } from './logDigest.ts';
import { LogLoss } from './logLoss.ts';
import { CloudNetwork, NatsNetwork } from './network.ts';
import { Provisioner } from './provisioner.ts';
import type { ServiceName, Site } from './services.ts';
import { actIfPossible, openCloud, usingCloud, watchCalls } from './simulatedCloud.ts';
import { Supervisor } from './supervisor.ts';
import { trueClock, World } from './world.ts';

export interface CellsAsked {
  readonly seed: number;
  readonly hours: number;
  readonly onLine?: (process: string, line: string) => void;
}

export interface CellsReport {
  readonly breaches: readonly CellBreach[];
  /** Digest of every message that was stored, with its sequence and time. */
  readonly digest: string;
  readonly counts: Readonly<Record<string, number>>;
}

const AGGREGATES = ['old', 'new'] as const;
const HOSTS = ['o1', 'o2', 'n1', 'n2'] as const;
const OVER = new Set(['finished', 'error', 'confirmed', 'reverted']);
const SERVICES: readonly ServiceName[] = ['scorer', 'planner', 'executor'];
const REPLICAS = 2;
const PROVISION_MS = 60_000;
/** How often an operator looks for servers that nobody moves any more. */
const MEND_MS = 900_000;
/** After the faults: as long as a task may wait, and a move take. */
const CALM_MS = 6 * 3_600_000;

const scenario = (): ScenarioInput => {
  const host = (name: string, cell: string, trait: string) => ({
    name,
    cell,
    traits: [trait],
    vcpus: 16,
    memoryMb: 65_536,
  });
  const size = { vcpus: 2, memoryMb: 2048, diskGb: 1 };
  return {
    crossCellResize: true,
    hosts: [
      ...['o1', 'o2'].map((name) => host(name, 'cell1', 'CUSTOM_OLD')),
      ...['n1', 'n2'].map((name) => host(name, 'cell2', 'CUSTOM_NEW')),
    ],
    aggregates: [
      { name: 'old', hosts: ['o1', 'o2'] },
      { name: 'new', hosts: ['n1', 'n2'] },
    ],
    flavors: [
      { name: 'any', ...size },
      { name: 'old.small', ...size, extraSpecs: { 'trait:CUSTOM_OLD': 'required' } },
      { name: 'new.small', ...size, extraSpecs: { 'trait:CUSTOM_NEW': 'required' } },
    ],
    servers: Array.from({ length: 10 }, (_, i) => ({
      name: `vm-${i}`,
      host: ['o1', 'o2', 'n1'][i % 3] ?? 'o1',
      flavor: 'any',
      status: i % 4 === 3 ? ('SHUTOFF' as const) : ('ACTIVE' as const),
    })),
  };
};

export async function simulateCells({ seed, hours, onLine }: CellsAsked): Promise<CellsReport> {
  const chance = new Chance(`cells/${seed}`);
  const world = new World(chance);
  const right = trueClock(world);
  const sim = openCloud(parseScenario(scenario()), seed, world);
  const { cloud } = sim;
  const drawn = chance.fork('options');
  const confirm = drawn.pick(['auto', 'manual'] as const);
  const config = {
    ...defaultConfig,
    engine: {
      ...defaultConfig.engine,
      aggregates: [...AGGREGATES],
      balance: false,
      dryRun: false,
      evaluationInterval: 300,
      instanceCooldown: 60,
      instanceQuarantineSeconds: 60,
    },
    executor: {
      ...defaultConfig.executor,
      pollInterval: drawn.pick([2, 5, 10]),
      retryBackoff: 5,
      maxRetries: drawn.int(0, 2),
    },
    cells: {
      ...defaultConfig.cells,
      aggregates: [
        { cell: 'cell1', aggregate: 'old' },
        { cell: 'cell2', aggregate: 'new' },
      ],
      networksShared: true,
      volumesShared: true,
      confirm,
      verifySeconds: drawn.pick([0, 30]),
      verifyTimeout: 120,
      approvalTtl: 1800,
      planTtl: 3600,
      maxConcurrentResizes: drawn.int(1, 4),
      maxOutboundPerHost: 2,
      maxInboundPerHost: 2,
    },
    nats: { ...defaultConfig.nats, ackWait: drawn.pick([10, 30]) },
  };

  // ---------------------------------------------------------------- who watches
  const before = new Map([...cloud.servers.values()].map(({ uuid, vmState }) => [uuid, vmState as string]));
  const checker = new CellsChecker(
    {
      server: (id) => cloud.servers.get(id) ?? null,
      hostsOf: (name) => [...cloud.aggregates.values()].find((each) => each.name === name)?.hosts ?? [],
    },
    before,
    () => world.wall,
  );
  const digest = new LogDigest();
  const onStored = (stream: string, message: StoredMessage): void => {
    digest.stored(stream, message);
    if (stream !== 'KRONOS_LOG') return;
    sim.settle();
    checker.stored(message);
    people(JSON.parse(new TextDecoder().decode(message.data)) as Event);
  };
  const server = new SimulatedServer({
    clock: right,
    idsFirst: drawn.flip(0.7),
    onStored,
    onDelivered: () => undefined,
    onAnswered: () => undefined,
  });
  const nats = new NatsNetwork(world, server, chance, 5_000);
  watchCalls(sim, { called: (made) => checker.called(made) });
  const cloudNetwork = new CloudNetwork(world, sim, chance);
  const site: Site = {
    config: usingCloud(config, sim),
    policies: [],
    nats,
    cloud: cloudNetwork,
    rabbit: null,
    onLine: onLine ?? (() => undefined),
    logLevel: onLine === undefined ? 'silent' : 'info',
  };

  // ---------------------------------------------------------------- processes
  const supervisor = new Supervisor({ world, chance, site, services: SERVICES, replicas: REPLICAS });

  // ---------------------------------------------------------------- people
  interface Event {
    readonly type: string;
    readonly aggregate: string;
    readonly data: {
      readonly planId: string;
      readonly taskId: string;
      readonly serverId: string;
      readonly release?: string;
    };
  }
  let calm = false;
  const commands = new Commands(server, () => world.wall);
  const command = (type: string, aggregate: string, data: object): void => void commands.append(type, aggregate, data);
  const moods = chance.fork('people');
  /** What cannot be done to this cloud now is not done. */
  const attempt = (act: () => void): void => {
    try {
      act();
    } catch {
      // Nova refuses it, or the server is gone.
    }
  };
  const act = (one: ActInput): void => void actIfPossible(sim, one);
  const user = { userId: 'user', projectId: 'admin', requestId: 'req-user' };
  function people({ type, aggregate, data }: Event): void {
    const soon = (meanMs: number, act: () => void): void => void world.after(moods.exponential(meanMs), act);
    if (type === 'plan.proposed' && data.release === 'proposed') {
      const answer = moods.flip(0.9) ? 'plan.approved' : 'plan.rejected';
      soon(60_000, () => command(answer, aggregate, { planId: data.planId, steps: null }));
    }
    if (type === 'migration.started' && moods.flip(0.05))
      soon(30_000, () =>
        command(moods.pick(['migration.cancelled', 'migration.aborted']), aggregate, { taskId: data.taskId }),
      );
    if (type === 'migration.verifying') {
      const what = calm ? 1 : moods.next();
      // A user, and Nova itself, may be faster than Kronos.
      if (what < 0.2)
        soon(20_000, () =>
          attempt(() =>
            cloud.endResize(world.wall, user, data.serverId, what < 0.1 ? 'confirmResize' : 'revertResize'),
          ),
        );
      else if (what < 0.24) soon(20_000, () => act({ act: 'deleteServer', server: data.serverId }));
      else if (what < 0.35)
        soon(20_000, () =>
          command(moods.pick(['migration.confirmAsked', 'migration.revertAsked']), aggregate, { taskId: data.taskId }),
        );
    }
    if (type === 'migration.verified' && confirm === 'manual') {
      const answer = moods.flip(0.6) ? 'migration.confirmAsked' : 'migration.revertAsked';
      soon(120_000, () => command(answer, aggregate, { taskId: data.taskId }));
    }
  }
  const wishes = chance.fork('wishes');
  const ask = (): void => {
    if (calm) return;
    const [from, to] = wishes.flip(0.5) ? (['old', 'new'] as const) : (['new', 'old'] as const);
    const flavorMap = wishes.flip(0.5) ? { any: `${to}.small`, [`${from}.small`]: `${to}.small` } : {};
    command('cells.moveAsked', from, {
      from: [from],
      to,
      flavorMap,
      servers: null,
      project: null,
      limit: wishes.int(1, 4),
    });
    world.after(wishes.between(120_000, 600_000), ask);
  };

  // ---------------------------------------------------------------- who provisions, states which log it is, and mends
  const provisioner = new Provisioner({
    world,
    chance,
    nats,
    config,
    aggregates: AGGREGATES,
    ackWaitSeconds: config.nats.ackWait,
    onLine: (process, line) => onLine?.(process, line),
  });
  const logLoss = new LogLoss(world, server, provisioner, () => checker.wiped());
  function loseLog(): void {
    if (logLoss.lasts) return;
    const own = chance.fork(`lost/${provisioner.installations}`);
    const streams = own.pick([[streamNames.log], [streamNames.log], [streamNames.log, streamNames.migrations]]);
    const [goneMs, named] = [own.exponential(20_000), own.flip(0.5)];
    logLoss.begin(streams, goneMs, named, own.exponential(600_000));
  }
  /** Brings back what Kronos has called damaged, and ends the moves of a log that is lost. */
  const mend = (): void => {
    sim.settle();
    for (const id of checker.left()) {
      const one = cloud.servers.get(id);
      const vmState = before.get(id);
      if (one?.taskState != null) continue;
      if (one === undefined || one.vmState === vmState) checker.mended(id);
      else if (one.vmState === 'resized')
        attempt(() => cloud.endResize(world.wall, user, id, moods.pick(['confirmResize', 'revertResize'])));
      else if (vmState === 'active' || vmState === 'stopped') act({ act: 'setServer', server: id, vmState });
    }
  };
  const mendAgain = (): void => {
    if (calm) return;
    mend();
    world.after(MEND_MS, mendAgain);
  };

  // ---------------------------------------------------------------- what goes wrong
  const faults = chance.fork('faults');
  const trouble = (): void => {
    if (calm) return;
    const service = faults.flip(0.7) ? 'executor' : faults.pick(SERVICES);
    const replica = faults.pick(supervisor.names(service));
    const name = supervisor.processOf(replica)?.name ?? '';
    const ms = faults.exponential(20_000);
    const id = faults.pick([...before.keys()]);
    const once = { api: 'compute', method: 'POST', path: '/action$', probability: 1, times: 1 } as const;
    const todo: readonly (() => void)[] = [
      () => supervisor.kill(replica, ms),
      () => supervisor.kill(replica, ms),
      () => supervisor.pause(replica, ms),
      () => nats.cut(name, ms),
      () => nats.stall(name, ms),
      () => cloudNetwork.refuse(name, ms),
      () =>
        act({
          act: 'faultApi',
          fault: { ...once, effect: { kind: 'cut', when: faults.pick(['before', 'after', 'middle']) } },
        }),
      () =>
        act({
          act: 'faultApi',
          fault: { ...once, effect: { kind: 'status', status: 504, processed: faults.flip(0.5) } },
        }),
      () =>
        act({
          act: 'faultServer',
          server: id,
          fault: { kind: faults.pick(['snapshot', 'spawn', 'confirm', 'revert']), times: 1 },
        }),
      () => act({ act: 'faultServer', server: id, fault: { kind: 'slow', seconds: 300, times: 1 } }),
      () => {
        // Its nova-compute dies, mostly while it has a part in a move.
        const moving = cloud.migrations.filter(({ status }) => !OVER.has(status));
        const ends = moving.flatMap(({ source, chosen }) => (chosen === null ? [source] : [source, chosen]));
        const host = faults.pick(ends.length > 0 && faults.flip(0.8) ? ends : HOSTS);
        checker.counts.set('killHost', (checker.counts.get('killHost') ?? 0) + 1);
        act({ act: 'killHost', host });
        world.after(faults.exponential(300_000), () => act({ act: 'startHost', host }));
      },
      () => faults.flip(0.1) && loseLog(),
    ];
    faults.pick(todo)();
    world.after(faults.exponential(40_000), trouble);
  };

  // ---------------------------------------------------------------- the run
  await world.runThrough('provisioning', provisioner.begin(), PROVISION_MS);
  for (const name of supervisor.names()) supervisor.start(name);
  world.after(400_000, ask);
  world.after(400_000, trouble);
  world.after(MEND_MS, mendAgain);
  await world.run(world.now + hours * 3_600_000);
  calm = true;
  nats.calm();
  cloudNetwork.calm();
  sim.act({ act: 'mendAll' });
  for (const process of supervisor.processes()) if (process.paused) process.resume();
  for (const host of HOSTS) act({ act: 'startHost', host });
  await world.run(world.now + 1_800_000);
  await world.run(world.now + CALM_MS, () => !logLoss.lasts && checker.unfinished().length === 0);
  // What was left is brought back, and found to be so.
  for (let times = 0; times < 3; times++) {
    mend();
    await world.run(world.now + 60_000);
  }
  sim.settle();
  checker.settled();
  supervisor.end();
  return {
    breaches: checker.breaches,
    digest: digest.hex(),
    counts: Object.fromEntries([...checker.counts].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
