/** The figures of a backtest: the past as it was, and as it would have been with Kronos. Pure. */
import { byText } from '@kronos/contracts';
import type { WhatIfCycle } from '@kronos/replay';
import { isAbove } from '@kronos/rules';
import type { FormerMove } from './lives.ts';

const HOUR_MS = 3_600_000;
/** A move that Kronos would have made this long before or after a person's counts as the same. */
const SAME_MOVE_MS = 24 * HOUR_MS;
/** Moves of people that are listed; all are counted. */
const LISTED = 200;

type World = {
  readonly mean: number | null;
  readonly highest: number | null;
  readonly aboveMs: number;
  /** The highest value of a host in the range. */
  readonly peak: number | null;
};

export type PolicyFigures = {
  readonly policy: string;
  readonly threshold: number;
  readonly was: World;
  readonly would: World;
};

/** A person's move beside what Kronos would have done with the same VM within a day of it. */
export type ComparedMove = FormerMove & {
  readonly verdict: 'sameDestination' | 'otherDestination' | 'notMoved' | 'notJudged';
  readonly kronosTo: string | null;
};

export type BacktestFigures = {
  readonly aggregate: string;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly stepMs: number;
  readonly steps: number;
  /** Steps at which at least one policy took part. */
  readonly judged: number;
  readonly combined: { readonly was: number | null; readonly would: number | null };
  readonly policies: readonly PolicyFigures[];
  readonly moves: {
    readonly count: number;
    readonly plans: number;
    /** RAM and copied local disk. */
    readonly gib: number;
    /** At the pace of former moves; null: there are none to learn from. */
    readonly copyingMs: number | null;
    /** Moves of plans whose whole gain was gone within an hour, before another plan. */
    readonly goneWithinAnHour: number;
  };
  /** Median seconds of a former live migration for each GiB of RAM, and how many there were. */
  readonly pace: { readonly secondsPerGib: number | null; readonly moves: number };
  /** Hosts without VMs: the most at one step, and the mean. */
  readonly emptyHosts: { readonly was: Empty; readonly would: Empty };
  readonly people: {
    readonly moves: number;
    readonly sameDestination: number;
    readonly otherDestination: number;
    readonly notMoved: number;
    readonly notJudged: number;
    readonly listed: readonly ComparedMove[];
  };
  /** By what is not known: the steps at which it is not, and the highest number of them at one step. */
  readonly unknown: Readonly<Record<string, { readonly steps: number; readonly most: number }>>;
  /** Decisions that were no plan, by the code of their reason. */
  readonly withoutPlan: Readonly<Record<string, number>>;
};
type Empty = { readonly most: number; readonly mean: number };

/** Copied data of a step, GiB. */
const GIB_MB = 1024;

class WorldSum {
  weight = 0;
  total = 0;
  highest: number | null = null;
  above = 0;
  peak: number | null = null;

  add(value: number | null, peak: number | null, threshold: number): void {
    if (peak !== null) this.peak = Math.max(this.peak ?? peak, peak);
    if (value === null) return;
    this.weight += 1;
    this.total += value;
    this.highest = Math.max(this.highest ?? value, value);
    if (isAbove(value, threshold)) this.above += 1;
  }

  figures(stepMs: number): World {
    return {
      mean: this.weight === 0 ? null : this.total / this.weight,
      highest: this.highest,
      aboveMs: this.above * stepMs,
      peak: this.peak,
    };
  }
}

type OpenPlan = { readonly atMs: number; readonly before: number; readonly moves: number };

class Aggregate {
  sinceMs = Number.POSITIVE_INFINITY;
  untilMs = 0;
  steps = 0;
  judged = 0;
  readonly was = new WorldSum();
  readonly would = new WorldSum();
  readonly policies = new Map<string, { threshold: number; was: WorldSum; would: WorldSum }>();
  readonly moved = new Map<string, { readonly atMs: number; readonly to: string }[]>();
  moves = 0;
  plans = 0;
  gib = 0;
  ramGib = 0;
  gone = 0;
  /** The last plan, while its gain may still go. */
  open: OpenPlan | null = null;
  readonly empty = { was: { most: 0, total: 0 }, would: { most: 0, total: 0 } };
  readonly unknown = new Map<string, { steps: number; most: number }>();
  readonly withoutPlan = new Map<string, number>();

  add(cycle: WhatIfCycle): void {
    const { timeMs, recorded, simulated } = cycle;
    this.sinceMs = Math.min(this.sinceMs, timeMs);
    this.untilMs = Math.max(this.untilMs, timeMs);
    this.steps += 1;
    if (recorded.combined !== null) this.judged += 1;
    this.was.add(recorded.combined, null, Number.POSITIVE_INFINITY);
    this.would.add(simulated.combined, null, Number.POSITIVE_INFINITY);
    for (const { policy, threshold } of simulated.decision.before.policies) {
      const own = this.policies.get(policy) ?? { threshold, was: new WorldSum(), would: new WorldSum() };
      this.policies.set(policy, own);
      own.threshold = threshold;
      own.was.add(recorded.imbalance[policy] ?? null, recorded.peak[policy] ?? null, threshold);
      own.would.add(simulated.imbalance[policy] ?? null, simulated.peak[policy] ?? null, threshold);
    }
    for (const [of, world] of [
      [this.empty.was, recorded],
      [this.empty.would, simulated],
    ] as const) {
      of.most = Math.max(of.most, world.emptyHosts);
      of.total += world.emptyHosts;
    }
    for (const [name, count] of Object.entries(cycle.unknown ?? {})) {
      const own = this.unknown.get(name) ?? { steps: 0, most: 0 };
      this.unknown.set(name, { steps: own.steps + 1, most: Math.max(own.most, count) });
    }
    this.#plan(cycle);
  }

