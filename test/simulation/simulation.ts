/** One run: a cloud, its NATS, several of each service, what goes wrong, and who watches. */
import { byText, DAY_MS } from '@kronos/contracts';
import type { Asked } from './asked.ts';
import { Chance } from './chance.ts';
import type { Breach, Checker } from './checker/checker.ts';
import { drawFaults, type Fault, kinds } from './faults.ts';
import { type KeptInventory, keptInventory } from './keptInventory.ts';
import { LogLoss } from './logLoss.ts';
import { type Drawn, draw, type Setting, settingOf } from './options.ts';
import { Approvers } from './people/approvers.ts';
import { Commands } from './people/commands.ts';
import { Custodian } from './people/custodian.ts';
import { Operator } from './people/operator.ts';
import { Provisioner } from './people/provisioner.ts';
import { auditRun, calm, endActs, finish } from './phases.ts';
import { otherRelease, thisRelease } from './releases.ts';
import { type Site, serviceNames } from './services.ts';
import { cloudActs } from './stage/cloud.ts';
import { networkActs } from './stage/networks.ts';
import { notificationActs } from './stage/notifications.ts';
import { processActs } from './stage/processes.ts';
import type { Stage } from './stage/stage.ts';
import { streamActs } from './stage/streams.ts';
import { taskActs } from './stage/tasks.ts';
import { type Supervised, Supervisor } from './supervisor.ts';
import { keepLooking, openSurroundings, type Run, type Surroundings } from './surroundings.ts';
import { Trouble } from './trouble.ts';
import { LastMessages } from './watch/lastMessages.ts';
import { LogDigest } from './watch/logDigest.ts';
import { Moments } from './watch/moments.ts';
import { OpenTasks } from './watch/openTasks.ts';
import { watchLog } from './watch/watchLog.ts';
import { World } from './world.ts';

const PROVISION_MS = 60_000;
/** The first fault comes after this: by then the services have started. */
const START_MS = 30_000;
/** Days between two reports of progress. */
const PROGRESS = 0.125;

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

const secondsOf = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1e6;

/** A run whose parts know one another. */
interface Built extends Run, Surroundings {
  readonly setting: Setting;
  readonly inventory: KeptInventory;
  readonly supervisor: Supervisor;
  readonly commands: Commands;
  readonly trouble: Trouble;
}

export async function simulate(asked: Asked, observer: Observer = {}): Promise<Report> {
  const cpu = process.cpuUsage();
  const chance = new Chance(`run/${asked.seed}`);
  const drawn = draw(asked);
  const setting = settingOf(asked, drawn);
  const world = new World(chance);
  const run: Run = { asked, world, chance, drawn };
  let ended = false;
  const over = (): boolean => ended;
  const outside = openSurroundings(run, setting, {
    onStored: (stream, message) => watch.onStored(stream, message),
    onBreach(breach) {
      observer.onBreach?.(breach);
      if (observer.stopAtBreach === true) ended = true;
    },
  });
  const { sim, checker, nats } = outside;
  const inventory = keptInventory(run, outside, setting.config.engine.optOut);
  const { witness } = inventory;
  const releases = await releasesOf(run, setting, { outside, inventory, observer });
  const supervisor = supervisorOf(run, releases, outside, inventory);
  const commands = new Commands(outside.server, () => world.wall);
  const trouble = new Trouble(world);
  const built: Built = { ...run, ...outside, setting, inventory, supervisor, commands, trouble };
  const watch = watchOf(built);
  const people = peopleOf(built, watch, observer);
  const stage = stageOf(built, watch, people);

  await world.runThrough('provisioning', people.provisioner.begin(), PROVISION_MS);
  const beginMs = world.now;
  for (const name of supervisor.names()) world.after(chance.between(0, 5000), () => supervisor.start(name));
  const faults = faultsOf(asked, drawn, chance);
  schedule(built, chance, faults, stage);
  people.operator.begin();
  keepLooking(world, sim, checker);
  for (let day = 0; day < asked.days && !ended; day += PROGRESS) {
    const untilDay = Math.min(asked.days, day + PROGRESS);
    await world.run(beginMs + untilDay * DAY_MS, over);
    observer.onProgress?.(untilDay, summaryOf(checker));
  }
  if (!ended) {
    endTrouble(built, watch.moments, people);
    await finish(run, checker, setting.aggregates, over);
  }
  if (!ended) await auditRun(run, { nats, checker }, witness);
  supervisor.end();
  return {
    asked,
    drawn,
    faults,
    breaches: checker.breaches,
    digest: watch.digest.hex(),
    events: world.events,
    messages: watch.digest.messages,
    counts: Object.fromEntries([...checker.counts, ...(witness?.counts ?? [])].sort(([a], [b]) => byText(a, b))),
    cpuSeconds: secondsOf(process.cpuUsage(cpu)),
  };
}

/** Who learns of what is stored. */
function watchOf({ world, chance, drawn, sim, checker, record, inventory, commands }: Built) {
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
    witness: inventory.witness,
    lastMessages,
    openTasks,
    moments,
    approvers:
      drawn.approval === 'manual' ? new Approvers(world, chance, drawn.approvalTtlSeconds * 1000, commands) : null,
  });
  return { digest, lastMessages, openTasks, moments, onStored };
}
type Watch = ReturnType<typeof watchOf>;

