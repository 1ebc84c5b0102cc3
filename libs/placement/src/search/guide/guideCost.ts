import { float } from '../../base/array.ts';
import { shareOn } from '../../cluster/cluster.ts';
import type { Field } from '../problem/field.ts';

/**
 * A smooth stand-in for the imbalance: per policy and host `distance ^ power` to the band `[low, high]`. Bands are in the unit
 * of the host values; `low` and `high` are equal for a guide around the means.
 */
export type GuideShape = {
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly power: 2 | 4 | 8;
};

/** The cost of the hosts by a guide, and the change when a VM leaves or arrives. */
export class GuideCost {
  readonly #field: Field;
  readonly #shape: GuideShape;
  readonly #score: Float64Array;
  readonly #cost: Float64Array;

  /** @param score host values; the caller changes them and calls {@link refresh}. */
  constructor(field: Field, shape: GuideShape, score: Float64Array) {
    this.#field = field;
    this.#shape = shape;
    this.#score = score;
    this.#cost = new Float64Array(field.H);
    for (let h = 0; h < field.H; h++) this.refresh(h);
  }

  /** To be called after the host's values have changed. */
  refresh(h: number): void {
    this.#cost[h] = this.#field.cluster.counted[h] === 1 ? this.#with(NOBODY, h, 0, 0, Number.POSITIVE_INFINITY) : 0;
  }

  /** Change on the source when the VM leaves it. */
  leaving(vm: number, a: number): number {
    if (this.#field.cluster.counted[a] !== 1) return 0;
    return this.#with(vm, a, -1, -float(this.#cost, a), Number.POSITIVE_INFINITY);
  }

  /** Change on a destination when the VM arrives, if it is below `limit`; else any value that is not below it. */
  arriving(vm: number, b: number, limit = Number.POSITIVE_INFINITY): number {
    return this.#with(vm, b, 1, -float(this.#cost, b), limit);
  }

  /** `sum`, and what the host costs with (1) or without (-1) the VM: left as soon as it is not below the limit. */
  #with(vm: number, h: number, sign: -1 | 0 | 1, sum: number, limit: number): number {
    const { P, cluster, weights } = this.#field;
    const { low, high, power } = this.#shape;
    let cost = sum;
    for (let p = 0; p < P && cost < limit; p++) {
      let x = float(this.#score, h * P + p);
      if (sign !== 0) x += sign * shareOn(cluster, vm, h, p);
      const l = float(low, p);
      const u = float(high, p);
      const distance = x > u ? x - u : x < l ? l - x : 0;
      const square = distance * distance;
      cost +=
        float(weights, p) *
        (power === 2 ? square : power === 4 ? square * square : square * square * (square * square));
    }
    return cost;
  }
}

const NOBODY = -1;
