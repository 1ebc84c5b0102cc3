import { byte, float, int } from '../../base/array.ts';
import type { Bound } from '../problem/bound.ts';
import { fewestMoves } from '../problem/fewest.ts';
import type { Field } from '../problem/field.ts';
import type { GuideShape } from './guideCost.ts';

/**
 * The guides of a search, the most promising first: by powers of the distance from the means, and by bands between the bound (0) and the
 * present extremes (1).
 *
 * @param reachable whether the targets may be in reach: then bands as wide as the targets come first.
 */
export function guideShapes(field: Field, limits: Bound, { reachable }: { readonly reachable: boolean }): GuideShape[] {
  const { low: lowMean, high: highMean, most, least } = valuesOf(field);
  const towards = (from: number, to: number, x: number): number => from + (to - from) * x;
  const band = (x: number): GuideShape => ({
    low: limits.low.map((l, p) => towards(l, float(least, p), x)),
    high: limits.high.map((h, p) => towards(h, float(most, p), x)),
    power: 2,
  });
  const power = (of: 2 | 4 | 8): GuideShape => ({ low: lowMean, high: highMean, power: of });
  const shapes = [band(0.02), band(0.05), power(2), band(0.1), power(8), band(0), power(4)];
  if (!reachable) return shapes;
  // The band for which the fewest moves may suffice, and the band around the means.
  const { targets } = field;
  const high = targets.map((_, p) => fewestMoves(field, p).high);
  const low = high.map((h, p) => h - float(targets, p));
  const around = (sign: 1 | -1): Float64Array =>
    targets.map((target, p) => (float(lowMean, p) + float(highMean, p) + sign * target) / 2);
  return [{ low, high, power: 2 }, { low: around(-1), high: around(1), power: 2 }, ...shapes];
}

/** The guide by squared distances from the means. */
export function meanShape(field: Field): GuideShape {
  const { low, high } = valuesOf(field);
  return { low, high, power: 2 };
}

/**
 * By policy, over the counted hosts: the lowest and the highest mean of the parts (equal when all hosts are one part), and the highest
 * and the lowest value.
 */
function valuesOf(field: Field): { low: Float64Array; high: Float64Array; most: Float64Array; least: Float64Array } {
  const { H, P, cluster, score, partOf } = field;
  const lowest = () => new Float64Array(P).fill(Number.POSITIVE_INFINITY);
  const highest = () => new Float64Array(P).fill(Number.NEGATIVE_INFINITY);
  const [low, high, least, most] = [lowest(), highest(), lowest(), highest()];
  const parts = H === 0 ? 0 : Math.max(...partOf) + 1;
  const totals = new Float64Array(parts * P);
  const sizes = new Float64Array(parts * P);
  for (let h = 0; h < H; h++) {
    if (byte(cluster.counted, h) !== 1) continue;
    for (let p = 0; p < P; p++) {
      const i = int(partOf, h) * P + p;
      const x = float(score, h * P + p);
      const size = float(cluster.size, h * P + p);
      totals[i] = float(totals, i) + x * size;
      sizes[i] = float(sizes, i) + size;
      most[p] = Math.max(float(most, p), x);
      least[p] = Math.min(float(least, p), x);
    }
  }
  for (let part = 0; part < parts; part++)
    for (let p = 0; p < P; p++) {
      const i = part * P + p;
      if (float(sizes, i) === 0) continue;
      const mean = float(totals, i) / float(sizes, i);
      low[p] = Math.min(float(low, p), mean);
      high[p] = Math.max(float(high, p), mean);
    }
  return { low, high, most, least };
}
