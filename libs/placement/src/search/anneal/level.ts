import { EPSILON } from '@kronos/rules';
import { int } from '../../base/array.ts';
import { Random } from '../../base/random.ts';
import type { Room } from '../../cluster/constraints.ts';
import { Witnesses } from '../../cluster/witnesses.ts';
import type { RefusalCounts } from '../../reasons.ts';
import { Walk } from '../changes/walk.ts';
import type { Field } from '../problem/field.ts';
import { Ranks } from '../problem/ranks.ts';
import { isAcceptable, reaches } from '../problem/solution.ts';
import type { Annealed } from './anneal.ts';
import { Smooth } from './smooth.ts';

/**
 * The course of a run. Each stage has a coldness between 0 (wide and hot) and 1 (as narrow and cold as the run gets). A stage that is
 * not colder than the one before it begins at the best placement so far.
 */
type Course = {
  /** First and last width, as parts of the imbalance at the time. */
  readonly wide: number;
  readonly narrow: number;
  /** First and last temperature, in grains. */
  readonly hot: number;
  readonly cold: number;
  readonly stages: readonly number[];
};

/** `count` values from `first` to `last`, both included. */
const ramp = (first: number, last: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => first + ((last - first) * i) / (count - 1));

/**
 * A long run ends narrower and colder; a short run finds less there. A run with many proposals for each VM cools slowly up to 0.4, where
 * most is decided, and is heated again twice; its last part begins at the best placement, too. With fewer proposals, slow cooling finds
 * more; stages colder than 0.88 found nothing. All figures were found by trial with `npm run bench:reference`.
 */
export const COURSES = {
  short: { wide: 0.1, narrow: 0.02, hot: 0.1, cold: 0.025, stages: ramp(0, 1, 40) },
  long: { wide: 0.07, narrow: 0.005, hot: 0.1, cold: 0.01, stages: ramp(0, 0.88, 140) },
  fromBest: { wide: 0.05, narrow: 0.005, hot: 0.03, cold: 0.005, stages: ramp(0, 1, 60) },
  reheated: {
    wide: 0.1,
    narrow: 0.02,
    hot: 0.1,
    cold: 0.01,
    stages: [...ramp(0, 0.4, 90), ...ramp(0.15, 0.4, 20), ...ramp(0.15, 0.4, 20), ...ramp(0.4, 1, 30)],
  },
} as const satisfies Record<string, Course>;

export type LevelSettings = {
  readonly seed: number;
  readonly course: Course;
  /** Draws; not each one gives a proposal. */
  readonly steps: number;
  readonly refusals: RefusalCounts;
};

/** In stages less cold than this, a run may have more VMs away from home than the budget allows. */
const LOAN_UNTIL = 0.6;
/** How many more, as a part of the budget, and at least. */
const LOAN_PART = 0.1;
const LEAST_LOAN = 2;
/** The price of a move changes at most this many times in a stage. */
const PRICE_CHANGES = 10;
/** It changes by this part of the temperature for each VM above or below the aim. */
const PRICE_STEP = 0.1;
/** A proposal that costs more than this many temperatures is rejected without a draw: its chance is one in nine million. */
const HOPELESS = 16;
/** Hosts are ranked again after this many draws per host. */
const RANK_EVERY = 10;
/** Draws in a row with the same subject, until one of them is accepted: the choice of a subject costs as much time as a draw. */
const TRIES = 4;
/** This many of 8 draws are arbitrary changes. The others involve a host near an end of a policy. */
const ANY_IN_8 = 2;

/**
 * Simulated annealing on {@link Smooth}, a smooth approximation of the combined imbalance, which becomes closer with each stage. Returns the acceptable placement with the lowest combined imbalance of the run. It stops at a placement that reaches
 * every target and is the best so far.
 *
 * While the run is hot, the budget is a price instead of a limit: each VM away from home costs the price of a move. The price rises while
 * more than `budget - 1` VMs are away on average, and falls while fewer are. So the walk is often within the budget, where it may keep a
 * placement. With the limit alone, a full budget allows only changes that send a VM home at the same time, and few of those gain.
 *
 * @param room the room at the start of the pass; the run changes it.
 */
