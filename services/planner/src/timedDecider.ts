/** How long decisions take, beside the interval after which the next one is due. */
import type { Clock } from '@kronos/clock';
import { type EngineOptions, type FailingPart, INTERVAL_GRACE_MS, partCodes, secondsUp } from '@kronos/contracts';
import { type Cycle, type CycleInput, type Decider, searches } from '@kronos/cycle';
import type { AggregateState } from '@kronos/projections';

type TimedCycle = Cycle & {
  /** How long it took, without the wait for the decisions of other aggregates. */
  readonly decideMs: number;
  /** The limit of its search; undefined: that of the options. */
  readonly searchWorkLimit: number | undefined;
};

export type TimedDecider = {
  /**
   * Decides a cycle. A decision that ends more than an interval after it was asked for lowers the work limit of the next ones: the snapshot
   * of one that takes longer than two is too old, so that none would ever be appended. The first decision of a planner has the limit of the
   * last one on the log.
   */
  readonly cycle: (input: CycleInput) => Promise<TimedCycle>;
  /** The aggregates whose decision takes longer than its interval, or whose last one did. */
  readonly slow: () => readonly FailingPart[];
};

type Taking = {
  readonly ms: number;
  readonly intervalSeconds: number;
  /** Null: it goes on. */
  readonly ended: {
    /** How long it had waited for the decisions of other aggregates. */
    readonly waitedMs: number;
    /** `search`: the next ones have less work. `least`: there is no less work. `none`: it does not search. */
    readonly work: 'search' | 'least' | 'none';
  } | null;
};

const afterwards = {
  search: 'the next ones search with less work',
  least: 'it had the least work already',
  none: 'it makes no search that could have less work',
} as const;

/** Says that a decision takes longer than its interval, or that it waited until it was too late; null: neither. */
export function slowText({ ms, intervalSeconds, ended }: Taking): string | null {
  const dueMs = intervalSeconds * 1000;
  const waitedMs = ended?.waitedMs ?? 0;
  const late = waitedMs + ms > 2 * dueMs + INTERVAL_GRACE_MS;
  const slow = ms > dueMs + INTERVAL_GRACE_MS;
  if (!slow && !late) return null;
  const seconds = secondsUp(ms);
  const due = `one is due every ${intervalSeconds} s`;
  if (ended === null) return `a decision has taken ${seconds} s so far, and ${due}`;
  const waited = slow ? '' : ` after it had waited ${secondsUp(waitedMs)} s for those of other aggregates`;
  const result = late ? 'its snapshot was too old then, so nothing is decided' : 'snapshots are skipped';
  const lasting = ended.work === 'search' ? '' : `, and ${result} until decisions take less time`;
  return `a decision took ${seconds} s${waited}, and ${due}: ${afterwards[ended.work]}${lasting}`;
}

/** The share of its interval that a decision may take after one that took too long: the other half is for the age of its snapshot. */
const AIM = 0.5;
/** With less than this share of the work it finds no good plans. */
const LEAST_SHARE = 1 / 64;
/** With less work than this a decision takes no less time: the search is a small part of it. */
const LEAST_WORK = 312_500;
/** Twice as much work is tried after this time: the machine may have been busy with something else. */
const LOWERED_MS = 900_000;

type Lowered = { readonly limit: number; readonly untilMs: number };
const NOT_LOWERED: Lowered = { limit: Number.POSITIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY };

const leastWork = ({ searchWorkLimit }: EngineOptions): number =>
  Math.min(LEAST_WORK, Math.ceil(searchWorkLimit * LEAST_SHARE));

/** Decides at most one cycle of an aggregate at a time. */
export function timedDecider(decider: Pick<Decider, 'cycle'>, clock: Pick<Clock, 'monotonic' | 'now'>): TimedDecider {
  const running = new Map<string, { readonly sinceMs: number; readonly intervalSeconds: number }>();
  const last = new Map<string, Taking>();
  /** By aggregate: the work limit in place of the options'; null: none. Absent: nothing was decided yet. */
  const lowered = new Map<string, Lowered | null>();

  /** The decision under way says more than the last one once it has taken longer than its interval. */
  function textOf(aggregate: string): string | null {
    const open = running.get(aggregate);
    const now = open && slowText({ ...open, ms: clock.monotonic() - open.sinceMs, ended: null });
    const before = last.get(aggregate);
    return now ?? (before === undefined ? null : slowText(before));
  }

  const untilMs = (passedMs = 0): number => clock.monotonic() + LOWERED_MS - passedMs;

  /** The limit that decisions on the log have. A wrong clock makes it last for a full time at most. */
  function onLog({ loweredWork }: AggregateState): Lowered | null {
    if (loweredWork === null) return null;
    const { limit, sinceMs } = loweredWork;
    return { limit, untilMs: untilMs(Math.max(0, clock.now() - sinceMs)) };
  }

  function optionsNow({ snapshot: { aggregate }, state, options }: CycleInput): EngineOptions {
    const known = lowered.get(aggregate);
    const { limit, untilMs: until } = (known === undefined ? onLog(state) : known) ?? NOT_LOWERED;
    const ended = clock.monotonic() >= until;
    const now = ended ? 2 * limit : limit;
    const isLower = now < options.searchWorkLimit;
    lowered.set(aggregate, isLower ? { limit: now, untilMs: ended ? untilMs() : until } : null);
    return isLower ? { ...options, searchWorkLimit: now } : options;
  }

  /**
   * @param used the work limit of the decision
   * @param ms from the question to the answer: the snapshot ages while other aggregates are decided, too
   * @returns whether the next decisions have less work
   */
  function lower(input: CycleInput, used: number, ms: number): 'search' | 'least' | 'none' {
    if (!searches(input)) return 'none';
    const { aggregate, intervalSeconds } = input.snapshot;
    const dueMs = intervalSeconds * 1000;
    if (ms > dueMs) {
      const limit = Math.max(leastWork(input.options), Math.floor((used * dueMs * AIM) / ms));
      lowered.set(aggregate, { limit: Math.min(used, limit), untilMs: untilMs() });
    }
    return used > leastWork(input.options) ? 'search' : 'least';
  }

  return {
    async cycle(input) {
      const { aggregate, intervalSeconds } = input.snapshot;
      const options = searches(input) ? optionsNow(input) : input.options;
      const { searchWorkLimit } = options;
      const askedMs = clock.monotonic();
      let sinceMs = askedMs;
      let decided: Cycle;
      let ms = 0;
      try {
        decided = await decider.cycle({ ...input, options }, () => {
          sinceMs = clock.monotonic();
          running.set(aggregate, { sinceMs, intervalSeconds });
        });
      } finally {
        const answeredMs = clock.monotonic();
        ms = answeredMs - sinceMs;
        running.delete(aggregate);
        const work = lower(input, searchWorkLimit, answeredMs - askedMs);
        last.set(aggregate, { ms, intervalSeconds, ended: { waitedMs: sinceMs - askedMs, work } });
      }
      return { ...decided, decideMs: ms, searchWorkLimit: options === input.options ? undefined : searchWorkLimit };
    },
    slow: () =>
      [...new Set([...running.keys(), ...last.keys()])].flatMap((aggregate): FailingPart[] => {
        const text = textOf(aggregate);
        return text === null ? [] : [{ code: partCodes.decisionSlow, part: aggregate, text }];
      }),
  };
}
