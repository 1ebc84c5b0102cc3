import { byte, float } from '../../array.ts';
import type { Random } from '../../random.ts';
import type { Field } from './field.ts';

/**
 * The counted hosts in the order of their values, by policy. When many hosts are close to the highest one, proposals about the highest
 * host alone are nearly always rejected. So hosts are drawn by rank: a host closer to the end is drawn more often.
 */
export class Ranks {
  readonly #field: Field;
  readonly #score: Float64Array;
  /** By policy: hosts, the highest value first, as it was at the last {@link refresh}. */
  readonly #hosts: readonly Int32Array[];

  /** @param score host values; the caller changes them and calls {@link refresh} now and then. */
  constructor(field: Field, score: Float64Array) {
    const { H, P, cluster } = field;
    this.#field = field;
    this.#score = score;
    const counted = Int32Array.from({ length: H }, (_, h) => h).filter((h) => byte(cluster.counted, h) === 1);
    this.#hosts = Array.from({ length: P }, () => Int32Array.from(counted));
    this.refresh();
  }

  refresh(): void {
    const { P } = this.#field;
    this.#hosts.forEach((hosts, p) => {
      hosts.sort((a, b) => float(this.#score, b * P + p) - float(this.#score, a * P + p) || a - b);
    });
  }

  /** A host near the upper (`high`) or the lower end of a policy; -1 when no host is counted. Among 400 hosts, 37 of 100 draws give the first one. */
  draw(random: Random, policy: number, high: boolean): number {
    const hosts = this.#hosts[policy];
    if (hosts === undefined || hosts.length === 0) return -1;
    const x = random.unit();
    const cube = x * x * x;
    const rank = Math.floor(hosts.length * cube * cube);
    return hosts[high ? rank : hosts.length - 1 - rank] ?? -1;
  }
}
