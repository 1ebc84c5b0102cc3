import { shareOn } from '../../cluster.ts';
import type { Field } from './field.ts';

/**
 * A smooth stand-in for the imbalance: per policy and host `distance ^ power` to the band `[low, high]`. Bands are in the unit
 * of the host values; `low` and `high` are equal for a guide around the means.
 */
export type GuideShape = {
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly power: 2 | 4 | 8;
};

/** What the hosts cost by a guide, and what a VM's leaving or arriving changes. */
export class GuideCost {
  readonly #field: Field;
  readonly #shape: GuideShape;
  readonly #score: Float64Array;
  readonly #cost: Float64Array;
  /** The policies of the host that was looked at last, the one that costs most first, and what it costs in each. */
  readonly #byCost: Int32Array;
  readonly #costs: Float64Array;
  readonly #load: Float64Array;
  /** What the arrival changes at the host that {@link cheapest} found. */
  arrival = Number.POSITIVE_INFINITY;

  /** @param score host values; the caller changes them and calls {@link refresh}. */
  constructor(field: Field, shape: GuideShape, score: Float64Array) {
    this.#field = field;
    this.#shape = shape;
    this.#score = score;
    this.#cost = new Float64Array(field.H);
    this.#byCost = new Int32Array(field.P);
    this.#costs = new Float64Array(field.P);
    this.#load = new Float64Array(field.P);
    for (let h = 0; h < field.H; h++) this.refresh(h);
  }

  /** To be called after the host's values have changed. */
  refresh(h: number): void {
    const { P, cluster } = this.#field;
    let sum = 0;
    if (cluster.counted[h] === 1) for (let p = 0; p < P; p++) sum += this.#at(p, this.#score[h * P + p] as number);
    this.#cost[h] = sum;
  }

  /** Change on the source when the VM leaves it. */
  leaving(vm: number, a: number): number {
    const { P, cluster } = this.#field;
    if (cluster.counted[a] !== 1) return 0;
    let sum = -(this.#cost[a] as number);
    for (let p = 0; p < P; p++) sum += this.#at(p, (this.#score[a * P + p] as number) - shareOn(cluster, vm, a, p));
    return sum;
  }

  /** Change on a destination when the VM arrives. */
  arriving(vm: number, b: number): number {
    const { P, cluster } = this.#field;
    let sum = -(this.#cost[b] as number);
    for (let p = 0; p < P; p++) sum += this.#at(p, (this.#score[b * P + p] as number) + shareOn(cluster, vm, b, p));
    return sum;
  }

  /** Prepares {@link arrivingBelow} for a host. */
  lookAt(b: number): void {
    const { P } = this.#field;
    for (let p = 0; p < P; p++) {
      const cost = this.#at(p, this.#score[b * P + p] as number);
      let i = p;
      for (; i > 0 && (this.#costs[i - 1] as number) < cost; i--) {
        this.#costs[i] = this.#costs[i - 1] as number;
        this.#byCost[i] = this.#byCost[i - 1] as number;
      }
      this.#costs[i] = cost;
      this.#byCost[i] = p;
    }
  }

  /** {@link arriving} at the host that was looked at, if it is below `limit`; else anything that is not. */
  arrivingBelow(vm: number, b: number, limit: number): number {
    const { P, cluster, weights } = this.#field;
    if (!cluster.alike) return this.arriving(vm, b);
    const { low, high, power } = this.#shape;
    const byCost = this.#byCost;
    let sum = -(this.#cost[b] as number);
    for (let i = 0; i < P && sum < limit; i++) {
      const p = byCost[i] as number;
      const x = (this.#score[b * P + p] as number) + (cluster.load[vm * P + p] as number);
      sum += (weights[p] as number) * beyond(x, low[p] as number, high[p] as number, power);
    }
    return sum;
  }

  /** Adds the best of these destinations to the search that {@link begin} began; returns it, or `otherwise`. */
  cheapest(vm: number, own: number, hosts: readonly number[], otherwise: number): number {
    const { P, cluster, weights } = this.#field;
    const { low, high, power } = this.#shape;
    const score = this.#score;
    const cost = this.#cost;
    const load = this.#load;
    let to = otherwise;
    let least = this.arrival;
    for (let p = 0; p < P; p++) load[p] = cluster.load[vm * P + p] as number;
    for (let i = 0; i < hosts.length; i++) {
      const b = hosts[i] as number;
      if (b === own) continue;
      let sum = 0;
      if (cluster.alike) {
        // The same as `arriving`, left as soon as it is no longer the least: this is where the time goes.
        sum = -(cost[b] as number);
        for (let p = 0; p < P && sum < least; p++) {
          const x = (score[b * P + p] as number) + (load[p] as number);
          sum += (weights[p] as number) * beyond(x, low[p] as number, high[p] as number, power);
        }
      } else sum = this.arriving(vm, b);
      if (sum < least) {
        least = sum;
        to = b;
      }
    }
    this.arrival = least;
    return to;
  }

  /** Begins a search for the cheapest destination. */
  begin(): void {
    this.arrival = Number.POSITIVE_INFINITY;
  }

  #at(p: number, value: number): number {
    const { low, high, power } = this.#shape;
    return (this.#field.weights[p] as number) * beyond(value, low[p] as number, high[p] as number, power);
  }
}

/** The distance of a value to the band, to this power. */
function beyond(value: number, low: number, high: number, power: GuideShape['power']): number {
  const distance = value > high ? value - high : value < low ? low - value : 0;
  const square = distance * distance;
  if (power === 2) return square;
  return power === 4 ? square * square : square * square * (square * square);
}
