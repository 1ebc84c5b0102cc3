/** Computes the figures of a report from the event log alone. Pure. */
import {
  byText,
  type CycleDecided,
  type EngineOptions,
  eventTimeMs,
  type LogEvent,
  type MigrationCompleted,
  type MigrationFailed,
  moveEnd,
  snapshotTimeMs,
} from '@kronos/contracts';
import type { AggregateFigures, NewestFacts, ReportCycle } from './figures.ts';
import { PredictionCount } from './predictions.ts';

/** A decision stands for no more than this many intervals: nobody looked in the rest. */
const MAX_INTERVALS = 2;

type Sum = { weight: number; total: number };

const sum = (): Sum => ({ weight: 0, total: 0 });

const meanOf = ({ weight, total }: Sum): number | null => (weight === 0 ? null : total / weight);

const put = (to: Sum, value: number | null, weight: number): void => {
  if (value === null) return;
  to.weight += weight;
  to.total += value * weight;
};

type PolicySum = { threshold: number; now: Sum; after: Sum; highest: number | null; aboveMs: number; afterMs: number };

type ReleasedPlan = {
  readonly before: number;
  readonly expected: number;
  readonly open: Set<string>;
  endedMs: number;
};

class Aggregate {
  readonly name: string;
  options: Pick<EngineOptions, 'cooldownSeconds' | 'instanceCooldownSeconds'>;
  sinceMs = 0;
  untilMs = 0;
  observedMs = 0;
  readonly decisions = { planned: 0, quiet: 0, gated: 0 };
  readonly gates = new Map<string, number>();
  readonly combined = sum();
  readonly combinedAfter = sum();
  readonly policies = new Map<string, PolicySum>();
  readonly plans = { released: 0, proposed: 0, approved: 0, dryRun: 0 };
  readonly dryRun = { plans: 0, moves: 0, memoryMb: 0 };
  /** When the last dry-run plan that counts was made, and when each VM was last counted. */
  countedMs = Number.NEGATIVE_INFINITY;
  readonly countedVms = new Map<string, number>();
  readonly moves = { completed: 0, warned: 0, damaged: 0, skipped: 0, retries: 0 };
  readonly failed = new Map<string, number>();
  readonly copying = { runningMs: 0, memoryBytes: 0, moves: 0 };
  readonly effect = { plans: 0, before: 0, expected: 0, measured: 0 };
  readonly released = new Map<string, ReleasedPlan>();
  readonly proposed = new Map<string, CycleDecided>();
  readonly breaking = new Set<string>();
  readonly repairable = new Set<string>();
  readonly evacuated = new Set<string>();
  /** Moves of others that undo or repeat moves of Kronos, and those of them that undo one. */
  readonly foreign = new Set<string>();
  readonly undone = new Set<string>();
  foreignWaitMs = 0;
  readonly oneWay = new Set<string>();
  readonly stuck = new Set<string>();
  course: AggregateFigures['course'] = null;
  readonly refusals = new Map<string, number>();
  /** The decision whose time is not counted yet, the time of its snapshot and the scorer's interval. */
  last: { readonly event: CycleDecided; readonly timeMs: number; readonly intervalMs: number | null } | null = null;

  constructor(name: string, options: Aggregate['options']) {
    this.name = name;
    this.options = options;
  }
}

const more = <K>(counts: Map<K, number>, key: K, by = 1): void => void counts.set(key, (counts.get(key) ?? 0) + by);

