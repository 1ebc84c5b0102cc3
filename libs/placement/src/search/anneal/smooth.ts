import { byte, float, int } from '../../base/array.ts';
import { countedHosts } from '../../cluster/cluster.ts';
import type { Walk } from '../changes/walk.ts';
import type { Field } from '../problem/field.ts';

/**
 * A smooth approximation of the combined imbalance. For each policy,
 *
 *     width x (log sum exp((x - middle) / width) + log sum exp((middle - x) / width))
 *
 * over the values x of the counted hosts is close to `max - min`, and closer for a smaller width. Each host counts, and it counts more
 * when it is closer to the highest or the lowest host. So a proposal gains if it helps one of many hosts that share the maximum, which the
 * imbalance itself does not show. The logarithm is replaced by its tangent at the last {@link sharpen}: then the change that a
 * proposal makes depends only on the hosts that it touches.
 */
export class Smooth {
  readonly #field: Field;
  readonly #score: Float64Array;
  readonly #counted: Int32Array;
  readonly #width: Float64Array;
  readonly #middle: Float64Array;
  /** By policy: the weight that a host at the middle has in the maximum and in the minimum. */
  readonly #above: Float64Array;
  readonly #below: Float64Array;
  readonly #cost: Float64Array;
  /** The load of an average movable VM on an average host, by policy. */
  readonly #typical: Float64Array;
  /**
   * By host: for each policy the part of the cost from the upper end, then for each policy the part from the lower end; 0 for a host that
   * does not count.
   */
  readonly #parts: Float64Array;
  /** By VM, in the same order: the factors by which it changes the parts of a host that it leaves, and of one that it joins. */
  readonly #leave: Float64Array;
  readonly #join: Float64Array;
  #grain = 0;

