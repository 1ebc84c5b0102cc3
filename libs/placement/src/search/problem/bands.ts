import { float, int } from '../../base/array.ts';
import { fewestMoves } from './fewest.ts';
import type { Field } from './field.ts';

/** By policy, the values that every counted host is to have: as wide as the width that was asked for. */
export type Band = { readonly low: Float64Array; readonly high: Float64Array };

/** Other positions of the band, in widths above or below the one with the least load to move. */
const ASIDE = [0.12, -0.12];

/**
 * Bands of these widths, the most promising first. The first one is where the least load has to move: there the load above the band
 * equals the load that is missing below it. A move from a host above to one below takes from both, so the band stays where it is while a
 * course is carried out. The second one is where the fewest VMs have to move.
 */
export function bandsOf(field: Field, widths: Float64Array): Band[] {
  const least = widths.map((width, p) => leastLoad(field, p, width));
  const at = (high: Float64Array): Band => ({ low: high.map((h, p) => h - float(widths, p)), high });
  const fewest = widths.map((_, p) => fewestMoves({ ...field, targets: widths }, p).high);
  const aside = ASIDE.map((part) => least.map((high, p) => high + part * float(widths, p)));
  return [least, fewest, ...aside].map(at);
}

/** Bands of a round of the last search for the lowest cost. */
const IN_ROUND = 4;
/** They are at most this many widths from the band with the least load to move. */
const FARTHEST = 0.5;
/** Multiples of it, without their whole parts, fill the range evenly. */
const GOLDEN = 0.618_033_988_749_895;

/** More bands of these widths around the one with the least load to move, others in each round. */
export function furtherBands(field: Field, widths: Float64Array, round: number): Band[] {
  const least = widths.map((width, p) => leastLoad(field, p, width));
  return Array.from({ length: IN_ROUND }, (_, i) => {
    const high = least.map((end, p) => {
      const part = ((IN_ROUND * round + i + 1) * (p + 1) * GOLDEN) % 1;
      return end + FARTHEST * (2 * part - 1) * float(widths, p);
    });
    return { low: high.map((end, p) => end - float(widths, p)), high };
  });
}

const STEPS = 60;

/** The upper end of the band for which the least load has to move, part by part. */
function leastLoad(field: Field, p: number, width: number): number {
  const { H, P, cluster, score, partOf } = field;
  const hosts: number[] = [];
  for (let h = 0; h < H; h++) if (cluster.counted[h] === 1) hosts.push(h);
  const parts = Math.max(0, ...partOf) + 1;
  const over = new Float64Array(parts);
  const under = new Float64Array(parts);
  const loadOf = (high: number): number => {
    over.fill(0);
    under.fill(0);
    for (const h of hosts) {
      const x = float(score, h * P + p);
      const part = int(partOf, h);
      const size = float(cluster.size, h * P + p);
      if (x > high) over[part] = float(over, part) + size * (x - high);
      else if (x < high - width) under[part] = float(under, part) + size * (high - width - x);
    }
    let sum = 0;
    for (let part = 0; part < parts; part++) sum += Math.max(float(over, part), float(under, part));
    return sum;
  };
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const h of hosts) {
    low = Math.min(low, float(score, h * P + p));
    high = Math.max(high, float(score, h * P + p));
  }
  if (high - low <= width) return (low + high + width) / 2;
  // The load is convex in the position of the band.
  let [a, b] = [low, high + width];
  for (let i = 0; i < STEPS; i++) {
    const [c, d] = [a + (b - a) / 3, b - (b - a) / 3];
    if (loadOf(c) <= loadOf(d)) b = d;
    else a = c;
  }
  return (a + b) / 2;
}
