/**
 * The worst policy's imbalance, as a multiple of its threshold: above 1 Kronos looks for moves. Null: no policy has an imbalance, or
 * one has a threshold of 0, of which nothing is a multiple.
 */
export function worstRatio(
  policies: readonly { readonly imbalance: number | null; readonly threshold: number }[],
): number | null {
  let worst: number | null = null;
  for (const { imbalance, threshold } of policies) {
    if (imbalance === null || threshold <= 0) continue;
    worst = Math.max(worst ?? 0, imbalance / threshold);
  }
  return worst;
}

/** As people read it: "1.66x"; "" without one. */
export const ratioText = (ratio: number | null): string => (ratio === null ? '' : `${ratio.toFixed(2)}x`);
