/** Months of live migrations whose durations follow from links, servers and the hour, and how often the learnt interval holds the next one. */
import { DAY_MS } from '@kronos/contracts';
import { aggregateState, createFolder, expectedDuration, pacesOfAll } from '@kronos/projections';
import { random as seeded, testLog } from '@kronos/projections/testing';
import { type Duration, inSequence } from '@kronos/rules';

export type Scenario = {
  readonly name: string;
  readonly hosts: number;
  readonly movesPerDay: number;
  /** GiB per second that each host's link carries, drawn from these. */
  readonly links: readonly number[];
  /** The share of a link that is free at midnight and not at noon, 0..1. */
  readonly busyAtNoon: number;
  /** Share of the servers that write memory at up to 80 % of the rate of the link. */
  readonly writers: number;
  /** GiB of local disk that are copied too, at most. */
  readonly diskGib: number;
};

const MIXED = {
  hosts: 8,
  movesPerDay: 40,
  links: [0.1, 0.4, 1.1],
  busyAtNoon: 0.5,
  writers: 0.3,
  diskGib: 0,
};

export const scenarios: readonly Scenario[] = [
  { ...MIXED, name: 'links of 1, 4 and 10 Gbit/s, busy by day' },
  { ...MIXED, name: 'local disks', diskGib: 80 },
  { ...MIXED, name: 'few moves', movesPerDay: 2 },
];

/** Moves of a plan: they begin one after the other. */
const MOVES_OF_PLAN = 5;
/** The time that Nova and the polling take beside the copying, s. */
const BESIDE = { least: 8, most: 25 };
/** The executor's interval between two requests to Nova, s. */
const POLL_S = 5;

export type Coverage = {
  /** Moves with an interval, and those of them within it. */
  readonly moves: number;
  readonly within: number;
  /** Plans whose moves follow each other: those whose whole duration was within the interval of all of them. */
  readonly plans: number;
  readonly plansWithin: number;
};

/** A server that moves. */
type Server = {
  readonly from: Host | undefined;
  readonly to: Host | undefined;
  readonly ramMb: number;
  readonly diskGb: number;
  readonly writes: number;
  readonly beside: number;
  /** Of its memory a server uses a part. */
  readonly used: number;
};
type Host = { readonly name: string; readonly link: number };

/** One month. The paces are those of the folded log, as services have them. */
export function run(scenario: Scenario, seed: number, days: number): Coverage {
  const draw = seeded(seed);
  const pick = (n: number): number => Math.floor(draw() * n);
  const hosts = Array.from({ length: scenario.hosts }, (_, h) => ({
    name: `compute-${h}`,
    link: scenario.links[pick(scenario.links.length)] ?? 1,
  }));
  const month = new Month(scenario);
  const planEveryS = (86_400 * MOVES_OF_PLAN) / scenario.movesPerDay;
  for (let atS = 0; atS < days * 86_400; ) {
    // Plans come at random, a few hosts are hot for a while.
    atS += planEveryS * (0.2 + 1.6 * draw());
    month.waitUntil(atS);
    const hot = pick(hosts.length);
    const servers = Array.from({ length: MOVES_OF_PLAN }, (): Server => {
      const to = (hot + 1 + Math.floor(draw() ** 2 * (hosts.length - 1))) % hosts.length;
      return {
        from: hosts[hot],
        to: hosts[to],
        ramMb: 2048 * 2 ** pick(6),
        diskGb: scenario.diskGib === 0 ? 0 : pick(scenario.diskGib),
        writes: draw() < scenario.writers ? 0.8 * draw() : 0.05 * draw(),
        beside: BESIDE.least + (BESIDE.most - BESIDE.least) * draw(),
        used: 0.3 + 0.6 * draw(),
      };
    });
    month.plan(servers);
  }
  return month.coverage;
}

/** The log of a month, and how often the intervals that it teaches hold the next move. */
class Month {
  readonly #scenario: Scenario;
  readonly #log = testLog();
  readonly #folder = createFolder();
  readonly #startMs = this.#log.nowMs;
  #folded = 0;
  readonly coverage = {
    moves: 0,
    within: 0,
    plans: 0,
    plansWithin: 0,
  };

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
  }

  #state() {
    for (; this.#folded < this.#log.events.length; this.#folded++) {
      const event = this.#log.events[this.#folded];
      if (event !== undefined) this.#folder.apply(event);
    }
    return this.#folder.snapshot();
  }

  /** @param atS seconds since the start; a move under way ends first */
  waitUntil(atS: number): void {
    this.#log.at(Math.max(atS, (this.#log.nowMs - this.#startMs) / 1000));
  }

  /** Moves that begin one after the other. */
  plan(servers: readonly Server[]): void {
    const planId = this.#log.released(
      servers.map(({ from, to, ramMb }, i) => ({
        serverId: `vm${i}`,
        from: from?.name ?? '',
        to: to?.name ?? '',
        ramMb,
      })),
    );
    const expected: (Duration | null)[] = [];
    let tookMs = 0;
    for (const [i, server] of servers.entries()) {
      const { duration, ms } = this.#move(`${planId}-s${i + 1}`, server);
      expected.push(duration);
      tookMs += ms;
    }
    const whole = wholeOf(expected);
    if (whole === null) return;
    this.coverage.plans++;
    if (tookMs >= whole.lowMs && tookMs <= whole.highMs) this.coverage.plansWithin++;
  }

  /** One move: what was expected, and how long it took. */
  #move(task: string, server: Server): { readonly duration: Duration | null; readonly ms: number } {
    const before = this.#state();
    const here = aggregateState(before, 'gpu');
    const started = this.#log.started({ task, diskGb: server.diskGb });
    const { from, destination, ramMb, diskGb } = started.data;
    const gib = ramMb / 1024 + diskGb;
    const duration = expectedDuration(here, { from, destination, gib }, pacesOfAll(before));
    const sinceMs = this.#log.nowMs - this.#startMs;
    const seconds = secondsOf(this.#scenario, server, sinceMs % DAY_MS);
    this.#log.pass(seconds).completed({ task }, seconds);
    this.#count(duration?.interval ?? null, seconds * 1000);
    return { duration, ms: seconds * 1000 };
  }

  #count(interval: Duration['interval'], ms: number): void {
    if (interval === null) return;
    this.coverage.moves++;
    if (ms >= interval.lowMs && ms <= interval.highMs) this.coverage.within++;
  }
}

/** Copies the memory again as far as it is written meanwhile, and is seen to be over at the next poll. */
function secondsOf(scenario: Scenario, server: Server, ofDayMs: number): number {
  const noon = (1 - Math.cos((2 * Math.PI * ofDayMs) / DAY_MS)) / 2;
  const rate = Math.min(server.from?.link ?? 1, server.to?.link ?? 1) * (1 - scenario.busyAtNoon * noon);
  const copied = ((server.ramMb / 1024) * server.used) / (1 - server.writes) + server.diskGb;
  return Math.ceil((server.beside + copied / rate) / POLL_S) * POLL_S;
}

/** The interval of the moves together; null where one of them has none. */
function wholeOf(moves: readonly (Duration | null)[]): Duration['interval'] {
  const known = moves.filter((move) => move !== null);
  return known.length < moves.length ? null : inSequence(known.map((move) => ({ ...move, measured: true }))).interval;
}
