import { EPSILON } from '@kronos/rules';
import { int, item } from '../../base/array.ts';
import type { Room } from '../../cluster/constraints.ts';
import { Extremes } from '../../cluster/extremes.ts';
import { valuesAfter } from '../../cluster/measure.ts';
import { costTo, type Field } from '../problem/field.ts';
import type { Parked } from '../problem/sequence.ts';
import { isAcceptable, judge, reaches, type Solution } from '../problem/solution.ts';

/** Plans with more moves than this are not searched for exchanges with too little gain. */
const PAIRED = 40;

/**
 * Removes needless moves from a solution: first the moves without which every target is still reached, then those that gain less than
 * `minGain`. Expensive moves are removed first. A move is needed if the VM's place at home is taken.
 *
 * @param order finds an order for the remaining moves; null when there is none, and the solution is unchanged.
 */
export function pruned(
  field: Field,
  solution: Solution,
  minGain: number,
  order: (place: Int32Array) => Parked | null,
): Solution {
  const floor = Math.max(minGain, EPSILON);
  const pruner = new Pruner(field, solution);
  const { place } = pruner;
  if (solution.reached) pruner.keepTargets();
  else {
    pruner.keepGain(floor);
    const gained = judge(field, field.home).combined - judge(field, place).combined;
    if (gained < floor * pruner.left - EPSILON / 2) return judge(field, field.home);
  }
  if (pruner.removed === 0) return solution;
  const parked = order(place);
  return parked === null ? solution : judge(field, place, parked);
}

class Pruner {
  readonly place: Int32Array;
  readonly #field: Field;
  readonly #room: Room;
  readonly #extremes: Extremes;
  /** Arrivals by host. */
  readonly #arrivals: Int32Array;
  /** The VMs that are away from home, the most expensive first. */
  #left: readonly number[];
  readonly #moves: number;

  constructor(field: Field, solution: Solution) {
    const { home, V, H, cluster } = field;
    this.#field = field;
    this.place = Int32Array.from(solution.place);
    this.#arrivals = new Int32Array(H);
    this.#room = field.room.copy(true);
    const away: number[] = [];
    for (let v = 0; v < V; v++) {
      const host = int(this.place, v);
      if (host === int(home, v)) continue;
      away.push(v);
      this.#room.move(v, int(home, v), host);
      this.#arrivals[host] = int(this.#arrivals, host) + 1;
    }
    const costOf = (v: number): number => costTo(field, v, int(this.place, v));
    away.sort((a, b) => costOf(b) - costOf(a) || a - b);
    this.#left = away;
    this.#moves = away.length;
    this.#extremes = new Extremes(cluster, valuesAfter(cluster, field.score, home, this.place));
  }

  get left(): number {
    return this.#left.length;
  }

  get removed(): number {
    return this.#moves - this.#left.length;
  }

  /** Removes the moves without which every target is still reached. */
  keepTargets(): void {
    const field = this.#field;
    const breaks = (): boolean => field.lax.length > 0 && !judge(field, this.place).reached;
    this.#drop(1, () => reaches(field, this.#extremes) && !breaks());
  }

  /** Removes the moves that gain less than `floor`. */
  keepGain(floor: number): void {
    // A move may become needless when another one is removed.
    for (let before = -1; before !== this.left; ) {
      before = this.left;
      this.#drop(1, (without, now) => without < now + floor - EPSILON / 2);
      // The halves of an exchange that gains little need each other.
      if (this.left <= PAIRED) this.#drop(2, (without, now) => without < now + 2 * floor - EPSILON / 2);
    }
  }

  /** Sends sets of this many VMs home as long as the plan does not become worse. */
  #drop(size: 1 | 2, needless: (without: number, now: number) => boolean): void {
    const field = this.#field;
    const { home, lax } = field;
    const extremes = this.#extremes;
    const isHome = (v: number): boolean => int(this.place, v) === int(home, v);
    let now = judge(field, this.place).combined;
    for (let again = true; again; ) {
      again = false;
      for (const set of size === 1 ? this.#left.map((v) => [v]) : pairsOf(this.#left)) {
        if (set.some(isHome)) continue;
        const hosts = set.map((v) => int(this.place, v));
        const possible = this.#sendHome(set);
        const without = lax.length === 0 ? extremes.combined() : judge(field, this.place).combined;
        if (possible && needless(without, now) && isAcceptable(field, extremes)) {
          now = without;
          again = true;
          for (const h of hosts) this.#arrivals[h] = int(this.#arrivals, h) - 1;
        } else this.#takeBack(set, hosts);
      }
      this.#left = this.#left.filter((v) => !isHome(v));
    }
  }

  /** False when the place of one of them is taken. */
  #sendHome(set: readonly number[]): boolean {
    const { home } = this.#field;
    for (const v of set) this.#room.depart(v, int(this.place, v));
    let possible = true;
    for (const v of set) {
      // Before an arrival, the VMs of the start may still be there.
      possible &&= int(this.#arrivals, int(home, v)) === 0 || this.#room.holds(v, int(home, v));
      this.#room.arrive(v, int(home, v));
    }
    for (const v of set) {
      this.#extremes.shift(v, int(this.place, v), int(home, v));
      this.place[v] = int(home, v);
    }
    return possible;
  }

  #takeBack(set: readonly number[], hosts: readonly number[]): void {
    const { home } = this.#field;
    set.forEach((v, i) => {
      const host = item(hosts, i);
      this.#extremes.shift(v, int(home, v), host);
      this.place[v] = host;
      this.#room.depart(v, int(home, v));
      this.#room.arrive(v, host);
    });
  }
}

function* pairsOf(list: readonly number[]): Generator<[number, number]> {
  for (let i = 0; i < list.length; i++) for (let j = i + 1; j < list.length; j++) yield [item(list, i), item(list, j)];
}
