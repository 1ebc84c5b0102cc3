import type { Field } from './field.ts';

/** The destinations by load (the weighted sum of their values), least loaded first, kept while hosts change. */
export class LoadOrder {
  readonly #field: Field;
  readonly #score: Float64Array;
  readonly #loads: Float64Array;
  readonly #at: Int32Array;
  readonly hosts: Int32Array;

  /** @param score host values; the caller changes them and calls {@link update}. */
  constructor(field: Field, score: Float64Array) {
    const { H } = field;
    this.#field = field;
    this.#score = score;
    this.#loads = new Float64Array(H);
    for (let h = 0; h < H; h++) this.#loads[h] = this.#loadOf(h);
    const loads = this.#loads;
    this.hosts = Int32Array.from(field.destinations).sort(
      (x, y) => (loads[x] as number) - (loads[y] as number) || x - y,
    );
    this.#at = new Int32Array(H).fill(-1);
    this.hosts.forEach((h, i) => {
      this.#at[h] = i;
    });
  }

  /** Puts a host where it belongs after its values have changed. */
  update(h: number): void {
    const hosts = this.hosts;
    const loads = this.#loads;
    const load = this.#loadOf(h);
    loads[h] = load;
    let i = this.#at[h] as number;
    if (i < 0) return;
    for (; i > 0 && (loads[hosts[i - 1] as number] as number) > load; i--) {
      hosts[i] = hosts[i - 1] as number;
      this.#at[hosts[i] as number] = i;
    }
    for (; i + 1 < hosts.length && (loads[hosts[i + 1] as number] as number) < load; i++) {
      hosts[i] = hosts[i + 1] as number;
      this.#at[hosts[i] as number] = i;
    }
    hosts[i] = h;
    this.#at[h] = i;
  }

  #loadOf(h: number): number {
    const { P, weights } = this.#field;
    let sum = 0;
    for (let p = 0; p < P; p++) sum += (weights[p] as number) * (this.#score[h * P + p] as number);
    return sum;
  }
}
