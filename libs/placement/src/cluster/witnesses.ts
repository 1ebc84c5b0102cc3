import { float, int, item } from '../base/array.ts';
import { type Cluster, countedHosts } from './cluster.ts';

/**
 * Recognises the states of a cluster whose combined imbalance is below a limit. Each policy has two witnesses: the hosts that were the
 * highest and the lowest when all hosts were compared last. Their present values limit the imbalance from below, so most states need no
 * comparison with the other hosts.
 */
export class Witnesses {
  readonly #cluster: Cluster;
  readonly #score: Float64Array;
  readonly #counted: Int32Array;
  readonly #high: Int32Array;
  readonly #low: Int32Array;

  /** @param score host values; the caller changes them. */
  constructor(cluster: Cluster, score: Float64Array) {
    const { P } = cluster;
    this.#cluster = cluster;
    this.#score = score;
    this.#counted = countedHosts(cluster);
    this.#high = new Int32Array(P).fill(this.#counted[0] ?? 0);
    this.#low = Int32Array.from(this.#high);
  }

  /** The combined imbalance (`sum(weight x imbalance)`) if it is below the limit; else a number between the limit and it. */
  combined(limit: number): number {
    const shown = this.#shown();
    if (shown >= limit) return shown;
    this.#look();
    return this.#shown();
  }

  /** `max - min` of a policy's values, after a call of {@link combined} that returned less than its limit. */
  imbalance(policy: number): number {
    const { P } = this.#cluster;
    return (
      float(this.#score, int(this.#high, policy) * P + policy) - float(this.#score, int(this.#low, policy) * P + policy)
    );
  }

  #shown(): number {
    const { P, policies } = this.#cluster;
    let sum = 0;
    for (let p = 0; p < P; p++) sum += item(policies, p).weight * Math.max(0, this.imbalance(p));
    return sum;
  }

  #look(): void {
    const { P } = this.#cluster;
    const counted = this.#counted;
    for (let p = 0; p < P; p++) {
      let most = Number.NEGATIVE_INFINITY;
      let least = Number.POSITIVE_INFINITY;
      for (let i = 0; i < counted.length; i++) {
        const h = int(counted, i);
        const x = float(this.#score, h * P + p);
        if (x > most) {
          most = x;
          this.#high[p] = h;
        }
        if (x < least) {
          least = x;
          this.#low[p] = h;
        }
      }
    }
  }
}
