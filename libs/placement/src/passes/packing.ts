import { float, int } from '../base/array.ts';
import { destinationsOf } from '../cluster/cluster.ts';
import { Checker } from '../cluster/constraints.ts';
import { imbalances, shift, worsened } from '../cluster/measure.ts';
import { breachGrowth } from '../cluster/softRules.ts';
import type { Draft } from './draft.ts';

/** The destination of each VM that has to leave its host. VMs that are not in it stay. */
export type Packing = ReadonlyMap<number, number>;

/** The search for a packing gives up after this many placements of single VMs. */
const MOST = 200_000;

/**
 * Finds a placement for VMs that have to leave their hosts. It strands fewer than `stranded` of them, and as few as the search can reach.
 * Null when no such placement was found within the limit. The placement breaks no rule, and no policy ends both worse than before and
 * above its threshold.
 *
 * @param draft the state before any of the VMs moves: it is left as it is.
 */
export function packing(draft: Draft, vms: readonly number[], stranded: number): Packing | null {
  for (let behind = 0; behind < stranded; behind++) {
    const found = new Packer(draft, vms, behind).run();
    if (found === 'gave-up') return null;
    if (found !== null) return found;
  }
  return null;
}

class Packer {
  readonly #draft: Draft;
  readonly #behind: number;
  readonly #place: Int32Array;
  readonly #score: Float64Array;
  readonly #room: Draft['room'];
  readonly #checker: Checker;
  readonly #before: Float64Array;
  readonly #destinations: Int32Array;
  readonly #waiting: Set<number>;
  readonly #to = new Map<number, number>();
  #tries = 0;

  /** @param behind the number of VMs that may stay. */
  constructor(draft: Draft, vms: readonly number[], behind: number) {
    const { cluster } = draft;
    this.#draft = draft;
    this.#behind = behind;
    this.#place = Int32Array.from(draft.place);
    this.#score = Float64Array.from(draft.score);
    this.#room = draft.room.copy();
    this.#checker = new Checker(this.#place, this.#room);
    this.#before = imbalances(cluster, draft.score);
    this.#destinations = destinationsOf(cluster);
    this.#waiting = new Set(vms);
  }

  run(): Packing | 'gave-up' | null {
    const found = this.#next(this.#behind);
    this.#draft.evaluated += this.#tries;
    if (found) return new Map(this.#to);
    return this.#tries > MOST ? 'gave-up' : null;
  }

  /** Places the VMs that wait, the one with the fewest destinations first. */
  #next(behind: number): boolean {
    const { cluster } = this.#draft;
    if (this.#waiting.size === 0) return !worsened(cluster, this.#before, imbalances(cluster, this.#score));
    let tightest = -1;
    let fewest: number[] | null = null;
    let mayStay = behind;
    for (const vm of this.#waiting) {
      const hosts = this.#hostsFor(vm);
      if (hosts.length === 0 && --mayStay < 0) return false;
      const first = fewest === null || hosts.length < fewest.length;
      if (!first && (hosts.length > (fewest?.length ?? 0) || !this.#isLarger(vm, tightest))) continue;
      tightest = vm;
      fewest = hosts;
    }
    const hosts = fewest ?? [];
    const from = int(this.#place, tightest);
    this.#waiting.delete(tightest);
    for (const to of hosts) {
      if (++this.#tries > MOST) break;
      this.#room.move(tightest, from, to);
      this.#place[tightest] = to;
      shift(cluster, this.#score, tightest, from, to);
      this.#to.set(tightest, to);
      if (this.#next(behind)) return true;
      this.#to.delete(tightest);
      shift(cluster, this.#score, tightest, to, from);
      this.#place[tightest] = from;
      this.#room.undo(tightest, from, to);
    }
    if (behind > 0 && this.#tries <= MOST && this.#next(behind - 1)) return true;
    this.#waiting.add(tightest);
    return false;
  }

  /** Hosts that take the VM in the present state. Hosts on which it breaks no soft rule come first, then those with the least room left. */
  #hostsFor(vm: number): number[] {
    const { cluster } = this.#draft;
    const { R, demand } = cluster;
    const hosts: { host: number; left: number; breaches: number }[] = [];
    for (const host of this.#destinations) {
      if (this.#checker.refusal(vm, host) !== 0) continue;
      let left = 0;
      for (let r = 0; r < R; r++) {
        const amount = float(demand, vm * R + r);
        const free = float(this.#room.free, host * R + r);
        if (amount > 0 && Number.isFinite(free)) left = Math.max(left, (free - amount) / amount);
      }
      hosts.push({ host, left, breaches: Math.max(0, breachGrowth(cluster, this.#place, vm, host)) });
    }
    return hosts.sort((a, b) => a.breaches - b.breaches || a.left - b.left || a.host - b.host).map(({ host }) => host);
  }

  #isLarger(vm: number, than: number): boolean {
    const { R, demand } = this.#draft.cluster;
    for (let r = 0; r < R; r++) {
      const difference = float(demand, vm * R + r) - float(demand, than * R + r);
      if (difference !== 0) return difference > 0;
    }
    return false;
  }
}

/** The moves of a packing in the order of its VMs. */
export const movesOf = (found: Packing): { vm: number; to: number }[] =>
  [...found].sort(([a], [b]) => a - b).map(([vm, to]) => ({ vm, to }));
