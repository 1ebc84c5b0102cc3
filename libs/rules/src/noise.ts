/** The noise of measured imbalances, by how far each differs from what the decision before expected. */

/** By policy name. Folded from the decisions on the log. */
export type Surprises = {
  /** The imbalance that the last decision expects in the next cycle: after its moves if they were released, else unchanged. */
  readonly expected: Readonly<Record<string, number>>;
  /** Differences between measured and expected imbalances, without sign; oldest first, at most {@link SURPRISES_KEPT}. */
  readonly known: Readonly<Record<string, readonly number[]>>;
};

export const noSurprises: Surprises = { expected: {}, known: {} };

/** Half an hour of cycles of a minute: older load says little about the noise of now. */
const SURPRISES_KEPT = 30;
/** Fewer differences say nothing. */
const LEAST_KNOWN = 4;
/** The standard deviation of a value by the median of the differences of two, if both are normal: 1 / (0.6745 x sqrt(2)). */
const PER_MEDIAN = 1.0484;

type Measured = { readonly policy: string; readonly imbalance: number | null };

/**
 * The differences after one more decision. The imbalance at the start of a decision counts released moves as done, so that moves make
 * no difference. A single large difference, such as a move that failed or a VM that began to work, changes the median little.
 *
 * @param before the imbalances that the decision measured
 * @param after the imbalances after its moves; null: none were released
 */
export function afterMeasurement(
  { expected, known }: Surprises,
  before: readonly Measured[],
  after: readonly Measured[] | null,
): Surprises {
  const differences: Record<string, readonly number[]> = {};
  for (const { policy, imbalance } of before) {
    const then = Object.hasOwn(expected, policy) ? expected[policy] : undefined;
    const kept = Object.hasOwn(known, policy) ? (known[policy] ?? []) : [];
    const all = then === undefined || imbalance === null ? kept : [...kept, rounded(Math.abs(imbalance - then))];
    if (all.length > 0) differences[policy] = all.slice(-SURPRISES_KEPT);
  }
  const next: Record<string, number> = {};
  for (const { policy, imbalance } of after ?? before) if (imbalance !== null) next[policy] = imbalance;
  return { expected: next, known: differences };
}

/** Digits that matter; a state on disk stays short. */
const rounded = (x: number): number => Math.round(x * 1e6) / 1e6;

/** Standard deviation of the noise of a policy's imbalance; null: too few differences are known. */
export function noiseOf(differences: readonly number[]): number | null {
  if (differences.length < LEAST_KNOWN) return null;
  const sorted = [...differences].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [a = 0, b = 0] = [sorted[middle], sorted.length % 2 === 1 ? sorted[middle] : sorted[middle - 1]];
  return (PER_MEDIAN * (a + b)) / 2;
}
