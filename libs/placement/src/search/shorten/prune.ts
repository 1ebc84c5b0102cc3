import { EPSILON } from '@kronos/rules';
import { int, item } from '../../base/array.ts';
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
  const { home, V, cluster } = field;
  const floor = Math.max(minGain, EPSILON);
  const place = Int32Array.from(solution.place);
  const away: number[] = [];
  const arrivals = new Int32Array(field.H);
  const room = field.room.copy(true);
  for (let v = 0; v < V; v++) {
    if (int(place, v) === int(home, v)) continue;
    away.push(v);
    room.move(v, int(home, v), int(place, v));
    arrivals[int(place, v)] = int(arrivals, int(place, v)) + 1;
  }
  away.sort((a, b) => costTo(field, b, int(place, b)) - costTo(field, a, int(place, a)) || a - b);
  const score = valuesAfter(cluster, field.score, home, place);
  const extremes = new Extremes(cluster, score);
  let left = away;
  /** Sends sets of this many VMs home as long as the plan does not become worse. */
  const drop = (size: 1 | 2, needless: (without: number, now: number) => boolean): void => {
    let now = judge(field, place).combined;
    for (let again = true; again; ) {
      again = false;
      for (const set of size === 1 ? left.map((v) => [v]) : pairsOf(left)) {
        if (set.some((v) => int(place, v) === int(home, v))) continue;
        const hosts = set.map((v) => int(place, v));
        set.forEach((v, i) => {
          room.depart(v, item(hosts, i));
        });
        let possible = true;
        for (const v of set) {
          // Before an arrival, the VMs of the start may still be there.
          possible &&= int(arrivals, int(home, v)) === 0 || room.holds(v, int(home, v));
          room.arrive(v, int(home, v));
        }
        set.forEach((v, i) => {
          extremes.shift(v, item(hosts, i), int(home, v));
          place[v] = int(home, v);
        });
        const without = field.lax.length === 0 ? extremes.combined() : judge(field, place).combined;
        if (possible && needless(without, now) && isAcceptable(field, extremes)) {
          now = without;
          again = true;
          for (const h of hosts) arrivals[h] = int(arrivals, h) - 1;
          continue;
        }
        set.forEach((v, i) => {
          extremes.shift(v, int(home, v), item(hosts, i));
          place[v] = item(hosts, i);
          room.depart(v, int(home, v));
          room.arrive(v, item(hosts, i));
        });
      }
      left = left.filter((v) => int(place, v) !== int(home, v));
    }
  };
  const breaks = (): boolean => field.lax.length > 0 && !judge(field, place).reached;
  if (solution.reached) {
    drop(1, () => reaches(field, extremes) && !breaks());
    if (left.length === away.length) return solution;
    const ways = order(place);
    return ways === null ? solution : judge(field, place, ways);
  }
  // A move may become needless when another one is removed.
  for (let before = -1; before !== left.length; ) {
    before = left.length;
    drop(1, (without, now) => without < now + floor - EPSILON / 2);
    // The halves of an exchange that gains little need each other.
    if (left.length <= PAIRED) drop(2, (without, now) => without < now + 2 * floor - EPSILON / 2);
  }
  const gained = judge(field, home).combined - judge(field, place).combined;
  if (gained < floor * left.length - EPSILON / 2) return judge(field, home);
  if (left.length === away.length) return solution;
  const parked = order(place);
  return parked === null ? solution : judge(field, place, parked);
}

function* pairsOf(list: readonly number[]): Generator<[number, number]> {
  for (let i = 0; i < list.length; i++) for (let j = i + 1; j < list.length; j++) yield [item(list, i), item(list, j)];
}
