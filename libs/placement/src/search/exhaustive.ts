import { EPSILON } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { countedHosts } from '../cluster/cluster.ts';
import { Checker } from '../cluster/constraints.ts';
import { shift } from '../cluster/measure.ts';
import { softBreaches } from '../cluster/softRules.ts';
import type { RefusalCounts } from '../reasons.ts';
import { costTo, type Field } from './problem/field.ts';
import type { Solution } from './problem/solution.ts';

/** The search enumerates at most this many placements; above it, the local search runs. */
const MOST = 100_000;

/** No enumeration with pruning runs when there are more placements than this with one move less than the budget. */
const MOST_INNER = 10_000_000;
/** Amounts below this are rounding. */
const ROUNDING = 1e-6;
/** An enumeration with pruning stops after this many placements. */
const PATIENCE = 4_000_000;

/** Number of placements within the budget, without regard to groups and amounts; infinite when there are too many to enumerate. */
export const placementsWithin = (field: Field): number => ways(field, field.budget, MOST);

/** Can an enumeration with pruning be expected to end? */
export const mayExhaust = (field: Field): boolean =>
  field.lax.length === 0 && field.budget > 1 && Number.isFinite(ways(field, field.budget - 1, MOST_INNER));

/** The number of placements with at most `moves` moves; infinite above `most`. */
function ways(field: Field, moves: number, most: number): number {
  // By number of moves: the ways to choose that many VMs and a destination for each.
  const counts = [1];
  for (const v of field.vmsOf) {
    const n = optionsOf(field, v).length;
    for (let k = Math.min(counts.length, moves); k >= 1; k--) counts[k] = (counts[k] ?? 0) + n * item(counts, k - 1);
    let all = 0;
    for (const count of counts) all += count;
    if (all > most) return Number.POSITIVE_INFINITY;
  }
  return counts.reduce((sum, count) => sum + count, 0);
}

export type Exhausted = {
  /** Placements that were evaluated. */
  readonly looked: number;
  /** False when it was stopped early. */
  readonly complete: boolean;
};

export type Enumeration = {
  /** The best so far; read again after each offer. */
  readonly best: () => Solution;
  readonly offer: (place: Int32Array) => void;
  readonly refusals: RefusalCounts;
  /** Placements that may be looked at; without it {@link placementsWithin} says how many there are. */
  readonly most?: number;
};

/**
 * Enumerates every placement within the budget and offers each legal one that is better than the best so far. It prunes placements that
 * cannot be better: k moves lower at most k hosts and raise at most k hosts, so the next highest and the next lowest host bound their
 * imbalance. It also prunes placements in which more hosts are overfull than moves are left.
 */
export function exhaust(field: Field, enumeration: Enumeration): Exhausted {
  countRefusals(field, enumeration.refusals);
  return new Enumerator(field, enumeration).run();
}

/** Refusals are counted for each move by itself. */
function countRefusals({ home, room, vmsOf, destinations }: Field, refusals: RefusalCounts): void {
  const checker = new Checker(home, room);
  for (const v of vmsOf)
    for (const to of destinations) {
      const refusal = to === int(home, v) ? 0 : checker.refusal(v, to);
      if (refusal !== 0) refusals.add(refusal);
    }
}

class Enumerator {
  readonly #field: Field;
  readonly #best: () => Solution;
  readonly #offer: (place: Int32Array) => void;
  readonly #end: number;
  /** By position in `vmsOf`. */
  readonly #options: readonly number[][];
  readonly #place: Int32Array;
  readonly #score: Float64Array;
  readonly #hosts: Int32Array;
  readonly #amounts: Amounts;
  #looked = 0;
  #complete = true;

  constructor(field: Field, { best, offer, most = Number.POSITIVE_INFINITY }: Enumeration) {
    this.#field = field;
    this.#best = best;
    this.#offer = offer;
    this.#end = Math.min(most, PATIENCE);
    this.#options = Array.from(field.vmsOf, (v) => optionsOf(field, v));
    this.#place = Int32Array.from(field.home);
    this.#score = Float64Array.from(field.score);
    this.#hosts = countedHosts(field.cluster);
    this.#amounts = new Amounts(field);
  }

