import { type Cluster, shareOn } from './cluster.ts';

/** Differences below this are rounding, not improvement. */
export const EPSILON = 1e-9;

/** `max - min` over the counted hosts, by policy. */
export function imbalances(cluster: Cluster, score: Float64Array): Float64Array {
  const { H, P, counted } = cluster;
  const out = new Float64Array(P);
  for (let p = 0; p < P; p++) {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (let h = 0; h < H; h++) {
      if (counted[h] !== 1) continue;
      const value = score[h * P + p] ?? 0;
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
  for (let p = 0; p < cluster.P; p++) sum += (cluster.policies[p]?.weight ?? 0) * (imbalance[p] ?? 0);
  return sum;
}

/**
 * The values of a start state after some VMs changed hosts, summed in the order of VMs: the same for any order in which
 * the moves were found.
 */
export function valuesAfter(cluster: Cluster, start: Float64Array, from: Int32Array, to: Int32Array): Float64Array {
  const { V, P } = cluster;
  const values = Float64Array.from(start);
  for (let v = 0; v < V; v++) {
    const a = from[v] ?? 0;
    const b = to[v] ?? 0;
    if (a === b) continue;
    for (let p = 0; p < P; p++) {
      values[a * P + p] = (values[a * P + p] ?? 0) - shareOn(cluster, v, a, p);
      values[b * P + p] = (values[b * P + p] ?? 0) + shareOn(cluster, v, b, p);
    }
  }
  return values;
}

/** True when every policy is at or below its threshold. */
export function allWithin(cluster: Cluster, imbalance: Float64Array): boolean {
  for (let p = 0; p < cluster.P; p++)
    if ((imbalance[p] ?? 0) > (cluster.policies[p]?.threshold ?? 0) + EPSILON) return false;
  return true;
}

/** The first policy that is worse than before and above its threshold; -1 when there is none. */
export function worsened(cluster: Cluster, before: Float64Array, after: Float64Array): number {
  for (let p = 0; p < cluster.P; p++) {
    const now = after[p] ?? 0;
    if (now > (cluster.policies[p]?.threshold ?? 0) + EPSILON && now > (before[p] ?? 0) + EPSILON) return p;
  }
  return -1;
}

/** How many extreme hosts are kept per policy and end: enough to look past the two hosts of a move. */
const KEPT = 3;

/** The highest and lowest counted hosts of each policy, so that the effect of one move is known in O(P). */
export class Extremes {
  readonly #cluster: Cluster;
  readonly #high: Int32Array;
  readonly #low: Int32Array;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#high = new Int32Array(cluster.P * KEPT);
    this.#low = new Int32Array(cluster.P * KEPT);
  }

  update(score: Float64Array): void {
    const { H, P, counted } = this.#cluster;
    const high = this.#high;
    const low = this.#low;
    high.fill(-1);
    low.fill(-1);
    for (let p = 0; p < P; p++) {
      const at = p * KEPT;
      let leastHigh = Number.NEGATIVE_INFINITY;
      let mostLow = Number.POSITIVE_INFINITY;
      for (let h = 0; h < H; h++) {
        if (counted[h] !== 1) continue;
        const value = score[h * P + p] as number;
        if (value > leastHigh) {
          let i = KEPT - 1;
          for (; i > 0; i--) {
            const other = high[at + i - 1] as number;
            if (other >= 0 && (score[other * P + p] as number) >= value) break;
            high[at + i] = other;
          }
          high[at + i] = h;
          const last = high[at + KEPT - 1] as number;
          if (last >= 0) leastHigh = score[last * P + p] as number;
        }
        if (value < mostLow) {
          let i = KEPT - 1;
          for (; i > 0; i--) {
            const other = low[at + i - 1] as number;
            if (other >= 0 && (score[other * P + p] as number) <= value) break;
            low[at + i] = other;
          }
          low[at + i] = h;
          const last = low[at + KEPT - 1] as number;
          if (last >= 0) mostLow = score[last * P + p] as number;
        }
      }
    }
  }

  /** `max - min`. */
  imbalance(score: Float64Array, policy: number): number {
    const { P } = this.#cluster;
    const high = this.#high[policy * KEPT] ?? -1;
    const low = this.#low[policy * KEPT] ?? -1;
    return high < 0 ? 0 : (score[high * P + policy] ?? 0) - (score[low * P + policy] ?? 0);
  }

  /** The policy's only highest host; -1 when several share the maximum. */
  onlyHighest(score: Float64Array, policy: number): number {
    return only(this.#high, score, policy, this.#cluster.P);
  }

  /** The policy's only lowest host; -1 when several share the minimum. */
  onlyLowest(score: Float64Array, policy: number): number {
    return only(this.#low, score, policy, this.#cluster.P);
  }

  /** How far the second lowest host is above the lowest. */
  gapAboveLowest(score: Float64Array, policy: number): number {
    const { P } = this.#cluster;
    const first = this.#low[policy * KEPT] ?? -1;
    const second = this.#low[policy * KEPT + 1] ?? -1;
    return second < 0 ? 0 : (score[second * P + policy] ?? 0) - (score[first * P + policy] ?? 0);
  }

  /** The policy's imbalance after the VM left `a`, wherever it went: no destination but an only lowest host does better. */
  afterLeaving(score: Float64Array, vm: number, a: number, policy: number): number {
    const { P, counted } = this.#cluster;
    const at = (score[a * P + policy] ?? 0) - shareOn(this.#cluster, vm, a, policy);
    let high = counted[a] === 1 ? at : Number.NEGATIVE_INFINITY;
    let low = counted[a] === 1 ? at : Number.POSITIVE_INFINITY;
    const start = policy * KEPT;
    const h = this.#high[start] === a ? this.#high[start + 1] : this.#high[start];
    const l = this.#low[start] === a ? this.#low[start + 1] : this.#low[start];
    if (h !== undefined && h >= 0) high = Math.max(high, score[h * P + policy] ?? 0);
    if (l !== undefined && l >= 0) low = Math.min(low, score[l * P + policy] ?? 0);
    return high >= low ? high - low : 0;
  }

  /** The policy's imbalance after the VM went from `a` to `b`. */
  after(score: Float64Array, vm: number, a: number, b: number, policy: number): number {
    const { P, counted } = this.#cluster;
    const atA = (score[a * P + policy] ?? 0) - shareOn(this.#cluster, vm, a, policy);
    const atB = (score[b * P + policy] ?? 0) + shareOn(this.#cluster, vm, b, policy);
    let high = counted[b] === 1 ? atB : Number.NEGATIVE_INFINITY;
    let low = counted[b] === 1 ? atB : Number.POSITIVE_INFINITY;
    if (counted[a] === 1) {
      if (atA > high) high = atA;
      if (atA < low) low = atA;
    }
    for (let i = policy * KEPT; i < policy * KEPT + KEPT; i++) {
      const h = this.#high[i] ?? -1;
      if (h === a || h === b) continue;
      if (h >= 0) high = Math.max(high, score[h * P + policy] ?? 0);
      break;
    }
    for (let i = policy * KEPT; i < policy * KEPT + KEPT; i++) {
      const h = this.#low[i] ?? -1;
      if (h === a || h === b) continue;
      if (h >= 0) low = Math.min(low, score[h * P + policy] ?? 0);
      break;
    }
    return high >= low ? high - low : 0;
  }
}

function only(list: Int32Array, score: Float64Array, policy: number, P: number): number {
  const first = list[policy * KEPT] ?? -1;
  const second = list[policy * KEPT + 1] ?? -1;
  if (first < 0 || second < 0) return -1;
  return score[first * P + policy] === score[second * P + policy] ? -1 : first;
}
