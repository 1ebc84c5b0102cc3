/**
 * One run of moves between cells: a cloud of two cells, several scorers, planners and executors, an operator who asks for plans,
 * users who confirm, revert and delete, and faults. Nothing is balanced meanwhile.
 */
import { byText, streamNames } from '@kronos/contracts';
import { SimulatedServer, type StoredMessage } from '@kronos/eventlog/simulated';
import type { InProcessSim } from '@kronos/simcloud';
import { type CellBreach, CellsChecker } from './cellsChecker.ts';
import { beginFaults, type CellsStage } from './cellsFaults.ts';
import { CellsPeople } from './cellsPeople.ts';
import { AGGREGATES, cellsScenario, drawCellsConfig, HOSTS } from './cellsSetting.ts';
import { Chance } from './chance.ts';
import { LogLoss } from './logLoss.ts';
import { CloudNetwork, NatsNetwork } from './network.ts';
import { Commands } from './people/commands.ts';
import { Provisioner } from './people/provisioner.ts';
import { thisRelease } from './releases.ts';
import type { ServiceName, Site } from './services.ts';
import { actIfPossible, openCloud, watchCalls } from './simulatedCloud.ts';
import { networkActs } from './stage/networks.ts';
import { processActs } from './stage/processes.ts';
import { Supervisor } from './supervisor.ts';
import { Trouble } from './trouble.ts';
import { LogDigest } from './watch/logDigest.ts';
import { readMessage } from './watch/readMessage.ts';
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

/** Statuses of a cross-cell resize that has ended. */
const OVER = new Set(['finished', 'error', 'confirmed', 'reverted']);
const SERVICES: readonly ServiceName[] = ['scorer', 'planner', 'executor'];
const REPLICAS = 2;
const TASK_POLL_MS = 5_000;
const PROVISION_MS = 60_000;
/** After the faults: as long as a task may wait, and a move take. */
const CALM_MS = 6 * 3_600_000;

const siteOf = (outside: Pick<Site, 'config' | 'nats' | 'cloud'>, onLine: CellsAsked['onLine']): Site => ({
  ...outside,
  policies: [],
  rabbit: null,
  onLine: onLine ?? (() => undefined),
  logLevel: onLine === undefined ? 'silent' : 'info',
});

export async function simulateCells({ seed, hours, onLine }: CellsAsked): Promise<CellsReport> {
  const chance = new Chance(`cells/${seed}`);
  const world = new World(chance);
  const sim = openCloud(cellsScenario(), seed, world);
  const { cloud } = sim;
  const drawn = chance.fork('options');
  const config = drawCellsConfig(drawn);

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
    if (stream === streamNames.log) onEvent({ sim, checker, people }, message);
  };
  const server = new SimulatedServer({ clock: trueClock(world), idsFirst: drawn.flip(0.7), onStored });
  const nats = new NatsNetwork(world, server, chance, TASK_POLL_MS);
  watchCalls(sim, { called: (made) => checker.called(made) });
  const cloudNetwork = new CloudNetwork(world, sim, chance);
  const supervisor = new Supervisor({
    world,
    chance,
    releases: { this: thisRelease(siteOf({ config, nats, cloud: cloudNetwork }, onLine), sim), other: null },
    services: SERVICES,
    replicas: REPLICAS,
  });
  const commands = new Commands(server, () => world.wall);
  const people = new CellsPeople({ world, chance, sim, checker, commands, before, confirm: config.cells.confirm });
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
  const stage = stageOf({ world, chance, sim, checker, supervisor, nats, cloudNetwork, provisioner, logLoss }, before);

  await world.runThrough('provisioning', provisioner.begin(), PROVISION_MS);
  for (const name of supervisor.names()) supervisor.start(name);
  people.begin();
  const trouble = new Trouble(world);
  beginFaults(trouble, chance, stage, SERVICES);
  people.beginMending();
  await world.run(world.now + hours * 3_600_000);
  people.calm();
  trouble.end();
  calm({ sim, supervisor, nats, cloudNetwork });
  await world.run(world.now + 1_800_000);
  await world.run(world.now + CALM_MS, () => !logLoss.lasts && checker.unfinished().length === 0);
  // The operator brings the rest back, and Kronos has to notice it.
  for (let times = 0; times < 3; times++) {
    people.mend();
    await world.run(world.now + 60_000);
  }
  sim.settle();
  checker.settled();
  supervisor.end();
  return {
    breaches: checker.breaches,
    digest: digest.hex(),
    counts: Object.fromEntries([...checker.counts].sort(([a], [b]) => byText(a, b))),
  };
}

/** The checker and the people learn of an event, on a cloud that is up to date. */
function onEvent(
  { sim, checker, people }: Pick<CellsParts, 'sim' | 'checker'> & { readonly people: CellsPeople },
  message: StoredMessage,
): void {
  sim.settle();
  checker.stored(message);
  const event = readMessage(message);
  if (event !== null) people.stored(event);
}

/** The parts of a run with two cells that faults act on. */
interface CellsParts {
  readonly world: World;
  readonly chance: Chance;
  readonly sim: InProcessSim;
  readonly checker: CellsChecker;
  readonly supervisor: Supervisor;
  readonly nats: NatsNetwork;
  readonly cloudNetwork: CloudNetwork;
  readonly provisioner: Provisioner;
  readonly logLoss: LogLoss;
}

function stageOf(parts: CellsParts, before: ReadonlyMap<string, string>): CellsStage {
  const { world, chance, sim, checker, supervisor, nats, cloudNetwork, provisioner, logLoss } = parts;
  const { cloud } = sim;
  return {
    ...processActs(world, supervisor, null),
    ...networkActs(supervisor, nats, cloudNetwork),
    servers: [...before.keys()],
    act: (act) => actIfPossible(sim, act),
    hosts: () => HOSTS,
    movingHosts: () =>
      cloud.migrations
        .filter(({ status }) => !OVER.has(status))
        .flatMap(({ source, chosen }) => (chosen === null ? [source] : [source, chosen])),
    killHost(host, downMs) {
      checker.counts.set('killHost', (checker.counts.get('killHost') ?? 0) + 1);
      actIfPossible(sim, { act: 'killHost', host });
      world.after(downMs, () => actIfPossible(sim, { act: 'startHost', host }));
    },
    loseLog() {
      if (logLoss.lasts) return;
      const own = chance.fork(`lost/${provisioner.installations}`);
      const streams = own.pick([[streamNames.log], [streamNames.log], [streamNames.log, streamNames.migrations]]);
      const [goneMs, named] = [own.exponential(20_000), own.flip(0.5)];
      logLoss.begin(streams, goneMs, named, own.exponential(600_000));
    },
  };
}

/** Nothing is wrong any more. */
function calm({
  sim,
  supervisor,
  nats,
  cloudNetwork,
}: Pick<CellsParts, 'sim' | 'supervisor' | 'nats' | 'cloudNetwork'>) {
  nats.calm();
  cloudNetwork.calm();
  sim.act({ act: 'mendAll' });
  for (const process of supervisor.processes()) if (process.paused) process.resume();
  for (const host of HOSTS) actIfPossible(sim, { act: 'startHost', host });
}
