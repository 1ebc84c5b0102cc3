import { shareOn } from '../../cluster.ts';
import { EPSILON } from '../../measure.ts';
import type { Field } from './field.ts';
import { nobody, type Parked } from './sequence.ts';

/** A placement that the search found, and what it reaches in the order of aims. */
export type Solution = {
  readonly place: Int32Array;
  /** VMs that wait on a third host. */
  readonly parked: Parked;
  /** Moves: one for each VM away from home, one more for each parked. */
  readonly moves: number;
  readonly ramMb: number;
  readonly combined: number;
  /** Every policy is at or below its threshold. */
  readonly within: boolean;
  /** No policy is worse than at the start and above its threshold. */
  readonly acceptable: boolean;
};

/** Judges a placement anew, from nothing but itself. */
export function judge(field: Field, place: Int32Array, parked: Parked = nobody): Solution {
  const { cluster, V, P, home, weights, thresholds } = field;
  const { H, counted, ramMb } = cluster;
  const score = Float64Array.from(field.score);
  let moves = 0;
  let ram = 0;
  for (let v = 0; v < V; v++) {
    const a = home[v] as number;
    const b = place[v] as number;
    if (a === b) continue;
    const legs = parked.has(v) ? 2 : 1;
    moves += legs;
    ram += legs * (ramMb[v] as number);
    for (let p = 0; p < P; p++) {
      score[a * P + p] = (score[a * P + p] as number) - shareOn(cluster, v, a, p);
      score[b * P + p] = (score[b * P + p] as number) + shareOn(cluster, v, b, p);
    }
  }
  let combined = 0;
  let within = true;
  let acceptable = true;
  for (let p = 0; p < P; p++) {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (let h = 0; h < H; h++) {
      if (counted[h] !== 1) continue;
      const value = score[h * P + p] as number;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const imbalance = high >= low ? high - low : 0;
    combined += (weights[p] as number) * imbalance;
    if (imbalance > (thresholds[p] as number) + EPSILON) {
      within = false;
      if (imbalance > (field.imbalance[p] as number) + EPSILON) acceptable = false;
    }
  }
  return { place, parked, moves, ramMb: ram, combined, within, acceptable };
}

/**
 * The order of aims: if both bring every policy within its threshold, fewest moves, then least memory, then lowest combined
 * imbalance; if one does, that one; else lowest combined imbalance, then moves, then memory. Below 0: `a` is better.
 */
export function compare(a: Solution, b: Solution): number {
  if (a.acceptable !== b.acceptable) return a.acceptable ? -1 : 1;
  if (a.within !== b.within) return a.within ? -1 : 1;
  const combined = Math.abs(a.combined - b.combined) <= EPSILON ? 0 : a.combined - b.combined;
  const order = a.within
    ? [a.moves - b.moves, a.ramMb - b.ramMb, combined]
    : [combined, a.moves - b.moves, a.ramMb - b.ramMb];
  return order.find((difference) => difference !== 0) ?? 0;
}
