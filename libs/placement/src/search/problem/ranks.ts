import { float, int } from '../../base/array.ts';
import type { Random } from '../../base/random.ts';
import { countedHosts } from '../../cluster/cluster.ts';
import type { Field } from './field.ts';

/** The insertion sort stops after this many shifts per host, because a full sort then takes less time. */
const MOST_SHIFTS = 15;

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
    const { P, cluster } = field;
    this.#field = field;
    this.#score = score;
    const counted = countedHosts(cluster);
    this.#hosts = Array.from({ length: P }, () => Int32Array.from(counted));
    this.refresh();
  }

  refresh(): void {
    this.#hosts.forEach((hosts, p) => {
      if (this.#inserted(hosts, p)) return;
      const { P } = this.#field;
      hosts.sort((a, b) => float(this.#score, b * P + p) - float(this.#score, a * P + p) || a - b);
    });
  }

  /** Sorts hosts by insertion, which is quick when few hosts have changed. False, with the hosts not sorted, when too many have. */
  #inserted(hosts: Int32Array, p: number): boolean {
    const { P } = this.#field;
    const score = this.#score;
    let left = MOST_SHIFTS * hosts.length;
    for (let i = 1; i < hosts.length; i++) {
      const host = int(hosts, i);
      const value = float(score, host * P + p);
      let k = i;
      for (; k > 0; k--) {
        const before = int(hosts, k - 1);
        const other = float(score, before * P + p);
        if (other > value || (other === value && before < host)) break;
        hosts[k] = before;
      }
      hosts[k] = host;
      left -= i - k;
      if (left < 0) return false;
    }
    return true;
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
