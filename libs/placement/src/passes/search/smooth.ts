import { byte, float, int } from '../../base/array.ts';
import type { Field } from './field.ts';
import { HOSTS as TOUCHED, type Walk } from './walk.ts';

/**
 * A smooth stand-in for the combined imbalance. For each policy,
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
  /** By host and policy: the part of the cost from the upper end, and from the lower end; 0 for a host that does not count. */
  readonly #upper: Float64Array;
  readonly #lower: Float64Array;
  /** The same for the hosts of the walk's proposal, after it. */
  readonly #nextUpper: Float64Array;
  readonly #nextLower: Float64Array;
  /** By VM and policy: `exp(load / width)` and its inverse. */
  readonly #factor: Float64Array;
  readonly #inverse: Float64Array;
  #grain = 0;

  /** @param score host values; the caller changes them and calls {@link changed}. */
  constructor(field: Field, score: Float64Array) {
    const { H, P, cluster, vmsOf } = field;
    this.#field = field;
    this.#score = score;
    this.#counted = Int32Array.from({ length: H }, (_, h) => h).filter((h) => byte(cluster.counted, h) === 1);
    this.#width = new Float64Array(P);
    this.#middle = new Float64Array(P);
    this.#above = new Float64Array(P);
    this.#below = new Float64Array(P);
    this.#cost = new Float64Array(H);
    this.#upper = new Float64Array(H * P);
    this.#lower = new Float64Array(H * P);
    this.#nextUpper = new Float64Array(TOUCHED * P);
    this.#nextLower = new Float64Array(TOUCHED * P);
    this.#factor = new Float64Array(field.V * P);
    this.#inverse = new Float64Array(field.V * P);
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
    for (const h of this.#counted) {
      let cost = 0;
      for (let p = 0; p < P; p++) {
        const i = h * P + p;
        const e = this.#powerOf(float(this.#score, i), p);
        this.#upper[i] = float(this.#above, p) * e;
        this.#lower[i] = float(this.#below, p) / e;
        cost += float(this.#upper, i) + float(this.#lower, i);
      }
      this.#cost[h] = cost;
    }
    this.#tabulate();
  }

  /** The factors by which the VMs change the parts of their host, if all hosts have one size; NaN where one is out of range. */
  #tabulate(): void {
    const { P, cluster, vmsOf } = this.#field;
    if (!cluster.alike) return;
    for (const vm of vmsOf)
      for (let p = 0; p < P; p++) {
        const i = vm * P + p;
        const exponent = float(cluster.load, i) / float(this.#width, p);
        const factor = exponent > LARGEST_EXPONENT ? Number.NaN : Math.exp(exponent);
        this.#factor[i] = factor;
        this.#inverse[i] = 1 / factor;
      }
  }

  /** The change that the walk's proposal makes. */
  change(walk: Walk): number {
    const { cluster } = this.#field;
    if (!cluster.alike) return this.#calculated(walk);
    const change = this.#lookedUp(walk);
    return Number.isNaN(change) ? this.#calculated(walk) : change;
  }

  /** The change by the table of factors; NaN when the table lacks one. */
  #lookedUp(walk: Walk): number {
    const { P } = this.#field;
    const { touched, touchedCount } = walk;
    const upper = this.#nextUpper;
    const lower = this.#nextLower;
    let change = 0;
    for (let i = 0; i < touchedCount; i++) {
      const h = int(touched, i);
      change -= float(this.#cost, h);
      for (let p = 0; p < P; p++) {
        upper[i * P + p] = float(this.#upper, h * P + p);
        lower[i * P + p] = float(this.#lower, h * P + p);
      }
    }
    for (let k = 0; k < walk.size; k++) {
      const vm = int(walk.vms, k) * P;
      const i = int(walk.leaves, k) * P;
      const j = int(walk.arrives, k) * P;
      for (let p = 0; p < P; p++) {
        const factor = float(this.#factor, vm + p);
        const inverse = float(this.#inverse, vm + p);
        upper[i + p] = float(upper, i + p) * inverse;
        lower[i + p] = float(lower, i + p) * factor;
        upper[j + p] = float(upper, j + p) * factor;
        lower[j + p] = float(lower, j + p) * inverse;
      }
    }
    for (let i = 0; i < touchedCount * P; i++) change += float(upper, i) + float(lower, i);
    return change;
  }

  /** The change by the values of the hosts after the proposal. */
  #calculated(walk: Walk): number {
    const { P, cluster } = this.#field;
    const { touched, touchedCount, value } = walk;
    walk.work();
    let change = 0;
    for (let i = 0; i < touchedCount; i++) {
      const h = int(touched, i);
      if (byte(cluster.counted, h) !== 1) {
        this.#nextUpper.fill(0, i * P, (i + 1) * P);
        this.#nextLower.fill(0, i * P, (i + 1) * P);
        continue;
      }
      change -= float(this.#cost, h);
      for (let p = 0; p < P; p++) {
        const above = float(this.#above, p);
        const below = float(this.#below, p);
        // The power may be infinite or 0: a policy without weight costs nothing all the same.
        const e = this.#powerOf(float(value, i * P + p), p);
        const upper = above === 0 ? 0 : above * e;
        const lower = below === 0 ? 0 : below / e;
        this.#nextUpper[i * P + p] = upper;
        this.#nextLower[i * P + p] = lower;
        change += upper + lower;
      }
    }
    return change;
  }

  /** To be called after the proposal that {@link change} was asked about last has been carried out. */
  changed(walk: Walk): void {
    const { P } = this.#field;
    for (let i = 0; i < walk.touchedCount; i++) {
      const h = int(walk.touched, i);
      let cost = 0;
      for (let p = 0; p < P; p++) {
        const upper = float(this.#nextUpper, i * P + p);
        const lower = float(this.#nextLower, i * P + p);
        this.#upper[h * P + p] = upper;
        this.#lower[h * P + p] = lower;
        cost += upper + lower;
      }
      this.#cost[h] = cost;
    }
  }

  #powerOf(value: number, p: number): number {
    return Math.exp((value - float(this.#middle, p)) / float(this.#width, p));
  }
}

/** Differences of values below this are rounding. */
const LEAST_WIDTH = 1e-6;
/** The exponent of the largest factor: the product of two factors and a part of a cost is a finite number. */
const LARGEST_EXPONENT = 200;
