import { isAbove, isWorse } from '@kronos/rules';
import { byte, float, int } from '../base/array.ts';
import { type Cluster, shareOn } from './cluster.ts';

/** `max - min` over the counted hosts, by policy. */
export function imbalances(cluster: Cluster, score: Float64Array): Float64Array {
  const { H, P, counted } = cluster;
  const out = new Float64Array(P);
  for (let p = 0; p < P; p++) {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (let h = 0; h < H; h++) {
      if (byte(counted, h) !== 1) continue;
      const value = float(score, h * P + p);
      if (value < low) low = value;
      if (value > high) high = value;
    }
    out[p] = high >= low ? high - low : 0;
  }
  return out;
}

/** `sum(weight x imbalance)`. */
export function combinedOf(cluster: Cluster, imbalance: Float64Array): number {
  let sum = 0;
  cluster.policies.forEach(({ weight }, p) => {
    sum += weight * float(imbalance, p);
  });
  return sum;
}

/** Takes a VM's share from one host's values and adds it to another's. */
export function shift(cluster: Cluster, values: Float64Array, vm: number, from: number, to: number): void {
  const { P } = cluster;
  for (let p = 0; p < P; p++) {
    values[from * P + p] = float(values, from * P + p) - shareOn(cluster, vm, from, p);
    values[to * P + p] = float(values, to * P + p) + shareOn(cluster, vm, to, p);
  }
}

/**
 * The values of a start state after some VMs changed hosts. They are summed in the order of the VMs, so the order in which the moves
 * were found does not matter.
 */
export function valuesAfter(cluster: Cluster, start: Float64Array, from: Int32Array, to: Int32Array): Float64Array {
  const values = Float64Array.from(start);
  for (let v = 0; v < cluster.V; v++) {
    const [a, b] = [int(from, v), int(to, v)];
    if (a !== b) shift(cluster, values, v, a, b);
  }
  return values;
}

/** True when every policy is at or below its threshold. */
export const allWithin = (cluster: Cluster, imbalance: Float64Array): boolean =>
  cluster.policies.every(({ threshold }, p) => !isAbove(float(imbalance, p), threshold));

/** True when some policy is worse than before and above its threshold. */
export const worsened = (cluster: Cluster, before: Float64Array, after: Float64Array): boolean =>
  cluster.policies.some(({ threshold }, p) => isWorse(float(after, p), float(before, p), threshold));
