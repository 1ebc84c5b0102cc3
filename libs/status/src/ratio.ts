/**
 * The worst policy's imbalance, as a multiple of its threshold: above 1 Kronos looks for moves. A policy that does not act
 * counts as at most 1. Null: no policy has both an imbalance and a threshold above 0, of which it is a multiple.
 */
export function worstRatio(
  policies: readonly {
    readonly imbalance: number | null;
    readonly threshold: number;
    readonly acts?: boolean | undefined;
  }[],
): number | null {
  let worst: number | null = null;
  for (const { imbalance, threshold, acts } of policies) {
    if (imbalance === null || threshold <= 0) continue;
    const ratio = imbalance / threshold;
    worst = Math.max(worst ?? 0, acts === false ? Math.min(1, ratio) : ratio);
  }
  return worst;
}

/** As people read it: "1.66x"; "" without one. */
export const ratioText = (ratio: number | null): string => (ratio === null ? '' : `${ratio.toFixed(2)}x`);