export function level(field: Field, start: Int32Array, room: Room, settings: LevelSettings): Annealed {
  const { vmsOf, destinations, budget, P } = field;
  const run = new Run(field, start, room, settings);
  if (vmsOf.length > 0 && destinations.length > 0 && budget > 0 && P > 0) run.execute();
  return run.found();
}

class Run {
  readonly #field: Field;
  readonly #settings: LevelSettings;
  readonly #random: Random;
  readonly #walk: Walk;
  readonly #witnesses: Witnesses;
  readonly #smooth: Smooth;
  readonly #ranks: Ranks;
  /** VMs that break soft groups. */
  #breaches = 0;
  /** The same after the proposal. */
  #breachesNext = 0;
  #best = Number.POSITIVE_INFINITY;
  /** The best placement is the present one, and is saved when the walk leaves it. */
  #unsaved = false;
  #steps = 0;
  /** What a VM away from home costs, in the unit of the stand-in. */
  #price = 0;

  constructor(field: Field, start: Int32Array, room: Room, settings: LevelSettings) {
    this.#field = field;
    this.#settings = settings;
    this.#random = new Random(settings.seed);
    this.#walk = new Walk(field, start, room, field.budget, settings.refusals);
    this.#witnesses = new Witnesses(field.cluster, this.#walk.score);
    this.#smooth = new Smooth(field, this.#walk.score);
    this.#ranks = new Ranks(field, this.#walk.score);
    this.#countBreaches();
    this.#improved();
    this.#unsaved = false;
    this.#walk.save();
  }

