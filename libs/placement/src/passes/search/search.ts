import type { Draft } from '../../draft.ts';
import { EPSILON, imbalances, valuesAfter } from '../../measure.ts';
import { greedy } from '../greedy.ts';
import { anneal, type Pull } from './anneal.ts';
import { type Bound, bound } from './bound.ts';
import { fewestMoves } from './fewest.ts';
import { type Field, fieldOf } from './field.ts';
import { followGuide } from './guide.ts';
import type { GuideShape } from './guideCost.ts';
import { Ranges } from './ranges.ts';
import { blockedMoves, nobody, type Parked, park } from './sequence.ts';
import { guideShapes } from './shapes.ts';
import { compare, judge, type Solution } from './solution.ts';

export type SearchSettings = {
  readonly minGain: number;
  readonly allowParking: boolean;
  /** Candidates that may be evaluated. */
  readonly workLimit: number;
  /** What may be used of it already. */
  readonly spent: number;
};

/**
 * What ended the search: nothing more was found; all moves of the budget are used (or a better plan would need more); or
 * the work limit.
 */
export type SearchEnd = 'done' | 'budget' | 'work';

export type Found = {
  readonly field: Field;
  readonly solution: Solution;
  readonly end: SearchEnd;
  readonly work: number;
};

/** A proposal of the local search costs as much time as so many candidates of the guides. */
const PROPOSAL_COST = 6;
/** A combined imbalance this close to its lower bound is the least there is. */
const PROVEN = 1e-7;
/** One guide may use this part of the work limit, and all together that part: the rest is the local search's. */
const ONE_GUIDE = 0.4;
const ALL_GUIDES = 0.6;
/** How strongly a run is pulled towards evenness beside the imbalance, and how far from the best values to the bound. */
const PULL_STRENGTH = 0.1;
const PULL_DEPTH = 0.2;

/**
 * `planner=search`: the best of greedy, of several guides, and of a local search that starts from the best of them, by the
 * order of aims.
 */
export function search(draft: Draft, settings: SearchSettings): Found {
  return new Search(draft, settings).run();
}

class Search {
  readonly #draft: Draft;
  readonly #settings: SearchSettings;
  readonly #field: Field;
  readonly #limits: Bound;
  #best: Solution;
  #work: number;
  #guideWork = 0;
  #cut = false;
  /** Some candidate was refused for what VMs that leave would free. */
  #tight = false;

  constructor(draft: Draft, settings: SearchSettings) {
    this.#draft = draft;
    this.#settings = settings;
    this.#work = settings.spent;
    this.#field = fieldOf(draft, imbalances(draft.cluster, draft.score));
    this.#best = judge(this.#field, this.#field.home);
    const { cluster, home, score, movable, budget } = this.#field;
    this.#limits = bound({ cluster, place: home, score, movable, budget });
  }

