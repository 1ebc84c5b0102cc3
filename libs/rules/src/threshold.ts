/** Differences of imbalances up to this are rounding. */
export const EPSILON = 1e-9;

/** Whether an imbalance is above a threshold or a target, which triggers its policy. */
export const isAbove = (imbalance: number, threshold: number): boolean => imbalance > threshold + EPSILON;

/**
 * How high an imbalance may end at most: no move and no plan may leave a policy worse than it was and above its threshold.
 *
 * @param before the imbalance without the move or the plan
 */
export const highestAllowed = (before: number, threshold: number): number => Math.max(before, threshold) + EPSILON;

/** Whether an imbalance ends worse than it was and above its threshold. */
export const isWorse = (after: number, before: number, threshold: number): boolean =>
  after > highestAllowed(before, threshold);

/** A policy as it was scored. Absent: it takes part, and it acts on what it sees. */
export type Scored = {
  readonly imbalance: number | null;
  readonly threshold: number;
  readonly participates?: boolean | undefined;
  readonly detected?: boolean | undefined;
  readonly acts?: boolean | undefined;
};

/**
 * The imbalance of a policy as a multiple of its threshold: above 1 Kronos looks for moves. A policy that sees an imbalance above its threshold
 * and does not act on it counts as at most 1. Null: it takes no part, its imbalance is not known, or it has no threshold above 0.
 */
export function ratioOf({ imbalance, threshold, participates, detected, acts }: Scored): number | null {
  if (participates === false || imbalance === null || threshold <= 0) return null;
  const rests = acts === false || (detected === false && isAbove(imbalance, threshold));
  return rests ? Math.min(1, imbalance / threshold) : imbalance / threshold;
}
