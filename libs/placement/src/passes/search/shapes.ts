import type { Bound } from './bound.ts';
import { fewestMoves } from './fewest.ts';
import type { Field } from './field.ts';
import type { GuideShape } from './guideCost.ts';

/**
 * The guides that a search follows, the most promising first: by powers of the distance from the means, and by bands between
 * what the bound says can be reached and where the extreme hosts are (0: the bound; 1: the extremes).
 *
 * @param reachable whether the thresholds may be in reach: then bands as wide as these come first.
 */
export function guideShapes(field: Field, limits: Bound, reachable: boolean): GuideShape[] {
  const { mean, most, least } = valuesOf(field);
  const band = (x: number): GuideShape => ({
    low: limits.low.map((l, p) => l + ((least[p] as number) - l) * x),
    high: limits.high.map((h, p) => h + ((most[p] as number) - h) * x),
    power: 2,
  });
  const power = (of: 2 | 4 | 8): GuideShape => ({ low: mean, high: mean, power: of });
  const shapes = [band(0.02), band(0.05), power(2), band(0.1), power(8), band(0), power(4)];
  if (!reachable) return shapes;
  // Where the fewest moves may do, and around the means.
  const high = field.thresholds.map((_, p) => fewestMoves(field, p).high);
  const low = high.map((h, p) => h - (field.thresholds[p] as number));
  const around = (sign: 1 | -1): Float64Array => mean.map((m, p) => m + (sign * (field.thresholds[p] as number)) / 2);
  return [{ low, high, power: 2 }, { low: around(-1), high: around(1), power: 2 }, ...shapes];
}

/** The guide by squared distances from the means. */
export function meanShape(field: Field): GuideShape {
  const { mean } = valuesOf(field);
  return { low: mean, high: mean, power: 2 };
}

/** Mean, highest and lowest value of each policy over the counted hosts. */
function valuesOf(field: Field): { mean: Float64Array; most: Float64Array; least: Float64Array } {
  const { H, P, cluster, score } = field;
  const mean = new Float64Array(P);
  const most = new Float64Array(P).fill(Number.NEGATIVE_INFINITY);
  const least = new Float64Array(P).fill(Number.POSITIVE_INFINITY);
  let hosts = 0;
  for (let h = 0; h < H; h++) {
    if (cluster.counted[h] !== 1) continue;
    hosts++;
    for (let p = 0; p < P; p++) {
      const x = score[h * P + p] as number;
      mean[p] = (mean[p] as number) + x;
      if (x > (most[p] as number)) most[p] = x;
      if (x < (least[p] as number)) least[p] = x;
    }
  }
  for (let p = 0; p < P; p++) mean[p] = (mean[p] as number) / Math.max(1, hosts);
  return { mean, most, least };
}
