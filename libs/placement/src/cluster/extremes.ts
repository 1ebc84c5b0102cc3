import { byte, float, int, item } from '../base/array.ts';
import { type Cluster, shareOn } from './cluster.ts';
import { shift } from './measure.ts';

/** Number of hosts listed at each end of a policy; listed again when fewer than ENOUGH are left. */
const LISTED = 16;
const ENOUGH = 7;
const WIDTH = LISTED + 1;

const NONE = -1;

/**
 * The highest and lowest counted hosts of each policy, kept up to date while hosts change. The effect of a few changed hosts on an
 * imbalance is known without the values of the other hosts.
 */
export class Extremes {
  readonly #cluster: Cluster;
  readonly #score: Float64Array;
  readonly #high: End;
  readonly #low: End;
  /** Two hosts and their values, for questions about one move. */
  readonly #pair = new Int32Array(2);
  readonly #pairValues: Float64Array;

  /** @param score host values; the caller changes them and calls {@link changed} or {@link rebuild}. */
  constructor(cluster: Cluster, score: Float64Array) {
    this.#cluster = cluster;
    this.#score = score;
    this.#high = new End(cluster, score, 1);
    this.#low = new End(cluster, score, -1);
    this.#pairValues = new Float64Array(2 * cluster.P);
  }

  /** To be called after the values of any number of hosts have changed. */
  rebuild(): void {
    this.#high.rebuild();
    this.#low.rebuild();
  }

  /** To be called after the values of the first `count` of these hosts have changed. */
  changed(hosts: ArrayLike<number>, count = hosts.length): void {
    this.#high.changed(hosts, count);
    this.#low.changed(hosts, count);
  }

