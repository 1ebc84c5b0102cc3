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
import { keepLooking, openSurroundings, type Surroundings } from './surroundings.ts';
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

export async function simulate(asked: Asked, observer: Observer = {}): Promise<Report> {
  const cpu = process.cpuUsage();
  const chance = new Chance(`run/${asked.seed}`);
  const drawn = draw(asked);
  const setting = settingOf(asked, drawn);
  const { aggregates, config, scenario } = setting;
  const world = new World(chance);
  let ended = false;
  const over = (): boolean => ended;
  const outside = openSurroundings(world, chance, asked.seed, drawn, setting, {
    onStored: (stream, message) => onStored(stream, message),
    onBreach(breach) {
      observer.onBreach?.(breach);
      if (observer.stopAtBreach === true) ended = true;
    },
  });
  const { sim, record, checker, server, nats, cloudNetwork } = outside;
  const inventory = keptInventory(world, chance, drawn, config.engine.optOut, sim, cloudNetwork);
  const { witness, notifications } = inventory;
  const releases = await releasesOf({ asked, drawn, observer }, setting, outside, inventory);
  const supervisor = supervisorOf(world, chance, asked, releases, outside, inventory);

  // Who learns of what is stored.
  const commands = new Commands(server, () => world.wall);
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
    approvers:
      drawn.approval === 'manual' ? new Approvers(world, chance, drawn.approvalTtlSeconds * 1000, commands) : null,
  });

  // Other people, and what they and the faults act on.
  const operator = new Operator(world, sim, record, openTasks, aggregates, commands);
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
    nextSnapshotMs: () => drawn.intervalSeconds * 1000 - (world.wall % (drawn.intervalSeconds * 1000)),
    after: (ms, act) => void world.after(ms, act),
    onNext: (type, act) => moments.onNext(type, act),
  };

  await world.runThrough('provisioning', provisioner.begin(), PROVISION_MS);
  const beginMs = world.now;
  for (const name of supervisor.names()) world.after(chance.between(0, 5000), () => supervisor.start(name));
  const faults = faultsOf(asked, drawn, chance);
  const callOff = schedule(world, chance, faults, stage);
  operator.begin();
  keepLooking(world, sim, checker);
  for (let day = 0; day < asked.days && !ended; day += PROGRESS) {
    const untilDay = Math.min(asked.days, day + PROGRESS);
    await world.run(beginMs + untilDay * DAY_MS, over);
    observer.onProgress?.(untilDay, summaryOf(checker));
  }
  if (!ended) {
    callOff();
    const networks = [nats, cloudNetwork, ...(notifications === null ? [] : [notifications.rabbit])];
    calm({ world, sim, scenario, server, networks, supervisor, moments, custodian, logLoss, witness });
    operator.mend();
    endActs(commands, scenario);
    await finish(world, checker, drawn, aggregates, over);
  }
  if (!ended) await auditRun(world, chance, nats, checker, witness);
  supervisor.end();
  return {
    asked,
    drawn,
    faults,
    breaches: checker.breaches,
    digest: digest.hex(),
    events: world.events,
    messages: digest.messages,
    counts: Object.fromEntries([...checker.counts, ...(witness?.counts ?? [])].sort(([a], [b]) => byText(a, b))),
    cpuSeconds: secondsOf(process.cpuUsage(cpu)),
  };
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
  { asked, drawn, observer }: { readonly asked: Asked; readonly drawn: Drawn; readonly observer: Observer },
  { config, policies, hostCells }: Setting,
  { sim, nats, cloudNetwork }: Surroundings,
  { notifications }: KeptInventory,
): Promise<Supervised['releases']> {
  const { onLine } = observer;
  const site: Site = {
    config,
    policies,
    hostCells,
    nats,
    cloud: cloudNetwork,
    rabbit: notifications?.rabbit ?? null,
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
  world: World,
  chance: Chance,
  { replicas }: Asked,
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

/** Lets each fault act at its time. Returns what calls off those that are still to come. */
function schedule(world: World, chance: Chance, faults: readonly Fault[], stage: Stage): () => void {
  let off = false;
  for (const { kind, source, atMs } of faults) {
    const own = chance.fork(`fault/${source}`);
    world.at(world.now + START_MS + atMs, () => {
      if (!off) kinds[kind]?.act(stage, own);
    });
  }
  return () => {
    off = true;
  };
}