  execute(): void {
    const { steps, course } = this.#settings;
    const { stages, wide, narrow, hot, cold } = course;
    let before = -1;
    for (const [stage, coldness] of stages.entries()) {
      if (coldness <= before) this.#goBack();
      before = coldness;
      const isOnLoan = coldness < LOAN_UNTIL;
      // The debt is paid before the stand-in is set to what the stage begins with.
      if (!isOnLoan && this.#repay()) return;
      this.#smooth.sharpen(wide * (narrow / wide) ** coldness);
      const temperature = this.#smooth.grain * hot * (cold / hot) ** coldness;
      const end = Math.floor((steps * (stage + 1)) / stages.length);
      if (isOnLoan) this.#onLoan(end, temperature);
      else this.#anneal(end, temperature);
      if (this.#steps < end) return;
    }
  }

  found(): Annealed {
    this.#goBack();
    return { place: this.#walk.place, steps: this.#steps, tight: this.#walk.tight };
  }

  /** A stage in which more VMs may be away than the budget allows. */
  #onLoan(end: number, temperature: number): void {
    const { budget } = this.#field;
    const walk = this.#walk;
    walk.budget = budget + Math.max(LEAST_LOAN, Math.round(LOAN_PART * budget));
    const aim = budget - 1;
    const part = Math.ceil((end - this.#steps) / PRICE_CHANGES);
    while (this.#steps < end) {
      const until = Math.min(end, this.#steps + part);
      const away = this.#anneal(until, temperature);
      if (this.#steps < until) return;
      this.#price = Math.max(0, this.#price + PRICE_STEP * temperature * (away - aim));
    }
  }

  /**
   * Sends VMs home until the budget suffices, each time the one whose return costs least. Goes back to the best placement when none may
   * return. True when every target is reached.
   */
  #repay(): boolean {
    const { budget, home } = this.#field;
    const walk = this.#walk;
    walk.budget = budget;
    this.#price = 0;
    if (walk.count <= budget) return false;
    const goesHome = (v: number): number => {
      walk.reset();
      walk.add(v, int(home, v));
      return this.#change();
    };
    while (walk.count > budget) {
      let cheapest = -1;
      let least = Number.POSITIVE_INFINITY;
      for (const v of walk.away.slice(0, walk.count)) {
        const change = goesHome(v);
        if (change >= least || !walk.isLegal()) continue;
        cheapest = v;
        least = change;
      }
      if (cheapest < 0) {
        this.#goBack();
        return false;
      }
      // A commit carries out the last proposal.
      goesHome(cheapest);
      this.#commit();
    }
    return this.#improved();
  }

  /**
   * Makes draws until the run has made `end` of them, or until every target is reached. Returns the average number of VMs away from
   * home; without meaning when it stops early.
   */
  #anneal(end: number, temperature: number): number {
    const { H } = this.#field;
    const walk = this.#walk;
    const random = this.#random;
    const ranks = this.#ranks;
    const price = this.#price;
    const hopeless = HOPELESS * temperature;
    const from = this.#steps;
    let away = 0;
    let step = from;
    let untilRanked = 0;
    let tries = 0;
    for (; step < end; step++) {
      away += walk.count;
      if (untilRanked-- === 0) {
        ranks.refresh();
        untilRanked = RANK_EVERY * H;
      }
      if (tries === 0) {
        if (!aimed(walk, ranks, random)) continue;
        tries = TRIES;
      }
      tries--;
      if (!walk.draw(random)) continue;
      let change = this.#change();
      if (price > 0) change += price * walk.growth();
      if (change > hopeless) continue;
      if (change > 0 && random.unit() >= Math.exp(-change / temperature)) continue;
      if (!this.#commit()) continue;
      tries = 0;
      if (this.#improved()) break;
    }
    this.#steps = step;
    return away / (end - from);
  }

  /** What the walk's proposal changes: the stand-in, and the penalty for soft groups. */
  #change(): number {
    const { cluster, lax } = this.#field;
    const change = this.#smooth.change(this.#walk);
    if (lax.length === 0) return change;
    this.#breachesNext = this.#walk.breachesAfter();
    return change + (this.#breachesNext - this.#breaches) * cluster.softPenalty;
  }

  /** Carries out the proposal that {@link #change} was asked about last. False, and nothing is changed, when it is not legal. */
  #commit(): boolean {
    if (this.#unsaved) this.#walk.save();
    this.#unsaved = false;
    if (!this.#walk.commit()) return false;
    this.#breaches = this.#breachesNext;
    this.#smooth.changed(this.#walk);
    return true;
  }

  /** Notes the present placement if it is the best. True when it reaches every target. */
  #improved(): boolean {
    const field = this.#field;
    if (this.#walk.count > field.budget) return false;
    const penalty = (this.#breaches - field.breaches) * field.cluster.softPenalty;
    const limit = this.#best - EPSILON - penalty;
    const combined = this.#witnesses.combined(limit);
    if (combined >= limit || !isAcceptable(field, this.#witnesses)) return false;
    this.#best = combined + penalty;
    this.#unsaved = true;
    return this.#breaches <= field.breaches && reaches(field, this.#witnesses);
  }

  /** Goes back to the best placement. */
  #goBack(): void {
    if (this.#unsaved) this.#walk.save();
    this.#unsaved = false;
    this.#walk.goBack();
    this.#countBreaches();
    this.#ranks.refresh();
  }

  #countBreaches(): void {
    this.#walk.reset();
    this.#breaches = this.#field.lax.length === 0 ? 0 : this.#walk.breachesAfter();
  }
}

/** Chooses the subject of the next proposals. False when there is none. */
function aimed(walk: Walk, ranks: Ranks, random: Random): boolean {
  if (random.below(8) < ANY_IN_8) return walk.aimAny(random);
  const p = random.below(walk.field.P);
  const down = random.below(2) === 0;
  const host = ranks.draw(random, p, down);
  return host >= 0 && walk.aimAt(random, host, down);
}
