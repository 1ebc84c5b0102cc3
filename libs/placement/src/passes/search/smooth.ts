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
  /** By host and policy: `exp((value - middle) / width)`. */
  readonly #power: Float64Array;
  /** The same for the hosts of the walk's proposal, after it. */
  readonly #next: Float64Array;
  /** By VM and policy: `exp(load / width)`, if `tabled`. */
  readonly #factor: Float64Array;
  #tabled = false;
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
    this.#power = new Float64Array(H * P);
    this.#next = new Float64Array(TOUCHED * P);
    this.#factor = new Float64Array(field.V * P);
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
    for (let h = 0; h < this.#field.H; h++)
      for (let p = 0; p < P; p++) this.#power[h * P + p] = this.#powerOf(float(this.#score, h * P + p), p);
    for (const h of this.#counted) this.#cost[h] = this.#costOf(this.#power, h * P);
    this.#tabulate();
  }

  /** The factor by which a VM changes the powers of its host, if all hosts have one size and no factor is out of range. */
  #tabulate(): void {
    const { P, cluster, vmsOf } = this.#field;
    this.#tabled = cluster.alike;
    for (let k = 0; k < vmsOf.length && this.#tabled; k++) {
      const i = int(vmsOf, k) * P;
      for (let p = 0; p < P; p++) {
        const exponent = float(cluster.load, i + p) / float(this.#width, p);
        if (exponent > LARGEST_EXPONENT) this.#tabled = false;
        this.#factor[i + p] = Math.exp(exponent);
      }
    }
  }

  /** The change that the walk's proposal makes. */
  change(walk: Walk): number {
    const { P, cluster } = this.#field;
    const { touched, touchedCount, value } = walk;
    const next = this.#next;
    if (this.#tabled) {
      for (let i = 0; i < touchedCount; i++) {
        const from = int(touched, i) * P;
        for (let p = 0; p < P; p++) next[i * P + p] = float(this.#power, from + p);
      }
      for (let k = 0; k < walk.size; k++) {
        const vm = int(walk.vms, k) * P;
        const i = int(walk.leaves, k) * P;
        const j = int(walk.arrives, k) * P;
        for (let p = 0; p < P; p++) {
          const factor = float(this.#factor, vm + p);
          next[i + p] = float(next, i + p) / factor;
          next[j + p] = float(next, j + p) * factor;
        }
      }
    } else {
      walk.work();
      for (let i = 0; i < touchedCount; i++)
        for (let p = 0; p < P; p++) next[i * P + p] = this.#powerOf(float(value, i * P + p), p);
    }
    let sum = 0;
    for (let i = 0; i < touchedCount; i++) {
      const h = int(touched, i);
      if (byte(cluster.counted, h) === 1) sum += this.#costOf(next, i * P) - float(this.#cost, h);
    }
    return sum;
  }

  /** To be called after the proposal that {@link change} was asked about last has been carried out. */
  changed(walk: Walk): void {
    const { P, cluster } = this.#field;
    for (let i = 0; i < walk.touchedCount; i++) {
      const h = int(walk.touched, i);
      for (let p = 0; p < P; p++) this.#power[h * P + p] = float(this.#next, i * P + p);
      if (byte(cluster.counted, h) === 1) this.#cost[h] = this.#costOf(this.#power, h * P);
    }
  }

  #powerOf(value: number, p: number): number {
    return Math.exp((value - float(this.#middle, p)) / float(this.#width, p));
  }

  #costOf(powers: Float64Array, from: number): number {
    const { P } = this.#field;
    let sum = 0;
    for (let p = 0; p < P; p++) {
      const e = float(powers, from + p);
      sum += float(this.#above, p) * e + float(this.#below, p) / e;
    }
    return sum;
  }
}

/** Differences of values below this are rounding. */
const LEAST_WIDTH = 1e-6;
/** The exponent of the largest factor: products of a few stay numbers. */
const LARGEST_EXPONENT = 100;