  /** Greedy, then guides, then the local search for whichever aim is in reach; needless moves are taken out at the end. */
  run(): Found {
    const field = this.#field;
    const { home, budget } = field;
    const limits = this.#limits;
    const evaluated = this.#draft.evaluated;
    const picks = greedy(this.#draft, this.#settings.minGain);
    this.#work += this.#draft.evaluated - evaluated;
    const greedyPlace = Int32Array.from(home);
    for (const { vm, to } of picks) greedyPlace[vm] = to;
    const greedySolution = judge(field, greedyPlace);
    this.#offer(greedyPlace);

    const fewest = field.thresholds.map((_, p) => fewestMoves(field, p).moves);
    let least = 1;
    for (const moves of fewest) least = Math.max(least, moves);
    const reachable = least <= budget;
    for (const shape of guideShapes(field, limits, reachable)) {
      if (this.#best.within && this.#best.moves <= least) break;
      this.#guided(shape);
    }
    if (!this.#best.within && reachable) this.#reach(budget);
    if (this.#best.within) this.#reduce(least);
    // What the bound allows is reached: nothing is left to look for.
    else if (this.#best.combined > limits.combined + PROVEN) this.#minimise();
    this.#best = this.#pruned(this.#best);
    if (greedySolution.acceptable && compare(greedySolution, this.#best) < 0) this.#best = greedySolution;
    this.#draft.evaluated = evaluated + this.#work - this.#settings.spent;
    let end: SearchEnd = 'done';
    if (!this.#best.within) {
      // Where the bound is reached only more moves could do better.
      const spent = this.#best.moves >= budget || this.#best.combined <= limits.combined + PROVEN;
      end = spent ? 'budget' : this.#cut ? 'work' : 'done';
    }
    return { field, solution: this.#best, end, work: this.#work };
  }

  #guided(shape: GuideShape): void {
    const { budget, home } = this.#field;
    const { workLimit } = this.#settings;
    const left = Math.min(ONE_GUIDE * workLimit, ALL_GUIDES * workLimit - this.#guideWork);
    if (left <= 0) return;
    const trail = followGuide(this.#field, shape, budget, left, this.#draft.refusals);
    this.#work += trail.evaluated;
    this.#guideWork += trail.evaluated;
    if (trail.tight) this.#tight = true;
    const place = Int32Array.from(home);
    for (let i = 0; i < trail.best; i++) place[trail.vms[i] as number] = trail.hosts[i] as number;
    this.#offer(place);
  }

  /** Keeps a placement that can be reached and is better than the best so far. */
  #offer(place: Int32Array, parked: Parked = nobody): boolean {
    const solution = judge(this.#field, place, parked);
    if (!solution.acceptable || solution.moves > this.#field.budget || compare(solution, this.#best) >= 0) return false;
    this.#best = solution;
    return true;
  }

  /** The same for a placement whose moves need an order: what has no place in any order parks, or stays at home. */
  #offerOrdered(place: Int32Array): boolean {
    const ordered = this.#ordered(place);
    return ordered !== null && this.#offer(ordered.place, ordered.parked);
  }

  #ordered(place: Int32Array): { place: Int32Array; parked: Parked } | null {
    const blocked = blockedMoves(this.#draft, this.#field, place, nobody);
    if (blocked.length === 0) return { place, parked: nobody };
    if (this.#settings.allowParking) {
      const tried = park(this.#draft, this.#field, place);
      if (tried.blocked.length === 0 && judge(this.#field, place, tried.parked).moves <= this.#field.budget)
        return { place, parked: tried.parked };
    }
    const possible = Int32Array.from(place);
    for (const move of blocked) {
      if (move.phase !== 'spread') return null;
      possible[move.vm] = move.from;
    }
    return { place: possible, parked: nobody };
  }

  /** Proposals that each of `runs` runs may make when the search wants so many; remembers when the limit cuts them. */
  #steps(runs: number, wanted: number): number {
    const left = Math.max(0, Math.floor((this.#settings.workLimit - this.#work) / PROPOSAL_COST / runs));
    if (left < wanted) this.#cut = true;
    return Math.min(wanted, left);
  }

  /** One annealing run; returns true when it found something better. */
  #anneal(run: AnnealRun): boolean {
    if (run.steps <= 0) return false;
    const field = this.#field;
    const { H, P, weights, imbalance } = field;
    // Temperatures, in units of the combined imbalance: a change on one host of H matters about scale / H.
    let scale = 0;
    for (let p = 0; p < P; p++) scale += (weights[p] as number) * (imbalance[p] as number);
    const result = anneal(field, run.start, field.room.copy(run.departuresFree), {
      budget: run.budget,
      seed: run.seed,
      steps: run.steps,
      hot: run.ramCost > 0 ? 0.02 : (0.25 * scale) / H,
      cold: run.ramCost > 0 ? 0.0002 : (0.005 * scale) / H,
      free: run.free,
      stopAtFree: run.ramCost === 0,
      ramCost: run.ramCost,
      pull: run.pull,
      refusals: this.#draft.refusals,
    });
    this.#work += result.steps * PROPOSAL_COST;
    if (result.tight) this.#tight = true;
    return this.#offerOrdered(result.place);
  }

  /** Proposals of a run that has all the work it wants: so many that more hardly ever find more. */
  get #wanted(): number {
    const movable = this.#field.vmsOf.length;
    return 2000 * movable + Math.min(60_000, 3000 * movable);
  }

  /** Lowest combined imbalance. */
  #minimise(): void {
    const { H, P, budget, home } = this.#field;
    const free = new Float64Array(P);
    const affordable = (this.#settings.workLimit - this.#work) / PROPOSAL_COST / this.#wanted;
    // Few hosts: runs cost little. Many: one run to its end does more than two that are cut short.
    const runs = H <= 16 ? 4 : Math.max(1, Math.min(3, Math.floor(affordable)));
    const steps = this.#steps(runs * (this.#tight ? 2 : 1), this.#wanted);
    const run = { free, budget, steps, ramCost: 0, pull: null };
    for (let i = 0; i < runs; i++)
      this.#anneal({
        ...run,
        pull: i % 2 === 0 && H > 16 && runs > 1 ? this.#pull() : null,
        start: i % 2 === 0 ? this.#best.place : home,
        seed: i + 1,
        departuresFree: false,
      });
    if (!this.#tight) return;
    const relaxed = this.#steps(runs, this.#wanted);
    for (let i = 0; i < runs; i++)
      this.#anneal({
        ...run,
        steps: relaxed,
        start: i % 2 === 0 ? this.#best.place : home,
        seed: i + 1,
        departuresFree: true,
      });
  }

  /** Towards a band that is a little narrower than the best placement's values, in the direction of the bound. */
  #pull(): Pull {
    const { P } = this.#field;
    const ranges = new Ranges(this.#field, this.#scoreOf(this.#best.place));
    const towards = (from: number, to: number): number => from + PULL_DEPTH * (to - from);
    const band = (value: (p: number) => number): Float64Array => Float64Array.from({ length: P }, (_, p) => value(p));
    return {
      strength: PULL_STRENGTH,
      low: band((p) => towards(ranges.least(p), this.#limits.low[p] as number)),
      high: band((p) => towards(ranges.most(p), this.#limits.high[p] as number)),
    };
  }

  #scoreOf(place: Int32Array): Float64Array {
    return valuesAfter(this.#field.cluster, this.#field.score, this.#field.home, place);
  }

  /** Tries to bring every policy within its threshold. */
  #reach(budget: number): boolean {
    const free = this.#field.thresholds;
    const steps = this.#steps(4, this.#wanted);
    for (const [seed, departuresFree] of [
      [1, false],
      [2, true],
    ] as const) {
      this.#anneal({ free, budget, steps, ramCost: 0, start: this.#best.place, seed, departuresFree, pull: null });
      if (this.#best.within) return true;
    }
    return false;
  }

  /** Fewer moves, then less memory, with every policy within its threshold. */
  #reduce(least: number): void {
    const free = this.#field.thresholds;
    this.#best = this.#pruned(this.#best);
    const wanted = Math.ceil(this.#wanted / 4);
    while (this.#best.moves > least) {
      const budget = this.#best.moves - 1;
      const start = this.#withoutOne(this.#best);
      let better = false;
      for (const departuresFree of this.#tight ? [false, true] : [false]) {
        const steps = this.#steps(1, wanted);
        better = this.#anneal({ free, budget, steps, ramCost: 0, start, seed: budget, departuresFree, pull: null });
        if (better) break;
      }
      if (!better) break;
    }
    const { ramMb, moves, place } = this.#best;
    if (ramMb > 0) {
      const steps = this.#steps(1, wanted);
      this.#anneal({
        free,
        budget: moves,
        steps,
        ramCost: 1 / ramMb,
        start: place,
        seed: 1,
        departuresFree: false,
        pull: null,
      });
    }
  }

  /** The placement without the move that it misses least. */
  #withoutOne(solution: Solution): Int32Array {
    const { home, V } = this.#field;
    let best: Solution | null = null;
    for (let v = 0; v < V; v++) {
      if (solution.place[v] === home[v]) continue;
      const place = Int32Array.from(solution.place);
      place[v] = home[v] as number;
      const rest = judge(this.#field, place);
      if (best === null || rest.combined < best.combined) best = rest;
    }
    return best?.place ?? solution.place;
  }

  /**
   * The solution without needless moves: those without which every policy is still within its threshold, or (where that
   * is out of reach) which gain less than `minGain`. Largest memory first.
   */
  #pruned(solution: Solution): Solution {
    const field = this.#field;
    const { home, V, cluster } = field;
    const floor = Math.max(this.#settings.minGain, EPSILON);
    let best = solution;
    const away: number[] = [];
    for (let v = 0; v < V; v++) if (solution.place[v] !== home[v]) away.push(v);
    away.sort((a, b) => (cluster.ramMb[b] as number) - (cluster.ramMb[a] as number) || a - b);
    const place = Int32Array.from(solution.place);
    const trial = new Ranges(field, field.score);
    const score = Float64Array.from(field.score);
    for (const v of away) trial.shift(score, v, home[v] as number, place[v] as number);
    let combined = trial.combined();
    let removed = 0;
    for (let again = true; again; ) {
      again = false;
      for (const v of away) {
        const to = place[v] as number;
        const from = home[v] as number;
        if (to === from) continue;
        trial.shift(score, v, to, from);
        const without = trial.combined();
        const needless = solution.within ? trial.within() : without < combined + floor - EPSILON / 2;
        if (needless && trial.acceptable()) {
          place[v] = from;
          combined = without;
          removed++;
          again = true;
        } else trial.shift(score, v, from, to);
      }
    }
    if (removed === 0) return best;
    // Who stays at home gives no room to others: the order has to be found anew.
    const ordered = this.#ordered(place);
    if (ordered === null || ordered.place !== place) return solution;
    best = judge(field, place, ordered.parked);
    return best.moves <= field.budget ? best : solution;
  }
}

type AnnealRun = {
  readonly free: Float64Array;
  readonly budget: number;
  readonly steps: number;
  readonly ramCost: number;
  readonly start: Int32Array;
  readonly seed: number;
  readonly departuresFree: boolean;
  readonly pull: Pull | null;
};
