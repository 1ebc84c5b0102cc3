/** When an observation is due. Pure: two scorers with the same clock agree on every cycle. */

/** The number of the cycle that a time belongs to. */
export const cycleAt = (nowMs: number, intervalMs: number): number => Math.floor(nowMs / intervalMs);

/** The share of a cycle for which a standby waits for another's snapshot before it takes one itself. */
const STANDBY_SHARE = 0.5;

export interface ScheduleInput {
  readonly nowMs: number;
  readonly intervalMs: number;
  /** The cycle attended to last; null at the start. */
  readonly last: number | null;
  /** Whether somebody else's snapshots came first the last time. */
  readonly standby: boolean;
  /** The aggregates in scope. */
  readonly scope: readonly string[];
  /** The cycle of the newest snapshot of each aggregate on the stream, from any replica. */
  readonly seen: (aggregate: string) => number | null;
}

export type Due =
  /** Observe these aggregates now; `skipped` cycles went by without an observation. */
  | { readonly do: 'observe'; readonly cycle: number; readonly aggregates: readonly string[]; readonly skipped: number }
  /** The cycle's snapshots are all there. */
  | { readonly do: 'nothing'; readonly cycle: number }
  | { readonly do: 'wait'; readonly milliseconds: number };

/** The work that is due now. */
export function due(input: ScheduleInput): Due {
  const { nowMs, intervalMs, last } = input;
  const cycle = cycleAt(nowMs, intervalMs);
  // A clock that was set back starts with the next cycle and does not wait for its former time.
  if (last !== null && cycle <= last) return { do: 'wait', milliseconds: (cycle + 1) * intervalMs - nowMs };
  const aggregates = input.scope.filter((aggregate) => {
    const seen = input.seen(aggregate);
    // A clock that is a little ahead of ours may have begun the next cycle already.
    return seen === null || (seen !== cycle && seen !== cycle + 1);
  });
  if (aggregates.length === 0) return { do: 'nothing', cycle };
  const turn = cycle * intervalMs + STANDBY_SHARE * intervalMs;
  if (input.standby && nowMs < turn) return { do: 'wait', milliseconds: turn - nowMs };
  return { do: 'observe', cycle, aggregates, skipped: last === null ? 0 : cycle - last - 1 };
}
