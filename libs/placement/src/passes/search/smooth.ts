import { byte, float, int } from '../../array.ts';
import type { Field } from './field.ts';

/**
 * A smooth stand-in for the combined imbalance. For each policy,
 *
 *     width x (log sum exp((x - middle) / width) + log sum exp((middle - x) / width))
 *
 * over the values x of the counted hosts is close to `max - min`, and closer for a smaller width. Each host counts, and counts more the
 * closer it is to the highest or the lowest one. So a proposal gains if it helps one of many hosts that share the maximum, which the
 * imbalance itself does not show. The logarithm is replaced by its tangent at the last {@link sharpen}: then the change that a
 * proposal makes depends only on the hosts that it touches.
 */
export class Smooth {
  readonly #field: Field;
  readonly #score: Float64Array;
  readonly #counted: Int32Array;
  readonly #width: Float64Array;
  readonly #middle: Float64Array;
  /** By policy: what a host at the middle counts towards the maximum and towards the minimum. */
  readonly #above: Float64Array;
  readonly #below: Float64Array;
  readonly #cost: Float64Array;
  /** The load of an average movable VM on an average host, by policy. */
  readonly #typical: Float64Array;
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
    this.#typical = new Float64Array(P);
    for (let p = 0; p < P; p++) {
      let loads = 0;
      for (const v of vmsOf) loads += float(cluster.load, v * P + p);
      let sizes = 0;
      for (const h of this.#counted) sizes += float(cluster.size, h * P + p);
      this.#typical[p] = sizes === 0 ? 0 : (loads / vmsOf.length) * (this.#counted.length / sizes);
    }
  }

  /** What an average VM changes when it leaves or joins an extreme host: the unit of temperatures. */
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
        const e = Math.exp((float(this.#score, h * P + p) - middle) / tau);
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
    for (const h of this.#counted) this.#cost[h] = this.#costOf(this.#score, h * P);
  }

  /** The change when the first `count` of these hosts have other values: `values[i * P + policy]`. */
  change(hosts: Int32Array, values: Float64Array, count: number): number {
    const { P, cluster } = this.#field;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const h = int(hosts, i);
      if (byte(cluster.counted, h) === 1) sum += this.#costOf(values, i * P) - float(this.#cost, h);
    }
    return sum;
  }

  /** To be called after the values of the first `count` of these hosts have changed. */
  changed(hosts: Int32Array, count: number): void {
    const { P, cluster } = this.#field;
    for (let i = 0; i < count; i++) {
      const h = int(hosts, i);
      if (byte(cluster.counted, h) === 1) this.#cost[h] = this.#costOf(this.#score, h * P);
    }
  }

  #costOf(values: Float64Array, from: number): number {
    const { P } = this.#field;
    let sum = 0;
    for (let p = 0; p < P; p++) {
      const e = Math.exp((float(values, from + p) - float(this.#middle, p)) / float(this.#width, p));
      sum += float(this.#above, p) * e + float(this.#below, p) / e;
    }
    return sum;
  }
}

/** Below this differences of values are rounding. */
const LEAST_WIDTH = 1e-6;