  /** Moves a VM in the values and updates the lists. */
  shift(vm: number, from: number, to: number): void {
    shift(this.#cluster, this.#score, vm, from, to);
    this.changed([from, to]);
  }

  /** The policy's highest host; -1 when no host is counted. */
  highest(policy: number): number {
    return this.#high.nth(policy, 0);
  }

  lowest(policy: number): number {
    return this.#low.nth(policy, 0);
  }

  /** The policy's only highest host; -1 when several share the maximum. */
  onlyHighest(policy: number): number {
    return this.#high.only(policy);
  }

  onlyLowest(policy: number): number {
    return this.#low.only(policy);
  }

  /** Difference between the second lowest and the lowest host. */
  gapAboveLowest(policy: number): number {
    const second = this.#low.nth(policy, 1);
    return second === NONE ? 0 : this.#value(second, policy) - this.#value(this.lowest(policy), policy);
  }

  /** Highest value; minus infinity when no host is counted. */
  most(policy: number): number {
    const host = this.highest(policy);
    return host === NONE ? Number.NEGATIVE_INFINITY : this.#value(host, policy);
  }

  least(policy: number): number {
    const host = this.lowest(policy);
    return host === NONE ? Number.POSITIVE_INFINITY : this.#value(host, policy);
  }

  /** `max - min`. */
  imbalance(policy: number): number {
    return Math.max(0, this.most(policy) - this.least(policy));
  }

  /** `sum(weight x imbalance)`. */
  combined(): number {
    let sum = 0;
    for (let p = 0; p < this.#cluster.P; p++) sum += item(this.#cluster.policies, p).weight * this.imbalance(p);
    return sum;
  }

  /**
   * The policy's imbalance when the first `count` of these hosts have other values.
   *
   * @param values by position among `hosts` and by policy: `values[i * P + policy]`.
   */
  imbalanceWith(policy: number, hosts: Int32Array, values: Float64Array, count: number): number {
    const { P, counted } = this.#cluster;
    let most = Number.NEGATIVE_INFINITY;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < count; i++) {
      if (counted[int(hosts, i)] !== 1) continue;
      const x = float(values, i * P + policy);
      if (x > most) most = x;
      if (x < least) least = x;
    }
    const high = this.#high.firstBut(policy, hosts, count);
    const low = this.#low.firstBut(policy, hosts, count);
    if (high !== NONE) most = Math.max(most, this.#value(high, policy));
    if (low !== NONE) least = Math.min(least, this.#value(low, policy));
    return most >= least ? most - least : 0;
  }

  /** The policy's imbalance after the VM left `a`, for every destination except a sole lowest host, which can do better. */
  afterLeaving(vm: number, a: number, policy: number): number {
    const { P } = this.#cluster;
    const pair = this.#pair;
    const pairValues = this.#pairValues;
    pair[0] = a;
    pairValues[policy] = float(this.#score, a * P + policy) - shareOn(this.#cluster, vm, a, policy);
    return this.imbalanceWith(policy, pair, pairValues, 1);
  }

  /** The policy's imbalance after the VM went from `a` to `b`. */
  after(vm: number, a: number, b: number, policy: number): number {
    const { P } = this.#cluster;
    const pair = this.#pair;
    const pairValues = this.#pairValues;
    pair[0] = a;
    pair[1] = b;
    pairValues[policy] = float(this.#score, a * P + policy) - shareOn(this.#cluster, vm, a, policy);
    pairValues[P + policy] = float(this.#score, b * P + policy) + shareOn(this.#cluster, vm, b, policy);
    return this.imbalanceWith(policy, pair, pairValues, 2);
  }

  #value(host: number, policy: number): number {
    return float(this.#score, host * this.#cluster.P + policy);
  }
}

/**
 * The extreme hosts of each policy at one end, best first. Every listed host is on or beyond the bar, and no other host is beyond it.
 * So the first listed host that has not changed is the extreme among all unchanged hosts.
 */
class End {
  readonly #cluster: Cluster;
  readonly #score: Float64Array;
  /** 1 for the highest, -1 for the lowest. */
  readonly #sign: 1 | -1;
  readonly #hosts: Int32Array;
  readonly #count: Int32Array;
  readonly #bar: Float64Array;

  constructor(cluster: Cluster, score: Float64Array, sign: 1 | -1) {
    this.#cluster = cluster;
    this.#score = score;
    this.#sign = sign;
    this.#hosts = new Int32Array(cluster.P * WIDTH);
    this.#count = new Int32Array(cluster.P);
    this.#bar = new Float64Array(cluster.P);
    this.rebuild();
  }

  rebuild(): void {
    for (let p = 0; p < this.#cluster.P; p++) this.#find(p);
  }

  /** Lists the changed hosts at their new places. */
  changed(hosts: ArrayLike<number>, count: number): void {
    const { P, counted } = this.#cluster;
    for (let p = 0; p < P; p++) {
      for (let i = 0; i < count; i++) this.#remove(p, hosts[i] as number);
      for (let i = 0; i < count; i++) {
        const h = hosts[i] as number;
        if (byte(counted, h) !== 1) continue;
        const key = this.#key(p, h);
        if (key > float(this.#bar, p)) this.#insert(p, h, key);
      }
      if (int(this.#count, p) < ENOUGH) this.#find(p);
    }
  }

  /** The n-th host of the list, from 0; NONE when there are fewer counted hosts. */
  nth(p: number, n: number): number {
    return n < int(this.#count, p) ? int(this.#hosts, p * WIDTH + n) : NONE;
  }

  /** The first host; NONE when the second has the same value, or there is no second. */
  only(p: number): number {
    const second = this.nth(p, 1);
    const first = this.nth(p, 0);
    return second === NONE || this.#key(p, first) === this.#key(p, second) ? NONE : first;
  }

  /** The first host that is none of the first `count` of these. */
  firstBut(p: number, hosts: Int32Array, count: number): number {
    const n = int(this.#count, p);
    for (let k = 0; k < n; k++) {
      const h = int(this.#hosts, p * WIDTH + k);
      let among = false;
      for (let i = 0; i < count; i++) if (int(hosts, i) === h) among = true;
      if (!among) return h;
    }
    return NONE;
  }

  #key(p: number, h: number): number {
    return this.#sign * float(this.#score, h * this.#cluster.P + p);
  }

  #remove(p: number, h: number): void {
    const start = p * WIDTH;
    const n = int(this.#count, p);
    let k = 0;
    while (k < n && int(this.#hosts, start + k) !== h) k++;
    if (k === n) return;
    for (; k + 1 < n; k++) this.#hosts[start + k] = int(this.#hosts, start + k + 1);
    this.#count[p] = n - 1;
  }

  #insert(p: number, h: number, key: number): void {
    const start = p * WIDTH;
    const n = int(this.#count, p);
    let k = n;
    for (; k > 0; k--) {
      const other = int(this.#hosts, start + k - 1);
      if (this.#key(p, other) >= key) break;
      this.#hosts[start + k] = other;
    }
    this.#hosts[start + k] = h;
    if (n < LISTED) {
      this.#count[p] = n + 1;
      return;
    }
    // The list is full: the host that drops out is the new bar.
    this.#bar[p] = this.#key(p, int(this.#hosts, start + LISTED));
  }

  #find(p: number): void {
    const { H, counted } = this.#cluster;
    this.#count[p] = 0;
    this.#bar[p] = Number.NEGATIVE_INFINITY;
    for (let h = 0; h < H; h++) {
      if (byte(counted, h) !== 1) continue;
      const key = this.#key(p, h);
      if (key > float(this.#bar, p)) this.#insert(p, h, key);
    }
  }
}
