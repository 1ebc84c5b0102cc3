/** How long decisions take, beside the interval after which the next one is due. */
import type { Clock } from '@kronos/clock';
import { type EngineOptions, type FailingPart, INTERVAL_GRACE_MS, partCodes } from '@kronos/contracts';
import type { Cycle, CycleInput, Decider } from '@kronos/cycle';

type TimedCycle = Cycle & {
  /** How long it took, without the wait for the decisions of other aggregates. */
  readonly decideMs: number;
  /** The limit of its search; undefined: that of the options. */
  readonly searchWorkLimit: number | undefined;
};

export type TimedDecider = {
  /**
   * Decides a cycle. A decision that ends more than an interval after it was asked for lowers the work limit of the next ones: the snapshot
   * of one that takes longer than two is too old, so that none would ever be appended.
   */
  readonly cycle: (input: CycleInput) => Promise<TimedCycle>;
  /** The aggregates whose decision takes longer than its interval, or whose last one did. */
  readonly slow: () => readonly FailingPart[];
};

type Taking = { readonly ms: number; readonly intervalSeconds: number; readonly ended: boolean };

/** Says that a decision takes longer than its interval; null: it does not. */
export function slowText({ ms, intervalSeconds, ended }: Taking): string | null {
  if (ms <= intervalSeconds * 1000 + INTERVAL_GRACE_MS) return null;
  const seconds = Math.ceil(ms / 100) / 10;
  const due = `and one is due every ${intervalSeconds} s`;
  return ended
    ? `a decision took ${seconds} s, ${due}: the next ones search with less work`
    : `a decision has taken ${seconds} s so far, ${due}`;
}

/** The share of its interval that a decision may take after one that took too long: the other half is for the age of its snapshot. */
const AIM = 0.5;
/** With less than this share of the work it finds no good plans. */
const LEAST_SHARE = 1 / 64;
/** Twice as much work is tried after this time: the machine may have been busy with something else. */
const LOWERED_MS = 900_000;

type Lowered = { readonly limit: number; readonly untilMs: number };

/** Decides at most one cycle of an aggregate at a time. */
export function timedDecider(decider: Pick<Decider, 'cycle'>, clock: Pick<Clock, 'monotonic'>): TimedDecider {
  const running = new Map<string, { readonly sinceMs: number; readonly intervalSeconds: number }>();
  const last = new Map<string, Taking>();
  /** By aggregate: the work limit in place of the options'. */
  const lowered = new Map<string, Lowered>();

  /** The decision under way says more than the last one once it has taken longer than its interval. */
  function textOf(aggregate: string): string | null {
    const open = running.get(aggregate);
    const now = open && slowText({ ...open, ms: clock.monotonic() - open.sinceMs, ended: false });
    const before = last.get(aggregate);
    return now ?? (before === undefined ? null : slowText(before));
  }

  function optionsNow(aggregate: string, options: EngineOptions): EngineOptions {
    const known = lowered.get(aggregate);
    if (known === undefined) return options;
    const ended = clock.monotonic() >= known.untilMs;
    const limit = ended ? 2 * known.limit : known.limit;
    if (ended) lowered.set(aggregate, { limit, untilMs: clock.monotonic() + LOWERED_MS });
    if (limit < options.searchWorkLimit) return { ...options, searchWorkLimit: limit };
    lowered.delete(aggregate);
    return options;
  }

  /** @param ms from the question to the answer: the snapshot ages while other aggregates are decided, too */
  function lower({ snapshot: { aggregate, intervalSeconds }, options }: CycleInput, used: number, ms: number): void {
    const dueMs = intervalSeconds * 1000;
    if (ms <= dueMs) return;
    const least = Math.ceil(options.searchWorkLimit * LEAST_SHARE);
    const limit = Math.max(least, Math.floor((used * dueMs * AIM) / ms));
    lowered.set(aggregate, { limit, untilMs: clock.monotonic() + LOWERED_MS });
  }

  return {
    async cycle(input) {
      const { aggregate, intervalSeconds } = input.snapshot;
      const options = optionsNow(aggregate, input.options);
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
        ms = clock.monotonic() - sinceMs;
        running.delete(aggregate);
        last.set(aggregate, { ms, intervalSeconds, ended: true });
        lower(input, searchWorkLimit, clock.monotonic() - askedMs);
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
