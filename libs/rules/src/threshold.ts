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