/** Most first. */
const ranked = (counts: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries([...counts].sort(([a, x], [b, y]) => y - x || byText(a, b)));

export type ReportOptions = {
  /** Cooldowns of an aggregate at the start of the range; the log states later ones. */
  readonly optionsOf: (aggregate: string) => Aggregate['options'];
  readonly onCycle?: (cycle: ReportCycle) => void;
};

/** Takes the events of a range one by one, in the order of the log. What it keeps does not grow with quiet cycles. */
export class ReportFold {
  readonly #aggregates = new Map<string, Aggregate>();
  readonly #options: ReportOptions;
  readonly #predictions = new PredictionCount();

  constructor(options: ReportOptions) {
    this.#options = options;
  }

  /** @param storedAtMs the server's timestamp of the event: it bounds the times that the event states */
  add(event: LogEvent, storedAtMs: number): void {
    this.#predictions.add(event, storedAtMs);
    const atMs = eventTimeMs(event.time, storedAtMs);
    if (event.type === 'planner.configured') this.#of(event.aggregate).options = event.data.options;
    else if (event.type === 'cycle.decided')
      this.#decided(this.#of(event.aggregate), event, snapshotTimeMs(event.data.snapshotTime, storedAtMs));
    else if (event.type === 'plan.dispatched') dispatched(this.#of(event.aggregate), event.data.planId);
    else if (event.type === 'migration.completed') this.#completed(this.#of(event.aggregate), event, atMs);
    else if (event.type === 'migration.failed') this.#failed(this.#of(event.aggregate), event, atMs);
    else if (event.type === 'migration.skipped') {
      const of = this.#of(event.aggregate);
      of.moves.skipped += 1;
      ended(of, event.data.planId, event.data.taskId, atMs);
    }
  }

  /**
   * The figures of every aggregate that decided something, by name.
   *
   * @param newest by aggregate, what the newest snapshot says
   */
  figures(newest: ReadonlyMap<string, NewestFacts> = new Map()): AggregateFigures[] {
    return [...this.#aggregates.values()]
      .filter(({ last }) => last !== null)
      .sort((a, b) => byText(a.name, b.name))
      .map((of) => {
        if (of.last !== null) spend(of, of.last.event, of.last.intervalMs ?? 0);
        of.last = null;
        const facts = newest.get(of.name) ?? { profileSums: [], generations: [] };
        return { ...result(of), predictions: this.#predictions.figures(of.name), ...facts };
      });
  }

  #of(name: string): Aggregate {
    const known = this.#aggregates.get(name);
    if (known !== undefined) return known;
    const made = new Aggregate(name, this.#options.optionsOf(name));
    this.#aggregates.set(name, made);
    return made;
  }

  #decided(of: Aggregate, event: CycleDecided, timeMs: number): void {
    const { data } = event;
    const intervalMs = intervalOf(data.cycle, timeMs);
    if (of.last === null) of.sinceMs = timeMs;
    else {
      const gap = Math.max(0, timeMs - of.last.timeMs);
      spend(of, of.last.event, intervalMs === null ? gap : Math.min(gap, MAX_INTERVALS * intervalMs));
    }
    of.untilMs = timeMs;
    of.last = { event, timeMs, intervalMs };
    of.decisions[data.outcome] += 1;
    if (data.outcome === 'gated') more(of.gates, data.reason.code);
    for (const [code, count] of Object.entries(data.refusals)) more(of.refusals, code, count);
    of.course = courseOf(data, timeMs, of.course);
    rules(of, event);
    measured(of, event, timeMs);
    const { plan, release, before } = data;
    const steps = plan?.steps.length ?? 0;
    noteOneWay(of, plan);
    let counted = 0;
    if (release === 'released') {
      of.plans.released += 1;
      opened(of, event);
      counted = steps;
    } else if (release === 'proposed') {
      of.plans.proposed += 1;
      if (plan !== null) of.proposed.set(plan.id, event);
    } else if (release === 'dryRun') {
      of.plans.dryRun += 1;
      counted = dryRun(of, event, timeMs);
    }
    this.#options.onCycle?.({
      aggregate: of.name,
      timeMs,
      recorded: { combined: before.combined, moves: release === 'released' ? steps : 0 },
      planned: { combined: plan === null ? before.combined : plan.after.combined, moves: counted },
    });
  }

  #completed(of: Aggregate, event: MigrationCompleted, atMs: number): void {
    const { data } = event;
    of.moves.completed += 1;
    of.moves.retries += data.retries;
    const end = moveEnd(event);
    if (end === 'warned') of.moves.warned += 1;
    if (end === 'damaged') of.moves.damaged += 1;
    if (data.nova !== null && data.nova.runningMs !== null) {
      of.copying.moves += 1;
      of.copying.runningMs += data.nova.runningMs;
      of.copying.memoryBytes += data.nova.memoryBytes ?? 0;
    }
    ended(of, data.planId, data.taskId, atMs);
  }

  #failed(of: Aggregate, event: MigrationFailed, atMs: number): void {
    const { data } = event;
    if (data.retryPending) return;
    more(of.failed, data.errorType);
    of.moves.retries += data.retries;
    if (moveEnd(event) === 'damaged') of.moves.damaged += 1;
    ended(of, data.planId, data.taskId, atMs);
  }
}