  #plan({ timeMs, simulated }: WhatIfCycle): void {
    const { combined, decision, moves } = simulated;
    if (this.open !== null && timeMs - this.open.atMs > HOUR_MS) this.open = null;
    if (this.open !== null && combined !== null && combined >= this.open.before) {
      this.gone += this.open.moves;
      this.open = null;
    }
    if (moves === 0 || decision.plan === null) {
      const { code } = decision.reason;
      this.withoutPlan.set(code, (this.withoutPlan.get(code) ?? 0) + 1);
      return;
    }
    this.plans += 1;
    this.moves += moves;
    for (const { serverId, to, ramMb, diskGb } of decision.plan.steps) {
      this.gib += ramMb / GIB_MB + diskGb;
      this.ramGib += ramMb / GIB_MB;
      const own = this.moved.get(serverId) ?? [];
      this.moved.set(serverId, own);
      own.push({ atMs: timeMs, to });
    }
    this.open = combined === null ? null : { atMs: timeMs, before: combined, moves };
  }
}

/** Counts the cycles of a backtest one by one. */
export class BacktestCount {
  readonly #stepMs: number;
  readonly #moves: readonly FormerMove[];
  readonly #isIn: (aggregate: string, host: string) => boolean;
  readonly #aggregates = new Map<string, Aggregate>();

  /** @param moves the moves that people made in the range */
  constructor(stepMs: number, moves: readonly FormerMove[], isIn: (aggregate: string, host: string) => boolean) {
    this.#stepMs = stepMs;
    this.#moves = moves;
    this.#isIn = isIn;
  }

  add(cycle: WhatIfCycle): void {
    const own = this.#aggregates.get(cycle.aggregate) ?? new Aggregate();
    this.#aggregates.set(cycle.aggregate, own);
    own.add(cycle);
  }

  /** By the names of the aggregates. */
  figures(): BacktestFigures[] {
    const pace = paceOf(this.#moves);
    return [...this.#aggregates]
      .sort(([a], [b]) => byText(a, b))
      .map(([aggregate, of]) => {
        const own = this.#moves.filter(({ from, to }) => this.#isIn(aggregate, from) || this.#isIn(aggregate, to));
        return figuresOf(aggregate, of, { stepMs: this.#stepMs, moves: own, pace });
      });
  }
}

type Beside = {
  readonly stepMs: number;
  readonly moves: readonly FormerMove[];
  readonly pace: BacktestFigures['pace'];
};

function figuresOf(aggregate: string, of: Aggregate, { stepMs, moves, pace }: Beside): BacktestFigures {
  const compared = moves.map((move) => comparedMove(move, of));
  const verdicts = (verdict: ComparedMove['verdict']): number =>
    compared.filter((move) => move.verdict === verdict).length;
  const empty = ({ most, total }: { most: number; total: number }): Empty => ({
    most,
    mean: of.steps === 0 ? 0 : total / of.steps,
  });
  return {
    aggregate,
    sinceMs: of.sinceMs,
    untilMs: of.untilMs,
    stepMs,
    steps: of.steps,
    judged: of.judged,
    combined: { was: of.was.figures(stepMs).mean, would: of.would.figures(stepMs).mean },
    policies: [...of.policies].map(([policy, { threshold, was, would }]) => ({
      policy,
      threshold,
      was: was.figures(stepMs),
      would: would.figures(stepMs),
    })),
    moves: {
      count: of.moves,
      plans: of.plans,
      gib: of.gib,
      copyingMs: pace.secondsPerGib === null ? null : of.gib * pace.secondsPerGib * 1000,
      goneWithinAnHour: of.gone,
    },
    pace,
    emptyHosts: { was: empty(of.empty.was), would: empty(of.empty.would) },
    people: {
      moves: compared.length,
      sameDestination: verdicts('sameDestination'),
      otherDestination: verdicts('otherDestination'),
      notMoved: verdicts('notMoved'),
      notJudged: verdicts('notJudged'),
      listed: compared.slice(-LISTED),
    },
    unknown: Object.fromEntries(of.unknown),
    withoutPlan: Object.fromEntries([...of.withoutPlan].sort(([, a], [, b]) => b - a)),
  };
}

function comparedMove(move: FormerMove, of: Aggregate): ComparedMove {
  // Kronos makes live migrations alone, and only where it looked.
  if (move.type !== 'live-migration' || move.endedMs < of.sinceMs || move.endedMs > of.untilMs)
    return { ...move, verdict: 'notJudged', kronosTo: null };
  const near = (of.moved.get(move.serverId) ?? []).filter(({ atMs }) => Math.abs(atMs - move.endedMs) <= SAME_MOVE_MS);
  const same = near.find(({ to }) => to === move.to);
  if (same !== undefined) return { ...move, verdict: 'sameDestination', kronosTo: same.to };
  const [other] = near;
  if (other !== undefined) return { ...move, verdict: 'otherDestination', kronosTo: other.to };
  return { ...move, verdict: 'notMoved', kronosTo: null };
}

/** Of former live migrations whose server's RAM is known. */
function paceOf(moves: readonly FormerMove[]): BacktestFigures['pace'] {
  const each = moves
    .flatMap(({ type, ramMb, startedMs, endedMs }) =>
      type !== 'live-migration' || ramMb === null || ramMb <= 0 || endedMs <= startedMs
        ? []
        : [(endedMs - startedMs) / 1000 / (ramMb / GIB_MB)],
    )
    .sort((a, b) => a - b);
  return { secondsPerGib: each[Math.floor(each.length / 2)] ?? null, moves: each.length };
}