  /** @param score host values; the caller changes them and calls {@link changed}. */
  constructor(field: Field, score: Float64Array) {
    const { H, P, cluster, vmsOf } = field;
    this.#field = field;
    this.#score = score;
    this.#counted = countedHosts(cluster);
    this.#width = new Float64Array(P);
    this.#middle = new Float64Array(P);
    this.#above = new Float64Array(P);
    this.#below = new Float64Array(P);
    this.#cost = new Float64Array(H);
    this.#parts = new Float64Array(H * 2 * P);
    this.#leave = new Float64Array(field.V * 2 * P);
    this.#join = new Float64Array(field.V * 2 * P);
    this.#typical = new Float64Array(P);
    for (let p = 0; p < P; p++) {
      let loads = 0;
      for (const v of vmsOf) loads += float(cluster.load, v * P + p);
      let sizes = 0;
      for (const h of this.#counted) sizes += float(cluster.size, h * P + p);
      this.#typical[p] = sizes === 0 ? 0 : (loads / vmsOf.length) * (this.#counted.length / sizes);
    }
  }

  /** The effect of an average VM that leaves or joins an extreme host: the unit of temperatures. */
  get grain(): number {
    return this.#grain;
  }

  /**
   * Sets the width, and the tangent at the present state.
   *
   * @param width as a part of the present imbalance of each policy.
   */
  sharpen(width: number): void {
    const { P, weights } = this.#field;
    this.#grain = 0;
    for (let p = 0; p < P; p++) {
      let low = Number.POSITIVE_INFINITY;
      let high = Number.NEGATIVE_INFINITY;
      for (const h of this.#counted) {
        const x = float(this.#score, h * P + p);
        if (x < low) low = x;
        if (x > high) high = x;
      }
      const middle = (low + high) / 2;
      const tau = Math.max(width * (high - low), LEAST_WIDTH);
      this.#middle[p] = middle;
      this.#width[p] = tau;
      let [above, aboveSquares, below, belowSquares] = [0, 0, 0, 0];
      for (const h of this.#counted) {
        const e = this.#powerOf(float(this.#score, h * P + p), p);
        above += e;
        aboveSquares += e * e;
        below += 1 / e;
        belowSquares += 1 / (e * e);
      }
      const weight = float(weights, p);
      this.#above[p] = (weight * tau) / above;
      this.#below[p] = (weight * tau) / below;
      // 1 / (number of hosts that count as extreme), averaged over both ends.
      const share = (aboveSquares / (above * above) + belowSquares / (below * below)) / 2;
      this.#grain += weight * float(this.#typical, p) * share;
    }
    for (const h of this.#counted) this.#evaluate(h);
    this.#tabulate();
  }

  /** Sets the parts and the cost of a counted host from its present values. */
  #evaluate(h: number): void {
    const { P } = this.#field;
    let cost = 0;
    for (let p = 0; p < P; p++) {
      const e = this.#powerOf(float(this.#score, h * P + p), p);
      const upper = this.#upper(e, p);
      const lower = this.#lower(e, p);
      this.#parts[h * 2 * P + p] = upper;
      this.#parts[(h * 2 + 1) * P + p] = lower;
      cost += upper + lower;
    }
    this.#cost[h] = cost;
  }

  /** The factors of all VMs, if all hosts have one size; NaN where one is out of range. */
  #tabulate(): void {
    const { P, cluster, vmsOf } = this.#field;
    if (!cluster.alike) return;
    for (const vm of vmsOf)
      for (let p = 0; p < P; p++) {
        const exponent = float(cluster.load, vm * P + p) / float(this.#width, p);
        const more = exponent > LARGEST_EXPONENT ? Number.NaN : Math.exp(exponent);
        const less = 1 / more;
        const upper = vm * 2 * P + p;
        const lower = upper + P;
        this.#join[upper] = more;
        this.#join[lower] = less;
        this.#leave[upper] = less;
        this.#leave[lower] = more;
      }
  }

  /** The change that the walk's proposal makes. */
  change(walk: Walk): number {
    if (!this.#field.cluster.alike) return this.#calculated(walk);
    const change = walk.size === 1 ? this.#ofOne(walk) : this.#ofTwo(walk);
    return Number.isNaN(change) ? this.#calculated(walk) : change;
  }

  /** The change of a single move by the table of factors; NaN when the table lacks one. */
  #ofOne({ vms, from, to }: Walk): number {
    const v = int(vms, 0);
    return this.#with(int(from, 0), this.#leave, v) + this.#with(int(to, 0), this.#join, v);
  }

  /** The same for two moves. Each host that they share takes the factors of both. */
  #ofTwo({ vms, from, to }: Walk): number {
    const leave = this.#leave;
    const join = this.#join;
    const v = int(vms, 0);
    const a = int(from, 0);
    const b = int(to, 0);
    const u = int(vms, 1);
    const c = int(from, 1);
    const d = int(to, 1);
    let change = 0;
    if (a === d) change += this.#withBoth(a, leave, v, join, u);
    else if (a === c) change += this.#withBoth(a, leave, v, leave, u);
    else change += this.#with(a, leave, v);
    if (b === c) change += this.#withBoth(b, join, v, leave, u);
    else if (b === d) change += this.#withBoth(b, join, v, join, u);
    else change += this.#with(b, join, v);
    if (c !== a && c !== b) change += this.#with(c, leave, u);
    if (d !== a && d !== b) change += this.#with(d, join, u);
    return change;
  }

  /** The change of a host's cost when a VM leaves or joins it. */
  #with(host: number, factors: Float64Array, vm: number): number {
    const n = 2 * this.#field.P;
    const parts = this.#parts;
    let cost = -float(this.#cost, host);
    for (let i = host * n, j = vm * n, end = i + n; i < end; i++, j++) cost += float(parts, i) * float(factors, j);
    return cost;
  }

  /** The same for two VMs. */
  #withBoth(host: number, factors: Float64Array, vm: number, others: Float64Array, other: number): number {
    const n = 2 * this.#field.P;
    const parts = this.#parts;
    let cost = -float(this.#cost, host);
    for (let i = host * n, j = vm * n, k = other * n, end = i + n; i < end; i++, j++, k++)
      cost += float(parts, i) * (float(factors, j) * float(others, k));
    return cost;
  }

  /** The change by the values of the hosts after the proposal. */
  #calculated(walk: Walk): number {
    const { P, cluster } = this.#field;
    walk.work();
    const { touched, touchedCount, value } = walk;
    let change = 0;
    for (let i = 0; i < touchedCount; i++) {
      const h = int(touched, i);
      if (byte(cluster.counted, h) !== 1) continue;
      change -= float(this.#cost, h);
      for (let p = 0; p < P; p++) {
        const e = this.#powerOf(float(value, i * P + p), p);
        change += this.#upper(e, p) + this.#lower(e, p);
      }
    }
    return change;
  }

  /** To be called after the proposal has been carried out. */
  changed({ vms, from, to, size }: Walk): void {
    const { alike } = this.#field.cluster;
    for (let k = 0; k < size && alike; k++) {
      this.#multiply(int(from, k), this.#leave, int(vms, k));
      this.#multiply(int(to, k), this.#join, int(vms, k));
    }
    for (let k = 0; k < size; k++) {
      this.#settle(int(from, k), alike);
      this.#settle(int(to, k), alike);
    }
  }

  /** Multiplies the parts of a host by the factors of a VM that left or joined it. */
  #multiply(host: number, factors: Float64Array, vm: number): void {
    const { P } = this.#field;
    let cost = 0;
    for (let i = host * 2 * P, j = vm * 2 * P, end = i + 2 * P; i < end; i++, j++) {
      const part = float(this.#parts, i) * float(factors, j);
      this.#parts[i] = part;
      cost += part;
    }
    this.#cost[host] = cost;
  }

  /** Computes a changed host again if there is no table, or if its cost is NaN or infinite. */
  #settle(host: number, alike: boolean): void {
    if (alike && float(this.#cost, host) < Number.POSITIVE_INFINITY) return;
    if (byte(this.#field.cluster.counted, host) === 1) this.#evaluate(host);
    else this.#clear(host);
  }

  /** A host that does not count costs nothing. */
  #clear(host: number): void {
    const { P } = this.#field;
    this.#parts.fill(0, host * 2 * P, (host + 1) * 2 * P);
    this.#cost[host] = 0;
  }

  /** The part of the cost from the upper end, by {@link #powerOf}, which may be infinite: a policy without weight costs nothing. */
  #upper(power: number, p: number): number {
    const above = float(this.#above, p);
    return above === 0 ? 0 : above * power;
  }

  /** The same from the lower end, for a power that may be 0. */
  #lower(power: number, p: number): number {
    const below = float(this.#below, p);
    return below === 0 ? 0 : below / power;
  }

  #powerOf(value: number, p: number): number {
    return Math.exp((value - float(this.#middle, p)) / float(this.#width, p));
  }
}

/** Differences of values below this are rounding. */
const LEAST_WIDTH = 1e-6;
/** The exponent of the largest factor: the product of two factors and a part of a cost is a finite number. */
const LARGEST_EXPONENT = 200;