/** The interval of the scorer, from the number of the cycle, which is the time over the interval; null where it cannot be told. */
const intervalOf = (cycle: number, timeMs: number): number | null =>
  cycle <= 0 ? null : Math.max(1000, Math.floor(timeMs / cycle / 1000) * 1000);

function noteOneWay(of: Aggregate, plan: CycleDecided['data']['plan']): void {
  for (const { serverId, why } of plan?.steps ?? []) if (why?.detail?.oneWay !== undefined) of.oneWay.add(serverId);
}

/** Counts the time that a decision stands for. */
function spend(of: Aggregate, { data }: CycleDecided, ms: number): void {
  of.observedMs += ms;
  if (data.reason.code === 'foreign-moves') of.foreignWaitMs += ms;
  const after = data.plan?.after ?? data.before;
  put(of.combined, data.before.combined, ms);
  put(of.combinedAfter, after.combined, ms);
  for (const { policy, imbalance, threshold, participates, acts } of data.before.policies) {
    if (!participates || imbalance === null) continue;
    const found = of.policies.get(policy) ?? {
      threshold,
      now: sum(),
      after: sum(),
      highest: null,
      aboveMs: 0,
      afterMs: 0,
    };
    of.policies.set(policy, found);
    const then = after.policies.find((one) => one.policy === policy)?.imbalance ?? imbalance;
    found.threshold = threshold;
    put(found.now, imbalance, ms);
    put(found.after, then, ms);
    found.highest = Math.max(found.highest ?? imbalance, imbalance);
    // Below its act_above, a policy asks for nothing.
    if (acts === false) continue;
    if (imbalance > threshold) found.aboveMs += ms;
    if (then > threshold) found.afterMs += ms;
  }
}

/** @param before the course that the decisions before left: this one may not look for any */
function courseOf(
  { outcome, reason, course }: CycleDecided['data'],
  atMs: number,
  before: AggregateFigures['course'],
): AggregateFigures['course'] {
  if (outcome === 'gated' || reason.code === 'no-budget') return before;
  if (course === undefined) return null;
  const { reaches, moves, costGib, cycles, seconds } = course;
  return { reaches, moves, costGib, cycles, seconds, atMs };
}

/** VMs that break a rule or have to leave their host, each once. */
function rules(of: Aggregate, { data }: CycleDecided): void {
  for (const { serverId, at, undoes } of data.foreign?.moves ?? []) {
    of.foreign.add(`${serverId} ${at}`);
    if (undoes) of.undone.add(`${serverId} ${at}`);
  }
  for (const { phase, serverId } of data.plan?.steps ?? []) {
    if (phase === 'evacuate') of.evacuated.add(serverId);
    if (phase !== 'affinity') continue;
    of.breaking.add(serverId);
    of.repairable.add(serverId);
  }
  for (const { phase, serverId } of data.stuck) {
    if (phase === 'affinity') of.breaking.add(serverId);
    if (phase === 'evacuate') of.stuck.add(serverId);
  }
}

/**
 * Counts the plan of a dry run as if it had been released: no sooner than the cooldown after the last one that counted, and
 * no VM within its own cooldown. Gives the moves. Kronos would have made fewer: its first moves would have levelled the
 * aggregate, while in a dry run the next plan meets the same imbalance.
 */
