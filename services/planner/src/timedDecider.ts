/** How long decisions take, beside the interval after which the next one is due. */
import type { Clock } from '@kronos/clock';
import { type FailingPart, INTERVAL_GRACE_MS, partCodes } from '@kronos/contracts';
import type { Cycle, CycleInput, Decider } from '@kronos/cycle';

export type TimedDecider = {
  /** Decides a cycle. `decideMs`: how long it took, without the wait for the decisions of other aggregates. */
  readonly cycle: (input: CycleInput) => Promise<Cycle & { readonly decideMs: number }>;
  /** The aggregates whose decision takes longer than its interval, or whose last one did. */
  readonly slow: () => readonly FailingPart[];
};

type Taking = { readonly ms: number; readonly intervalSeconds: number; readonly ended: boolean };

/** Says that a decision takes longer than its interval; null: it does not. */
export function slowText({ ms, intervalSeconds, ended }: Taking): string | null {
  if (ms <= intervalSeconds * 1000 + INTERVAL_GRACE_MS) return null;
  const seconds = Math.ceil(ms / 100) / 10;
  const taken = ended ? `a decision took ${seconds} s` : `a decision has taken ${seconds} s so far`;
  return `${taken}, and one is due every ${intervalSeconds} s`;
}

/** Decides at most one cycle of an aggregate at a time. */
export function timedDecider(decider: Pick<Decider, 'cycle'>, clock: Pick<Clock, 'monotonic'>): TimedDecider {
  const running = new Map<string, { readonly sinceMs: number; readonly intervalSeconds: number }>();
  const last = new Map<string, Taking>();

  /** The decision under way says more than the last one once it has taken longer than its interval. */
  function textOf(aggregate: string): string | null {
    const open = running.get(aggregate);
    const now = open && slowText({ ...open, ms: clock.monotonic() - open.sinceMs, ended: false });
    const before = last.get(aggregate);
    return now ?? (before === undefined ? null : slowText(before));
  }

  return {
    async cycle(input) {
      const { aggregate, intervalSeconds } = input.snapshot;
      let sinceMs = clock.monotonic();
      let decided: Cycle;
      let ms = 0;
      try {
        decided = await decider.cycle(input, () => {
          sinceMs = clock.monotonic();
          running.set(aggregate, { sinceMs, intervalSeconds });
        });
      } finally {
        ms = clock.monotonic() - sinceMs;
        running.delete(aggregate);
        last.set(aggregate, { ms, intervalSeconds, ended: true });
      }
      return { ...decided, decideMs: ms };
    },
    slow: () =>
      [...new Set([...running.keys(), ...last.keys()])].flatMap((aggregate): FailingPart[] => {
        const text = textOf(aggregate);
        return text === null ? [] : [{ code: partCodes.decisionSlow, part: aggregate, text }];
      }),
  };
}
