import { float, int } from '../base/array.ts';
import { type Cluster, destinationsOf } from './cluster.ts';

/** The destinations by load (the weighted sum of their values), least loaded first and then by index, kept while hosts change. */
export class LoadOrder {
  readonly #cluster: Cluster;
  readonly #weights: Float64Array;
  readonly #score: Float64Array;
  readonly #loads: Float64Array;
  readonly #at: Int32Array;
  readonly hosts: Int32Array;

  /** @param score host values; the caller changes them and calls {@link update}. */
  constructor(cluster: Cluster, score: Float64Array) {
    const { H } = cluster;
    this.#cluster = cluster;
    this.#weights = Float64Array.from(cluster.policies, (policy) => policy.weight);
    this.#score = score;
    this.#loads = new Float64Array(H);
    for (let h = 0; h < H; h++) this.#loads[h] = this.#loadOf(h);
    const loads = this.#loads;
    this.hosts = destinationsOf(cluster).sort((x, y) => float(loads, x) - float(loads, y) || x - y);
    this.#at = new Int32Array(H).fill(-1);
    this.hosts.forEach((h, i) => {
      this.#at[h] = i;
    });
  }

  /** Moves a host to its place after its values have changed. */
  update(h: number): void {
    const hosts = this.hosts;
    this.#loads[h] = this.#loadOf(h);
    let i = int(this.#at, h);
    if (i < 0) return;
    for (; i > 0 && this.#isBefore(h, int(hosts, i - 1)); i--) {
      hosts[i] = int(hosts, i - 1);
      this.#at[int(hosts, i)] = i;
    }
    for (; i + 1 < hosts.length && this.#isBefore(int(hosts, i + 1), h); i++) {
      hosts[i] = int(hosts, i + 1);
      this.#at[int(hosts, i)] = i;
    }
    hosts[i] = h;
    this.#at[h] = i;
  }

  /** The weighted sum of the host's values when it was last updated. */
  load(h: number): number {
    return float(this.#loads, h);
  }

  #isBefore(a: number, b: number): boolean {
    const difference = float(this.#loads, a) - float(this.#loads, b);
    return difference < 0 || (difference === 0 && a < b);
  }

  #loadOf(h: number): number {
    const { P } = this.#cluster;
    let sum = 0;
    for (let p = 0; p < P; p++) sum += float(this.#weights, p) * float(this.#score, h * P + p);
    return sum;
  }
}