function dryRun(of: Aggregate, { data }: CycleDecided, timeMs: number): number {
  const { cooldownSeconds, instanceCooldownSeconds } = of.options;
  if (timeMs < of.countedMs + cooldownSeconds * 1000) return 0;
  const steps = (data.plan?.steps ?? []).filter(({ serverId }) => {
    const before = of.countedVms.get(serverId);
    return before === undefined || timeMs >= before + instanceCooldownSeconds * 1000;
  });
  if (steps.length === 0) return 0;
  of.countedMs = timeMs;
  of.dryRun.plans += 1;
  of.dryRun.moves += steps.length;
  for (const { serverId, ramMb } of steps) {
    of.countedVms.set(serverId, timeMs);
    of.dryRun.memoryMb += ramMb;
  }
  return steps.length;
}

/** A proposed plan whose tasks were dispatched was approved. */
function dispatched(of: Aggregate, planId: string): void {
  const event = of.proposed.get(planId);
  if (event === undefined) return;
  of.proposed.delete(planId);
  of.plans.approved += 1;
  opened(of, event);
}

function opened(of: Aggregate, { data }: CycleDecided): void {
  const { plan, before } = data;
  if (plan === null || before.combined === null || plan.after.combined === null) return;
  of.released.set(plan.id, {
    before: before.combined,
    expected: plan.after.combined,
    open: new Set(plan.steps.map(({ taskId }) => taskId)),
    endedMs: Number.POSITIVE_INFINITY,
  });
}

function ended(of: Aggregate, planId: string, taskId: string, atMs: number): void {
  const plan = of.released.get(planId);
  if (plan === undefined) return;
  plan.open.delete(taskId);
  if (plan.open.size === 0) plan.endedMs = atMs;
}

/** The first decision on metrics that show the moves gives what a plan has reached. */
function measured(of: Aggregate, { data }: CycleDecided, timeMs: number): void {
  if (data.reason.code === 'settling' || data.before.combined === null) return;
  for (const [id, plan] of of.released) {
    if (timeMs < plan.endedMs) continue;
    of.released.delete(id);
    of.effect.plans += 1;
    of.effect.before += plan.before;
    of.effect.expected += plan.expected;
    of.effect.measured += data.before.combined;
  }
}

function result(of: Aggregate): Omit<AggregateFigures, 'predictions' | keyof NewestFacts> {
  const { plans, before, expected, measured: then } = of.effect;
  return {
    aggregate: of.name,
    sinceMs: of.sinceMs,
    untilMs: of.untilMs,
    observedMs: of.observedMs,
    decisions: { ...of.decisions },
    gates: ranked(of.gates),
    combined: { mean: meanOf(of.combined), meanAfterPlans: meanOf(of.combinedAfter) },
    policies: [...of.policies].map(([policy, one]) => ({
      policy,
      threshold: one.threshold,
      mean: meanOf(one.now),
      highest: one.highest,
      aboveMs: one.aboveMs,
      meanAfterPlans: meanOf(one.after),
      aboveAfterPlansMs: one.afterMs,
    })),
    plans: { ...of.plans },
    dryRun: of.plans.dryRun === 0 ? null : { ...of.dryRun },
    moves: { ...of.moves, failed: ranked(of.failed) },
    copying: { ...of.copying },
    effect: plans === 0 ? null : { plans, before: before / plans, expected: expected / plans, measured: then / plans },
    course: of.course,
    breaches: { servers: of.breaking.size, repairable: of.repairable.size },
    foreign: { moves: of.foreign.size, undone: of.undone.size, waitMs: of.foreignWaitMs },
    oneWay: of.oneWay.size,
    evacuations: { servers: of.evacuated.size, stuck: [...of.stuck].filter((id) => !of.evacuated.has(id)).length },
    refusals: ranked(of.refusals),
  };
}
