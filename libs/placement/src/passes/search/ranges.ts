import { shareOn } from '../../cluster.ts';
import { EPSILON } from '../../measure.ts';
import type { Field } from './field.ts';
import { Tournament } from './tree.ts';

/** The highest and lowest value of each policy over the counted hosts, kept while hosts change. */
export class Ranges {
  readonly #field: Field;
  readonly #highest: Tournament[];
  readonly #lowest: Tournament[];

  constructor(field: Field, score: Float64Array) {
    const { H, P, cluster } = field;
    this.#field = field;
    this.#highest = Array.from({ length: P }, () => new Tournament(H));
    this.#lowest = Array.from({ length: P }, () => new Tournament(H));
    for (let p = 0; p < P; p++) {
      const highest = this.#highest[p] as Tournament;
      const lowest = this.#lowest[p] as Tournament;
      for (let h = 0; h < H; h++) {
        if (cluster.counted[h] !== 1) continue;
        highest.put(h, score[h * P + p] as number);
        lowest.put(h, -(score[h * P + p] as number));
      }
      highest.rebuild();
      lowest.rebuild();
    }
  }

  /** To be called after the values of these two hosts have changed. */
  update(score: Float64Array, a: number, b: number): void {
    const { P, cluster } = this.#field;
    for (let p = 0; p < P; p++) {
      const highest = this.#highest[p] as Tournament;
      const lowest = this.#lowest[p] as Tournament;
      if (cluster.counted[a] === 1) {
        highest.set(a, score[a * P + p] as number);
        lowest.set(a, -(score[a * P + p] as number));
      }
      if (cluster.counted[b] === 1) {
        highest.set(b, score[b * P + p] as number);
        lowest.set(b, -(score[b * P + p] as number));
      }
    }
  }

  /** Moves a VM in `score`, and follows. */
  shift(score: Float64Array, vm: number, from: number, to: number): void {
    const { P, cluster } = this.#field;
    for (let p = 0; p < P; p++) {
      score[from * P + p] = (score[from * P + p] as number) - shareOn(cluster, vm, from, p);
      score[to * P + p] = (score[to * P + p] as number) + shareOn(cluster, vm, to, p);
    }
    this.update(score, from, to);
  }

  most(p: number): number {
    return (this.#highest[p] as Tournament).topKey();
  }

  least(p: number): number {
    return -(this.#lowest[p] as Tournament).topKey();
  }

  imbalance(p: number): number {
    return (this.#highest[p] as Tournament).topKey() + (this.#lowest[p] as Tournament).topKey();
  }

  combined(): number {
    let sum = 0;
    for (let p = 0; p < this.#field.P; p++) sum += (this.#field.weights[p] as number) * this.imbalance(p);
    return sum;
  }

  /** True when every policy is at or below its threshold. */
  within(): boolean {
    for (let p = 0; p < this.#field.P; p++)
      if (this.imbalance(p) > (this.#field.thresholds[p] as number) + EPSILON) return false;
    return true;
  }

  /** True when no policy is above its threshold and worse than when the pass began. */
  acceptable(): boolean {
    for (let p = 0; p < this.#field.P; p++) {
      const now = this.imbalance(p);
      if (now > (this.#field.thresholds[p] as number) + EPSILON && now > (this.#field.imbalance[p] as number) + EPSILON)
        return false;
    }
    return true;
  }
}