/** Other people. */
function peopleOf(built: Built, { openTasks }: Watch, observer: Observer) {
  const { world, chance, drawn, sim, record, server, checker, nats, commands, setting } = built;
  const { aggregates, config } = setting;
  const operator = new Operator({ world, sim, record, openTasks, aggregates, commands });
  const custodian = new Custodian(world, commands);
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
  return { operator, custodian, provisioner, logLoss };
}
type People = ReturnType<typeof peopleOf>;

/** The parts that the faults act on. */
function stageOf(
  built: Built,
  { lastMessages, openTasks, moments }: Watch,
  { operator, custodian, logLoss }: People,
): Stage {
  const { world, trouble, drawn, sim, record, server, nats, cloudNetwork, supervisor, commands, setting, inventory } =
    built;
  const { aggregates, scenario } = setting;
  const intervalMs = drawn.intervalSeconds * 1000;
  return {
    aggregates,
    ...processActs(world, supervisor, inventory.witness),
    ...networkActs(supervisor, nats, cloudNetwork),
    ...cloudActs(sim, record, scenario),
    ...streamActs({ world, server, aggregates, custodian, lastMessages, logLoss }),
    ...taskActs(world, server, supervisor, openTasks),
    ...notificationActs(supervisor, inventory.notifications),
    command: (type, aggregate, data) => void commands.append(type, aggregate, data),
    closeAbandoned: () => operator.closeAbandoned(),
    // Snapshots are taken at multiples of the interval.
    nextSnapshotMs: () => intervalMs - (world.wall % intervalMs),
    after: (ms, act) => trouble.after(ms, act),
    onNext: (type, act) => moments.onNext(type, act),
  };
}

/** Nothing goes wrong any more, and people take back what they did. */
function endTrouble(built: Built, moments: Moments, { operator, custodian, logLoss }: People): void {
  const { world, trouble, sim, server, nats, cloudNetwork, supervisor, commands, setting, inventory } = built;
  trouble.end();
  const { notifications, witness } = inventory;
  const { scenario } = setting;
  const networks = [nats, cloudNetwork, ...(notifications === null ? [] : [notifications.rabbit])];
  calm({ world, sim, scenario, server, networks, supervisor, moments, custodian, logLoss, witness });
  operator.mend();
  endActs(commands, scenario);
}

/** The faults of a run: those that the seed has drawn, or the ones of them that were asked for. */
function faultsOf({ days, only }: Asked, drawn: Drawn, chance: Chance): readonly Fault[] {
  const all = drawFaults(chance.fork('faults'), drawn, days * DAY_MS);
  return only === null ? all : all.filter(({ number }) => only.has(number));
}

function summaryOf({ counts, breaches }: Checker): string {
  const of = (name: string): number => counts.get(name) ?? 0;
  return `${of('cycle.decided')} decisions, ${of('plans')} plans, ${of('posts')} requests, ${of('finals')} results, ${breaches.length} breaches`;
}

async function releasesOf(
  { asked, drawn }: Run,
  { config, policies, hostCells }: Setting,
  of: { readonly outside: Surroundings; readonly inventory: KeptInventory; readonly observer: Observer },
): Promise<Supervised['releases']> {
  const { outside, inventory, observer } = of;
  const { sim, nats, cloudNetwork } = outside;
  const { onLine } = observer;
  const site: Site = {
    config,
    policies,
    hostCells,
    decideIntervals: drawn.decideIntervals,
    nats,
    cloud: cloudNetwork,
    rabbit: inventory.notifications?.rabbit ?? null,
    onLine: onLine ?? (() => undefined),
    logLevel: onLine === undefined ? 'silent' : asked.verbose ? 'debug' : 'info',
  };
  const { beside } = asked;
  return {
    this: thisRelease(site, sim),
    other: beside === null ? null : await otherRelease(beside, { asked, drawn }, site, { sim, nats }),
  };
}

function supervisorOf(
  { world, chance, asked: { replicas } }: Run,
  releases: Supervised['releases'],
  { record, checker }: Surroundings,
  { witness }: KeptInventory,
): Supervisor {
  return new Supervisor({
    world,
    chance,
    releases,
    services: serviceNames,
    replicas,
    onStart(service, process, configuration) {
      if (service === 'scorer') witness?.started(process, world.wall);
      // Planners of two releases with the same options may both plan.
      checker.log.configured(process, configuration);
    },
    onReplace() {
      checker.count('replaced');
      if (record.running().length > 0) checker.count('replaced with moves under way');
    },
  });
}

/** Lets each fault act at its time. */
function schedule({ world, trouble }: Built, chance: Chance, faults: readonly Fault[], stage: Stage): void {
  for (const { kind, source, atMs } of faults) {
    const own = chance.fork(`fault/${source}`);
    trouble.at(world.now + START_MS + atMs, () => kinds[kind]?.act(stage, own));
  }
}
