import { EPSILON } from '@kronos/rules';
import { float, int, item } from '../../base/array.ts';
import { shareOn } from '../../cluster/cluster.ts';
import type { Field } from './field.ts';

/** A lower bound on the moves that bring one policy to its target. */
export type Fewest = {
  /** At least this many moves are needed; infinite when no number suffices. */
  readonly moves: number;
  /** The upper end of the band, as wide as the target, for which this number may suffice. */
  readonly high: number;
};

/**
 * The fewest moves that can bring a policy to its target, without regard to rules and capacity. For a band as wide as the target, VMs
 * must leave the hosts above it (largest first) and arrive on the hosts below it (the largest of all). The larger of both numbers is
 * the bound for this band. The result is the least bound over all bands.
 */
export function fewestMoves(field: Field, p: number): Fewest {
  const { H, P, cluster, score, start, vmsOf } = field;
  const target = float(field.targets, p) + EPSILON;
  const hosts: number[] = [];
  for (let h = 0; h < H; h++) if (cluster.counted[h] === 1) hosts.push(h);
  const value = (h: number): number => float(score, h * P + p);
  const sizeOf = (h: number): number => float(cluster.size, h * P + p);
  const loadOf = (v: number): number => float(cluster.load, v * P + p);
  const descending = (vms: ArrayLike<number>): Float64Array => Float64Array.from(vms, loadOf).sort().reverse();
  const all = descending(vmsOf);
  const sums = new Float64Array(all.length + 1);
  all.forEach((l, i) => {
    sums[i + 1] = float(sums, i) + l;
  });
  const own = new Map<number, Float64Array>();

  const leaving = (high: number): number => {
    let count = 0;
    for (const h of hosts) {
      let over = (value(h) - high) * sizeOf(h);
      if (over <= 0) continue;
      let loads = own.get(h);
      if (loads === undefined) {
        loads = descending(vmsOf.subarray(int(start, h), int(start, h + 1)));
        own.set(h, loads);
      }
      for (let i = 0; over > 0; i++) {
        const l = loads[i];
        if (l === undefined || l <= 0) return Number.POSITIVE_INFINITY;
        over -= l;
        count++;
      }
    }
    return count;
  };
  const arriving = (low: number): number => {
    let count = 0;
    for (const h of hosts) {
      const under = (low - value(h)) * sizeOf(h);
      if (under <= 0) continue;
      let n = 1;
      while (n < sums.length && float(sums, n) < under) n++;
      if (n === sums.length) return Number.POSITIVE_INFINITY;
      count += n;
    }
    return count;
  };

  // As the band rises, fewer VMs must leave and more must arrive: the larger number is least where both cross.
  let below = Number.POSITIVE_INFINITY;
  let above = Number.NEGATIVE_INFINITY;
  for (const h of hosts) {
    below = Math.min(below, value(h));
    above = Math.max(above, value(h));
  }
  let best: Fewest = { moves: Number.POSITIVE_INFINITY, high: above };
  const look = (high: number): boolean => {
    const out = leaving(high);
    const into = arriving(high - target);
    if (Math.max(out, into) < best.moves) best = { moves: Math.max(out, into), high };
    return out > into;
  };
  look(below);
  look(above);
  for (let i = 0; i < 50 && above - below > 1e-9; i++) {
    const middle = (below + above) / 2;
    if (look(middle)) below = middle;
    else above = middle;
  }
  return best;
}

/**
 * The most by which one move lowers the combined imbalance: the highest host becomes lower by what leaves it, and the lowest one higher by
 * what arrives.
 */
export function mostGain({ cluster, vmsOf, home, destinations, weights, P }: Field): number {
  const smallest = Array.from({ length: P }, (_, p) =>
    destinations.reduce((least, h) => Math.min(least, float(cluster.size, h * P + p)), Number.POSITIVE_INFINITY),
  );
  let most = 0;
  for (const v of vmsOf) {
    let gain = 0;
    for (let p = 0; p < P; p++) {
      const arrives = float(cluster.load, v * P + p) / item(smallest, p);
      gain += float(weights, p) * (shareOn(cluster, v, int(home, v), p) + arrives);
    }
    most = Math.max(most, gain);
  }
  return most;
}
