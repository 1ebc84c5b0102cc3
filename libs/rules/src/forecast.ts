/** Whether an imbalance is waited for, by how former waits came out. */

/** An imbalance that is being waited for. */
type Wait = {
  /** Times of snapshots, ms since the epoch. */
  readonly sinceMs: number;
  /** The wait ends here, whatever the forecast says then. */
  readonly untilMs: number;
};

/** What the log says of waits. */
export type Waits = {
  readonly open: Wait | null;
  /** How the last ones came out, oldest first, at most {@link WAITS_KEPT}: `right` when the imbalance passed in time. */
  readonly ended: readonly { readonly atMs: number; readonly right: boolean }[];
};

export const noWaits: Waits = { open: null, ended: [] };

/** Waits that are remembered per aggregate. */
const WAITS_KEPT = 20;
/** A wait is forgotten after this: load changes. */
const FORGET_WAIT_MS = 7 * 86_400_000;
/** The longest wait. */
export const MOST_WAIT_MS = 900_000;
/** Kronos follows a forecast while at least this number of waits came out right for each wait that came out wrong. */
const RIGHT_FOR_WRONG = 3;

/** What a decision says of an imbalance. */
export type Judged = {
  /** The time of the snapshot, ms since the epoch. */
  readonly atMs: number;
  /** Until when the decision waits; null: it does not. */
  readonly waitsUntilMs: number | null;
  /** Whether a policy is above its threshold; null: the cycle ended before it could matter. */
  readonly above: boolean | null;
};

/** The waits after one more decision. A wait ends when the imbalance has passed, or when a decision waits no longer. */
export function afterDecision(waits: Waits, { atMs, waitsUntilMs, above }: Judged): Waits {
  const { open } = waits;
  if (waitsUntilMs !== null)
    return open === null ? { ...waits, open: { sinceMs: atMs, untilMs: waitsUntilMs } } : waits;
  if (open === null || above === null) return waits;
  const kept = waits.ended.filter((one) => atMs - one.atMs < FORGET_WAIT_MS).slice(-(WAITS_KEPT - 1));
  return { open: null, ended: [...kept, { atMs, right: !above && atMs <= open.untilMs }] };
}

/**
 * Why the forecast is not followed; null: it is. `late`: the imbalance should have passed by now. `wrong`: too many of the last waits came
 * out wrong. The first wrong one alone does not count.
 */
export function notFollowed({ open, ended }: Waits, nowMs: number): 'late' | 'wrong' | null {
  if (open !== null) return nowMs < open.untilMs ? null : 'late';
  const recent = ended.filter(({ atMs }) => nowMs - atMs < FORGET_WAIT_MS);
  const right = recent.filter((one) => one.right).length;
  return RIGHT_FOR_WRONG * Math.max(0, recent.length - right - 1) > right ? 'wrong' : null;
}
