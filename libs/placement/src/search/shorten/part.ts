import { EPSILON } from '@kronos/rules';
import { byte, float, int } from '../../base/array.ts';
import { shareOn } from '../../cluster/cluster.ts';
import { Extremes } from '../../cluster/extremes.ts';
import { shift } from '../../cluster/measure.ts';
import type { Draft } from '../../draft/draft.ts';
import type { Field } from '../problem/field.ts';
import { arrangeTo, type Parked } from '../problem/sequence.ts';
import { isAcceptable, type Solution } from '../problem/solution.ts';

/** The part of a course that one cycle carries out. */
export type CoursePart = {
  readonly place: Int32Array;
  readonly parked: Parked;
  /** The moves that the budget must have for a part; more than the budget has when `place` is home. */
  readonly needed: number;
};

/** The distance of a host from the band counts by this power, as a part of the largest one: the extreme hosts come first. */
const POWER = 6;

/**
 * The moves of a course that fit the budget, chosen one by one: the next move is the one that brings the extreme hosts nearest to where
 * the course ends, with the moves that it waits for. No policy may end worse than it began and above its threshold. If the moves of the
 * budget cannot be chosen so, the part ends at the last ones that can.
 */
export function partOf(draft: Draft, field: Field, course: Solution): CoursePart {
  return new Chooser(draft, field, course).choose();
}

class Chooser {
  readonly #field: Field;
  readonly #course: Solution;
  readonly #score: Float64Array;
  readonly #low: Float64Array;
  readonly #high: Float64Array;
  readonly #scale: Float64Array;
  readonly #left: Set<number>;
  /** By VM: the VMs whose moves it waits for. */
  readonly #waits: ReadonlyMap<number, readonly number[]>;

  constructor(draft: Draft, field: Field, course: Solution) {
    const { V, P, home, cluster } = field;
    this.#field = field;
    this.#course = course;
    this.#score = Float64Array.from(field.score);
    this.#left = new Set();
    const end = Float64Array.from(field.score);
    for (let v = 0; v < V; v++) {
      const [a, b] = [int(home, v), int(course.place, v)];
      if (a === b) continue;
      this.#left.add(v);
      shift(cluster, end, v, a, b);
    }
    this.#waits = arrangeTo(draft, field, course.place, course.parked);
    this.#low = new Float64Array(P);
    this.#high = new Float64Array(P);
    this.#scale = new Float64Array(P);
    for (let p = 0; p < P; p++) this.#bandOf(p, end);
  }

  /** The band in which the course ends, and the largest distance from it at the start. */
  #bandOf(p: number, end: Float64Array): void {
    const { H, P, cluster, score } = this.#field;
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let h = 0; h < H; h++) {
      if (byte(cluster.counted, h) !== 1) continue;
      low = Math.min(low, float(end, h * P + p));
      high = Math.max(high, float(end, h * P + p));
    }
    this.#low[p] = low;
    this.#high[p] = high;
    let most = 0;
    for (let h = 0; h < H; h++)
      if (byte(cluster.counted, h) === 1)
        most = Math.max(most, float(score, h * P + p) - high, low - float(score, h * P + p));
    this.#scale[p] = most > EPSILON ? 1 / most : 0;
  }

  choose(): CoursePart {
    const { home, budget, cluster, score } = this.#field;
    const { parked, place: to } = this.#course;
    const place = Int32Array.from(home);
    const extremes = new Extremes(cluster, this.#score);
    let used = 0;
    let kept: number[] = [];
    const chosen: number[] = [];
    let needed = 0;
    while (this.#left.size > 0 && (used < budget || needed === 0)) {
      const next = this.#next(extremes, kept.length > 0 ? budget - used : Number.POSITIVE_INFINITY);
      if (next === null) break;
      for (const v of next) {
        used += parked.has(v) ? 2 : 1;
        chosen.push(v);
        this.#left.delete(v);
        shift(cluster, this.#score, v, int(home, v), int(to, v));
        extremes.changed([int(home, v), int(to, v)]);
      }
      if (!isAcceptable(this.#field, extremes)) continue;
      needed ||= used;
      if (used <= budget) kept = [...chosen];
    }
    this.#score.set(score);
    for (const v of kept) place[v] = int(to, v);
    return { place, parked: new Map([...parked].filter(([v]) => kept.includes(v))), needed: Math.max(1, needed) };
  }

  /** The next moves: of one VM, after those that it waits for. Moves that leave the plan acceptable come first. */
  #next(extremes: Extremes, most: number): number[] | null {
    let best: number[] | null = null;
    let least = Number.POSITIVE_INFINITY;
    let bestFits = false;
    for (const v of this.#left) {
      const set = this.#withWaits(v);
      if (set.reduce((sum, u) => sum + (this.#course.parked.has(u) ? 2 : 1), 0) > most) continue;
      const gain = this.#change(set);
      if (bestFits && gain >= least) continue;
      const fits = this.#fits(extremes, set);
      if (bestFits && !fits) continue;
      if (fits === bestFits && gain >= least) continue;
      best = set;
      least = gain;
      bestFits = fits;
    }
    return best;
  }

  #withWaits(v: number): number[] {
    const set: number[] = [];
    const add = (u: number): void => {
      if (!this.#left.has(u) || set.includes(u)) return;
      for (const other of this.#waits.get(u) ?? []) add(other);
      if (!set.includes(u)) set.push(u);
    };
    add(v);
    return set;
  }

  /** Would the plan be acceptable with these moves? */
  #fits(extremes: Extremes, set: readonly number[]): boolean {
    const { home } = this.#field;
    const to = this.#course.place;
    for (const v of set) extremes.shift(v, int(home, v), int(to, v));
    const fits = isAcceptable(this.#field, extremes);
    for (const v of [...set].reverse()) extremes.shift(v, int(to, v), int(home, v));
    return fits;
  }

  /** The change of the distances by these moves. */
  #change(set: readonly number[]): number {
    const { cluster, P, home, weights } = this.#field;
    const values = new Map<number, Float64Array>();
    const at = (h: number): Float64Array => {
      let value = values.get(h);
      if (value === undefined) {
        value = this.#score.slice(h * P, (h + 1) * P);
        values.set(h, value);
      }
      return value;
    };
    for (const v of set) {
      const [a, b] = [int(home, v), int(this.#course.place, v)];
      const [from, to] = [at(a), at(b)];
      for (let p = 0; p < P; p++) {
        from[p] = float(from, p) - shareOn(cluster, v, a, p);
        to[p] = float(to, p) + shareOn(cluster, v, b, p);
      }
    }
    let change = 0;
    for (const [h, value] of values) {
      if (byte(cluster.counted, h) !== 1) continue;
      for (let p = 0; p < P; p++) {
        const weight = Math.max(float(weights, p), LEAST_WEIGHT);
        change += weight * (this.#distance(float(value, p), p) - this.#distance(float(this.#score, h * P + p), p));
      }
    }
    return change / set.length;
  }

  #distance(x: number, p: number): number {
    const d = Math.max(0, x - float(this.#high, p), float(this.#low, p) - x) * float(this.#scale, p);
    return d ** POWER;
  }
}

const LEAST_WEIGHT = 0.05;