  run(): Exhausted {
    this.#visit(0, this.#field.budget, 0);
    return { looked: this.#looked, complete: this.#complete };
  }

  #visit(i: number, left: number, cost: number): void {
    const field = this.#field;
    const { cluster, home, vmsOf, budget } = field;
    this.#looked++;
    if (this.#looked >= this.#end) {
      this.#complete = false;
      return;
    }
    if (!this.#amounts.mayFit(i, left)) return;
    const place = this.#place;
    if (left < budget && this.#promising(cost, 0) && isLegal(field, place)) this.#offer(Int32Array.from(place));
    if (left === 0 || (left <= 2 && !this.#promising(cost, left as 1 | 2))) return;
    for (let j = i; j < vmsOf.length; j++) {
      const v = int(vmsOf, j);
      const from = int(home, v);
      for (const to of item(this.#options, j)) {
        shift(cluster, this.#score, v, from, to);
        place[v] = to;
        this.#amounts.move(v, from, to);
        this.#visit(j + 1, left - 1, cost + costTo(field, v, to));
        this.#amounts.undo(v, from, to);
        place[v] = from;
        shift(cluster, this.#score, v, to, from);
        if (!this.#complete) return;
      }
    }
  }

  /** False where no placement that is `moves` moves away can come before the best one in the order of aims. */
  #promising(cost: number, moves: 0 | 1 | 2): boolean {
    const { cluster, P, weights, targets, lax, breaches: before } = this.#field;
    if (lax.length > 0 && moves > 0) return true;
    const known = this.#best();
    if (known.reached && cost > known.cost + EPSILON) return false;
    const breaches = lax.length === 0 ? 0 : softBreaches(cluster, lax, this.#place) - before;
    let combined = breaches * cluster.softPenalty;
    let reached = breaches <= 0;
    for (let p = 0; p < P; p++) {
      const spread = moves === 0 ? this.#spreadOf(p) : this.#innerSpreadOf(p, moves);
      if (spread > float(targets, p) + EPSILON) reached = false;
      if (spread > 0) combined += float(weights, p) * spread;
      // The other policies cannot compensate for it.
      if (!reached && (known.reached || combined > known.combined + EPSILON)) return false;
    }
    return reached || combined <= known.combined + (cost > known.cost + EPSILON ? -EPSILON : EPSILON);
  }

  /** `max - min` of a policy. */
  #spreadOf(p: number): number {
    const { P } = this.#field;
    const [hosts, score] = [this.#hosts, this.#score];
    let high = Number.NEGATIVE_INFINITY;
    let low = Number.POSITIVE_INFINITY;
    for (let i = 0; i < hosts.length; i++) {
      const x = float(score, int(hosts, i) * P + p);
      if (x > high) high = x;
      if (x < low) low = x;
    }
    return high - low;
  }

  /** The same without the highest and the lowest host, or without two of each. */
  #innerSpreadOf(p: number, without: 1 | 2): number {
    const { P } = this.#field;
    const [hosts, score] = [this.#hosts, this.#score];
    let [high, high1, high2] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    let [low, low1, low2] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let i = 0; i < hosts.length; i++) {
      const x = float(score, int(hosts, i) * P + p);
      if (x > high) {
        high2 = high1;
        high1 = high;
        high = x;
      } else if (x > high1) {
        high2 = high1;
        high1 = x;
      } else if (x > high2) high2 = x;
      if (x < low) {
        low2 = low1;
        low1 = low;
        low = x;
      } else if (x < low1) {
        low2 = low1;
        low1 = x;
      } else if (x < low2) low2 = x;
    }
    return without === 1 ? high1 - low1 : high2 - low2;
  }
}

/** The free amounts of the hosts while an enumeration moves VMs. Departures free room, as in {@link isLegal}. */
class Amounts {
  readonly #field: Field;
  readonly #free: Float64Array;
  /** The VMs that have moved, and their hosts. */
  readonly #vms: number[] = [];
  readonly #hosts: number[] = [];

  constructor(field: Field) {
    this.#field = field;
    this.#free = Float64Array.from(field.room.free);
  }

  move(vm: number, from: number, to: number): void {
    this.#shift(vm, from, to);
    this.#vms.push(vm);
    this.#hosts.push(to);
  }

  /** Undoes the last move. */
  undo(vm: number, from: number, to: number): void {
    this.#shift(vm, to, from);
    this.#vms.pop();
    this.#hosts.pop();
  }

  /** True when `left` further moves, of VMs from position `i` of `vmsOf` on, may relieve every overfull host. */
  mayFit(i: number, left: number): boolean {
    const { start } = this.#field;
    let overfull = 0;
    for (let k = 0; k < this.#hosts.length; k++) {
      const host = item(this.#hosts, k);
      if (!this.#isOverfull(host, item(this.#vms, k))) continue;
      // `vmsOf` is in the order of the hosts: no VM of this one is left.
      if (int(start, host + 1) <= i) return false;
      // One move relieves one host.
      if (this.#hosts.indexOf(host) === k) overfull++;
    }
    return overfull <= left;
  }

  /** Does the host lack an amount that this VM, which has arrived, needs? */
  #isOverfull(host: number, vm: number): boolean {
    const { R, demand } = this.#field.cluster;
    for (let r = 0; r < R; r++)
      if (float(demand, vm * R + r) > 0 && float(this.#free, host * R + r) < -ROUNDING) return true;
    return false;
  }

  #shift(vm: number, from: number, to: number): void {
    const { R, demand } = this.#field.cluster;
    for (let r = 0; r < R; r++) {
      const amount = float(demand, vm * R + r);
      this.#free[from * R + r] = float(this.#free, from * R + r) + amount;
      this.#free[to * R + r] = float(this.#free, to * R + r) - amount;
    }
  }
}

/** Hosts that a VM may go to, without regard to amounts and groups. */
function optionsOf({ cluster, home, destinationsNear }: Field, v: number): number[] {
  const { keyLegal, vmKey, classes, hostClass } = cluster;
  const own = int(home, v);
  return [...item(destinationsNear, own)].filter(
    (h) => h !== own && int(keyLegal, int(vmKey, v) * classes + int(hostClass, h)) === 0,
  );
}

/** Do amounts and groups allow the placement after all moves? */
function isLegal({ room: start, home, V }: Field, place: Int32Array): boolean {
  const room = start.copy(true);
  const at = Int32Array.from(home);
  const checker = new Checker(at, room);
  const moved: number[] = [];
  for (let v = 0; v < V; v++) if (int(place, v) !== int(home, v)) moved.push(v);
  for (const v of moved) room.depart(v, int(home, v));
  for (const v of moved) {
    if (checker.refusal(v, int(place, v)) !== 0) return false;
    room.arrive(v, int(place, v));
    at[v] = int(place, v);
  }
  return true;
}
