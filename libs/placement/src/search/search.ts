import type { Reason } from '@kronos/contracts';
import { EPSILON } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { allWithin, imbalances } from '../cluster/measure.ts';
import type { Draft } from '../draft/draft.ts';
import { type Annealed, anneal, SAMPLES } from './anneal/anneal.ts';
import { COURSES } from './anneal/level.ts';
import { type CarryOut, type LevelFound, type LevelRun, stepsOf } from './anneal/runs.ts';
import { type Exhausted, exhaust, mayExhaust, placementsWithin } from './exhaustive.ts';
import { greedy } from './greedy.ts';
import { followGuide } from './guide/guide.ts';
import type { GuideShape } from './guide/guideCost.ts';
import { guideShapes } from './guide/shapes.ts';
import { type Band, bandsOf, furtherBands } from './problem/bands.ts';
import { type Bound, bound } from './problem/bound.ts';
import { fewestMoves, mostGain } from './problem/fewest.ts';
import { type Field, fieldOf, partFields, withoutRecent } from './problem/field.ts';
import { blockedMoves, nobody, type Parked, park } from './problem/sequence.ts';
import { compare, judge, type Solution } from './problem/solution.ts';
import { unreachableThresholds } from './problem/unreachable.ts';
import { partOf } from './shorten/part.ts';
import { pruned } from './shorten/prune.ts';

export type SearchSettings = {
  readonly minGain: number;
  readonly moveOverheadGib: number;
  readonly allowParking: boolean;
  /** Candidates that may be evaluated. */
  readonly workLimit: number;
  /** The part of it that is used already. */
  readonly spent: number;
  /** Below the thresholds: a course to the targets of at most this many moves is looked for. Absent: nothing is. */
  readonly courseMoves?: number;
  /** Executes independent runs. */
  readonly carryOut: CarryOut;
  /** Destinations from which guides are used; only benches give another number. */
  readonly guidedHosts?: number;
};

/**
 * The reason that the search ended. `done`: it found nothing more. `budget`: a better plan would need more moves than the budget has.
 * `work`: it reached the work limit.
 */
export type SearchEnd = 'done' | 'budget' | 'work';

/** A course, and the part of it that is the plan of this cycle. */
export type CourseFound = { readonly solution: Solution; readonly needed: number };

export type FoundPlan = {
  readonly field: Field;
  readonly solution: Solution;
  /** The solution is a part of it. Null: the budget reaches every target, or no course was found. */
  readonly course: CourseFound | null;
  /** Every solution that was the best for a while, the last one included. */
  readonly bests: readonly Solution[];
  readonly end: SearchEnd;
  readonly work: number;
  /** No moves of any number gain `minGain`, or each of them gains less and they reach no targets. */
  readonly proven: boolean;
  /** The thresholds that no moves of any number reach. */
  readonly unreachable: readonly Reason[];
};

/** Cost of one proposal of the local search, in candidates of the guides. */
const PROPOSAL_COST = 2;
/** Cost of one placement of an enumeration, in candidates of the guides. */
const PLACEMENT_COST = 2;
/** A combined imbalance this close to its lower bound counts as optimal. */
const PROVEN = 1e-7;
/** With fewer destinations than this, the local search finds everything that guides find (`npm run bench:guides`). */
const GUIDED_HOSTS = 100;
/** Maximum number of candidates for all guides together. The first guides find most; the walk makes better use of the rest of the work. */
const ALL_GUIDES = 3_000_000;
/** Runs for each part by itself, as parts of a whole run. */
const PART_RUNS = [1 / 16, 1 / 4];
/**
 * With fewer proposals for each movable VM, or for each move of the budget, a long run begins at the best plan; with `enough` for each
 * movable VM it begins at home with any budget. Like `REHEATED`, found by trial with `npm run bench:reference`.
 */
const FROM_HOME = { perVm: 600, perMove: 12_500, enough: 3000 };
/** From this many proposals for each movable VM on, a long run that begins at home is heated again. */
const REHEATED = 2000;
/**
 * Runs of a long round without room for whole runs, if each of them may begin at home, and if not. Where some runs find a much better plan
 * than others, more runs are worth more than longer ones. They are multiples of the two cores of a small machine.
 */
const RUNS = { fromHome: 6, fromBest: 2 };
/**
 * A run on the real measure follows each: its length by its aim, as a part of the length of the other, and its heat. A run for the targets
 * reaches some that the stand-in misses; one for the lowest imbalance finds little more.
 */
const FINISH = { targets: 0.1, lowest: 0.01 };
const FINISH_HEAT = 0.3;
/** Seeds that are cautious (departures free no room) even when room is short: the result of their run always has an order. */
const CAUTIOUS = { first: 2, every: 6 };
/** Lengths of the runs in the rounds of the search for a course. */
const COURSE_ROUNDS = [12_500, 100_000, 400_000] as const;
/** A course that runs of this length do not find is not looked for any longer. */
const COURSE_FOUND = 100_000;
/** Proposals of a run that looks for the targets with fewer moves: one after the other, on the thread of the caller. */
const LONGEST_FEWER = 200_000;
/** Placements that are enumerated at most where runs find no course. */
const MOST_ENUMERATED = 1_000_000;
/** Ends of the rounds of the search for a course that runs in bands miss, in evaluated candidates from its start. */
const FURTHER = [50_000, 500_000, 2_000_000];
/** Such a course is looked for if a whole run has at most this many proposals: up to 70 VMs that may move. */
const SHORT_FURTHER = 200_000;
/** Imbalances at which a course ends that reaches no target: the bound, and these parts of what is above it now. */
const NEARER = [0.1, 0.3, 0.6];
/** Shorter runs find nothing. */
const LEAST_RUN = 1000;
/** A course of several cycles is searched for a lower cost if a whole run has at most this many proposals. */
const SHORT_CHEAPEN = 2_000_000;

/**
 * `planner=search`: the best plan of greedy, of guides and of a local search, by the order of aims. Tiny clusters get the best of all
 * plans. The search is one sequence of steps that the work limit cuts off. The steps do not depend on the limit, so a larger limit never
 * gives a worse plan.
 */
export function search(draft: Draft, settings: SearchSettings): FoundPlan {
  return new Search(draft, settings).run();
}

class Search {
  readonly #draft: Draft;
  readonly #settings: SearchSettings;
  readonly #field: Field;
  readonly #limits: Bound;
  #best: Solution;
  /** Every solution that was the best. */
  readonly #bests: Solution[] = [];
  #work: number;
  /** The work limit, and the work of greedy, which depends on the budget: what remains does not. */
  #workLimit: number;
  #guideWork = 0;
  #cut = false;
  /** The seed of the next run for the lowest imbalance. No two of them have the same. */
  #nextSeed = 1;
  #wholeRunsLeft: number;
  /** Some candidate was refused for lack of room that departures would free. */
  #tight = false;
  /** The field without a limit on moves, and the cheapest placement in it that reaches every target; null: none was found. */
  #whole: Field;
  #course: Solution | null = null;
  /** The placement with the fewest moves that reaches every target. */
  #fewest: Solution | null = null;
  /** The placement with the lowest imbalance that runs without a budget found in a small cluster; null: there were none. */
  #further: Solution | null = null;
  #ofAll: Bound | null = null;

  /** The bound without a limit on moves. */
  get #boundOfAll(): Bound {
    const { cluster, home, score, movable, V } = this.#field;
    this.#ofAll ??= bound({ cluster, place: home, score, movable, budget: V });
    return this.#ofAll;
  }

  constructor(draft: Draft, settings: SearchSettings) {
    this.#draft = draft;
    this.#settings = settings;
    this.#work = settings.spent;
    this.#workLimit = settings.workLimit;
    this.#field = fieldOf(draft, imbalances(draft.cluster, draft.score), settings.moveOverheadGib);
    this.#whole = { ...this.#field, budget: this.#field.V };
    this.#best = judge(this.#field, this.#field.home);
    const { cluster, home, score, movable, budget } = this.#field;
    this.#wholeRunsLeft = mostWholeRuns(this.#field);
    this.#limits = bound({ cluster, place: home, score, movable, budget });
  }

  run(): FoundPlan {
    const field = this.#field;
    const { courseMoves } = this.#settings;
    // A plan starts above a threshold, and aims at the targets.
    if (!allWithin(field.cluster, field.imbalance)) this.#look();
    else if (courseMoves !== undefined) this.#goOn(courseMoves);
    const { part, course } = this.#onCourse();
    const work = this.#work;
    const within = course?.solution.reached === true || this.#best.within;
    const unreachable = within ? [] : unreachableThresholds(field, this.#boundOfAll);
    if (part !== null)
      return { field, solution: part, course, bests: [part], end: 'budget', work, proven: false, unreachable };
    const [end, proven] = [this.#end(), this.#isHopeless()];
    return { field, solution: this.#best, course, bests: this.#bests, end, work, proven, unreachable };
  }

  #look(): void {
    const { vmsOf, budget } = this.#field;
    this.#greedy();
    if (vmsOf.length === 0 || budget === 0) return;
    const mayReach = this.#mayEverReach();
    const isHopeless = !mayReach && this.#isHopeless();
    // All plans of this cycle may be known: a course may have more moves.
    if (!this.#exhausted()) {
      if (!isHopeless) this.#seek(mayReach);
    } else if (mayReach && !this.#best.reached) {
      this.#seekCourse();
      if (this.#course === null) this.#seekFurther();
      else this.#seekTargets(this.#leastMoves());
    }
    if (!isHopeless && !this.#best.reached && this.#course === null) this.#seekBeyond();
  }

  /** Courses of several cycles that reach no targets, for what the best plan leaves of the budget. */
  #seekBeyond(): void {
    const { moves } = this.#best;
    if (moves === 0 || (moves < this.#field.budget && this.#isBest())) this.#seekLower();
    if (this.#course === null && this.#best.moves === 0) this.#asksForMore();
  }

  /** The rest of a course that began above a threshold: at most `most` moves, which gain `minGain` each. */
  #goOn(most: number): void {
    const home = this.#best;
    const { vmsOf, budget } = this.#field;
    if (home.reached || vmsOf.length === 0 || budget === 0 || !this.#mayEverReach()) return;
    this.#seekCourse();
    if (this.#course !== null) this.#seekTargets(this.#leastMoves());
    const rest = this.#best.reached ? this.#best : this.#course;
    const gain = home.combined - (rest?.combined ?? home.combined);
    if (rest !== null && rest.moves <= most && gain >= Math.max(this.#settings.minGain * rest.moves, EPSILON)) return;
    this.#best = home;
    this.#course = null;
  }

  /** The part of the course that fits the budget; null when the budget reaches the targets, or when no course was found. */
  #onCourse(): { readonly part: Solution | null; readonly course: CourseFound | null } {
    const course = this.#course;
    if (course === null || this.#best.reached) return { part: null, course: null };
    const { part, needed } = this.#partOf(course);
    const solution = judge({ ...this.#field, budget: this.#field.V }, course.place, course.parked);
    return { part, course: { solution, needed } };
  }

  #partOf(course: Solution): { readonly part: Solution; readonly needed: number } {
    const { place, parked, needed } = partOf(this.#draft, this.#field, course);
    return { part: judge(this.#field, place, parked), needed };
  }

  /**
   * Looks for the cheapest moves of any number that reach every target, in rounds of runs of one length. A course that fits the budget is a
   * plan.
   */
  #seekCourse(): void {
    const whole = this.#whole;
    const bands = bandsOf(whole, whole.targets);
    // The rest of a course that moves no VM again is hard to find among all VMs.
    const rest = withoutRecent(whole);
    if (rest !== null)
      for (const { place } of this.#found(this.#bandRuns(rest, bands, COURSE_ROUNDS[0]))) this.#offerCourse(place);
    for (const steps of COURSE_ROUNDS) {
      for (const { place } of this.#found(this.#bandRuns(whole, bands, steps))) this.#offerCourse(place);
      // Where long rounds find a course, short ones find one, too.
      if (this.#cut || (this.#course === null && steps >= COURSE_FOUND)) break;
    }
    if (this.#course === null) this.#enumerateCourse();
  }

  /**
   * The shortest course, by enumeration: in a tiny cluster with little room, the cheapest moves that runs find may have no order, and few others
   * reach the targets.
   */
  #enumerateCourse(): void {
    const known = (): Solution => this.#course ?? { ...this.#best, reached: false, combined: Number.NEGATIVE_INFINITY };
    let left = MOST_ENUMERATED;
    for (let budget = 2; left > 0 && !this.#cut && this.#course === null; budget++) {
      const field = { ...this.#whole, budget };
      if (budget > field.vmsOf.length || !mayExhaust(field)) return;
      const { looked } = this.#exhaust(field, known, (place) => this.#offerCourse(place), left);
      left -= looked;
    }
  }

  /** Where runs in bands find no course: runs for the lowest imbalance, which reach the targets in small clusters with little room. */
  #seekFurther(): void {
    const field = this.#whole;
    const isSmall = wholeRunElsewhere(field) <= SHORT_FURTHER;
    if (this.#cut || this.#best.reached || !isSmall || !this.#mayEverReach()) return;
    const done = this.#work - this.#settings.spent;
    const left = this.#wholeRunsLeft;
    const offer = (place: Int32Array): void => {
      this.#offerCourse(place);
      const found = judge(field, place);
      if (this.#further === null || compare(found, this.#further) < 0) this.#further = found;
    };
    this.#lowest(
      true,
      FURTHER.map((end) => done + end),
      { field, enough: () => this.#course !== null, offer },
    );
    this.#wholeRunsLeft = left;
    if (this.#course !== null) this.#cheapen(this.#leastMoves());
  }

  /**
   * Where nothing else was found: the course to the lowest imbalance of all runs without a budget, if each part of it has more moves than the
   * budget, so that the decision says which budget is needed.
   */
  #asksForMore(): void {
    // The search before this one may have left other targets in the whole field.
    const whole = { ...this.#field, budget: this.#field.V };
    const ordered = this.#further === null ? null : this.#ordered(whole, this.#further.place);
    if (ordered === null) return;
    const course = this.#pruned(whole, judge(whole, ordered.place, ordered.parked), this.#settings.minGain);
    const { budget } = this.#field;
    const isLonger = course.acceptable && course.moves > budget;
    if (isLonger && this.#partOf(course).needed > budget) this.#course = course;
  }

  /**
   * A course towards what the bound leaves possible, where no moves of any number reach the targets, no plan within the budget ends lower
   * than the best one, and that one leaves a part of the budget. The nearest of {@link NEARER} to the bound that is found, if its further
   * moves gain `minGain` each, and its part ends as low as the best plan.
   */
  #seekLower(): void {
    const { targets, imbalance } = this.#field;
    const { low, high } = this.#boundOfAll;
    const best = this.#best;
    for (const part of NEARER) {
      const nearer = targets.map((target, p) => {
        const possible = float(high, p) - float(low, p);
        return Math.max(target, possible + part * Math.max(0, float(imbalance, p) - possible));
      });
      this.#whole = { ...this.#whole, targets: nearer };
      this.#seekCourse();
      if (this.#cut || this.#course !== null || this.#best !== best) break;
    }
    const course = this.#course;
    if (course === null) return;
    const gain = best.combined - course.combined;
    const isWorth =
      this.#best === best && gain >= Math.max(this.#settings.minGain * (course.moves - best.moves), EPSILON);
    if (!isWorth || this.#partOf(course).part.combined > best.combined + EPSILON) this.#course = null;
  }

  /** Whether departures free room: where room is short, runs of both kinds, because the result of a cautious one always has an order. */
  get #departures(): readonly boolean[] {
    return this.#tight ? [false, true] : [false];
  }

  #bandRuns(field: Field, bands: readonly Band[], steps: number): LevelRun[] {
    const start = field.home;
    const of = (band: Band, departuresFree: boolean): LevelRun => {
      const seed = this.#nextSeed++;
      return { field, start, steps, seed, course: COURSES.short, departuresFree, band, finish: null };
    };
    return bands.flatMap((band) => this.#departures.map((departuresFree) => of(band, departuresFree)));
  }

  /** Keeps a placement that reaches every target, without its needless moves, if no known one is cheaper, or none as cheap has as few moves. */
  #offerCourse(place: Int32Array): void {
    const whole = this.#whole;
    const found = judge(whole, place);
    const fits = found.moves <= this.#field.budget && compare(found, this.#best) < 0;
    if (!found.reached || !(fits || this.#isCheapest(found) || this.#hasFewest(found))) return;
    const ordered = this.#ordered(whole, place);
    if (ordered === null) return;
    const solution = this.#pruned(whole, judge(whole, ordered.place, ordered.parked), 0);
    if (!solution.reached) return;
    if (this.#isCheapest(solution)) this.#course = solution;
    if (this.#hasFewest(solution)) this.#fewest = solution;
    const plan = judge(this.#field, solution.place, solution.parked);
    if (plan.reached) this.#keep(plan);
    // Only moves that reach the targets may gain less than `minGain`.
    else if (plan.moves <= this.#field.budget) this.#offer(plan.place, plan.parked);
  }

  #isCheapest(solution: Solution): boolean {
    return this.#course === null || compare(solution, this.#course) < 0;
  }

  #hasFewest({ moves, cost }: Solution): boolean {
    const fewest = this.#fewest;
    return fewest === null || moves < fewest.moves || (moves === fewest.moves && cost < fewest.cost - EPSILON);
  }

  #end(): SearchEnd {
    const { budget } = this.#field;
    // Where no VM may move, a larger budget changes nothing.
    if (this.#best.reached || this.#field.vmsOf.length === 0) return 'done';
    // At the bound, only a larger budget could give a better plan.
    const spent = this.#best.moves >= budget || this.#best.combined <= this.#limits.combined + PROVEN;
    return spent && !this.#best.within ? 'budget' : this.#cut ? 'work' : 'done';
  }

  /** Greedy's plan is a candidate as it is: its moves gained `minGain` when they were made. */
  #greedy(): void {
    const evaluated = this.#draft.evaluated;
    const place = Int32Array.from(this.#field.home);
    for (const { vm, to } of greedy(this.#draft, this.#settings.minGain)) place[vm] = to;
    const work = this.#draft.evaluated - evaluated;
    this.#work += work;
    this.#workLimit += work;
    this.#keep(judge(this.#field, place));
    this.#offer(place);
  }

  /** Enumerates all plans when there are few; false when there are too many. */
  #exhausted(): boolean {
    const placements = placementsWithin(this.#field);
    if (this.#work + placements * PLACEMENT_COST > this.#workLimit) return false;
    this.#exhaust(this.#field);
    return true;
  }

  /**
   * Enumerates all plans of at most `moves` moves that may be better than the best so far. Returns false when there are too many plans, or
   * at the work limit.
   */
  #exhaustedBetter(moves: number): boolean {
    const field = { ...this.#field, budget: moves };
    if (this.#cut || !mayExhaust(field)) return false;
    return this.#exhaust(field).complete;
  }

  /** @param most placements that may be looked at. */
  #exhaust(
    field: Field,
    best = () => this.#best,
    offer = (place: Int32Array) => this.#offerOrdered(place),
    most = Number.POSITIVE_INFINITY,
  ): Exhausted {
    const affordable = Math.max(0, Math.floor((this.#workLimit - this.#work) / PLACEMENT_COST));
    const { refusals } = this.#draft;
    const exhausted = exhaust(field, { best, offer, refusals, most: Math.min(most, affordable) });
    if (!exhausted.complete && exhausted.looked >= affordable) this.#cut = true;
    this.#spend(exhausted.looked * PLACEMENT_COST);
    return exhausted;
  }

  /** The targets if moves of any number were found that reach them; else guides, then the local search for the lowest imbalance. */
  #seek(mayReach: boolean): void {
    const field = this.#field;
    const least = this.#leastMoves();
    if (mayReach) this.#seekCourse();
    if (this.#course !== null) {
      this.#seekTargets(least);
      return;
    }
    const reachable = least <= field.budget && this.#mayReach();
    if (field.destinations.length >= (this.#settings.guidedHosts ?? GUIDED_HOSTS))
      for (const shape of guideShapes(field, this.#limits, { reachable })) {
        if (this.#cut || this.#guideWork >= ALL_GUIDES) break;
        this.#guided(shape);
      }
    if (!this.#best.reached) this.#partByPart();
    const within: Within = { field, enough: () => this.#isBest(), offer: (place) => this.#offerOrdered(place) };
    if (!this.#best.reached) this.#lowest(reachable, SHORT_ROUNDS, within);
    const known = this.#exhaustedBetter(field.budget);
    this.#seekFurther();
    if (known || this.#course !== null) return;
    if (!this.#best.reached) this.#lowest(reachable, furtherRounds(), within);
    if (!this.#best.reached) return;
    this.#offerCourse(this.#best.place);
    this.#cheapen(least);
  }

  /**
   * The targets at the lowest cost, where moves of some number reach them. The steps do not depend on the budget, which only says which of
   * their results may be the plan, and which steps are not needed: so a larger budget never gives a costlier plan.
   *
   * @param least no fewer moves reach the targets.
   */
  #seekTargets(least: number): void {
    const { budget } = this.#field;
    const inReach = least <= budget && this.#mayReach();
    // The next cycles look again: a large cluster has no time for more in each of them.
    if (inReach || wholeRunElsewhere(this.#whole) <= SHORT_CHEAPEN) this.#cheapen(least);
    if (!inReach) return;
    let known = true;
    for (let moves = Math.max(least, 2); known && moves <= budget; moves++) known = this.#exhaustedBetter(moves);
    while (!known && !this.#best.reached && !this.#cut) if (!this.#reachWithin(this.#mostMoves())) return;
  }

  /** No fewer moves reach the targets. */
  #leastMoves(): number {
    const field = this.#field;
    let least = 1;
    for (let p = 0; p < field.P; p++) least = Math.max(least, fewestMoves(field, p).moves);
    return least;
  }

  /** Less than the moves of every known plan that reaches the targets. */
  #mostMoves(): number {
    return (this.#fewest?.moves ?? this.#field.V + 1) - 1;
  }

  /** Lowers the cost of the course while there is work left. */
  #cheapen(least: number): void {
    const cheapest = this.#leastCost(least);
    const enough = (): boolean => (this.#course?.cost ?? 0) <= cheapest + EPSILON;
    this.#fewer(least);
    this.#cheaper(enough);
  }

  /** Looks for the targets with at most this many moves, by runs for the lowest imbalance. False: none was found. */
  #reachWithin(moves: number): boolean {
    const field = { ...this.#whole, budget: moves };
    const enough = (): boolean => this.#mostMoves() < moves;
    const within = { field, enough, offer: (place: Int32Array) => this.#offerCourse(place) };
    this.#lowest(true, SHORT_ROUNDS, within);
    if (!enough()) this.#lowest(true, furtherRounds(), within);
    return enough();
  }

  /** False when no plan within the budget reaches every target. */
  #mayReach(): boolean {
    return this.#isWide(this.#limits);
  }

  /** True when no moves of any number gain `minGain`, or each of them gains less and they reach no targets. */
  #isHopeless(): boolean {
    const least = Math.max(this.#settings.minGain, EPSILON);
    // The bound knows nothing of the penalty for soft groups.
    if (this.#field.lax.length > 0) return false;
    if (this.#boundOfAll.combined > judge(this.#field, this.#field.home).combined - least) return true;
    return !this.#mayEverReach() && mostGain(this.#field) < least - EPSILON;
  }

  /** False when no plan of any number of moves reaches every target. */
  #mayEverReach(): boolean {
    const { budget, targets } = this.#field;
    // A target of 0 asks for the lowest imbalance.
    if (targets.some((target, p) => target === 0 && float(this.#field.imbalance, p) > EPSILON)) return false;
    if (budget > 0 && this.#mayReach()) return true;
    return this.#isWide(this.#boundOfAll);
  }

  /** No plan within the budget comes before the best one, as far as the bound shows. */
  #isBest(): boolean {
    return this.#best.reached || this.#best.combined <= this.#limits.combined + PROVEN;
  }

  #isWide({ low, high }: Bound): boolean {
    return this.#field.targets.every((target, p) => float(high, p) - float(low, p) <= target + EPSILON);
  }

  #spend(work: number): void {
    this.#work += work;
    this.#draft.evaluated += work;
  }

  /** No plan with at least this many moves costs less. */
  #leastCost(moves: number): number {
    const { costs, vmsOf } = this.#field;
    const sorted = Float64Array.from(vmsOf, (v) => float(costs, v)).sort();
    let sum = 0;
    for (let i = 0; i < Math.min(moves, sorted.length); i++) sum += float(sorted, i);
    return sum;
  }

  #guided(shape: GuideShape): void {
    const { budget, home } = this.#field;
    const left = Math.max(0, this.#workLimit - this.#work);
    const most = ALL_GUIDES - this.#guideWork;
    const within = { budget, workLimit: Math.min(left, most) };
    const trail = followGuide(this.#field, shape, within, this.#draft.refusals);
    this.#spend(trail.evaluated);
    this.#guideWork += trail.evaluated;
    if (trail.cut && left < most) this.#cut = true;
    if (trail.tight) this.#tight = true;
    for (const moves of this.#cut ? trail.marks : [...trail.marks, trail.best]) {
      const place = Int32Array.from(home);
      for (let i = 0; i < moves; i++) place[item(trail.vms, i)] = item(trail.hosts, i);
      this.#offer(place);
    }
  }

  /**
   * The targets at the lowest cost: rounds of runs from home in bands of other positions, each with a run on the real measure, until rounds
   * find nothing cheaper or no work is left.
   */
  #cheaper(enough: () => boolean): void {
    const field = this.#whole;
    const steps = cheaperRun(field);
    const finish = { aim: 'cheapest', steps: CHEAPER.finish * steps, heat: CHEAPER.heat } as const;
    let useless = 0;
    for (let round = 0; !enough() && useless < CHEAPER.patience; round++) {
      const before = this.#course;
      const runs = this.#bandRuns(field, furtherBands(field, field.targets, round), steps);
      for (const { place } of this.#found(runs.map((run) => ({ ...run, finish })))) this.#offerCourse(place);
      if (this.#cut) return;
      useless = this.#course === before ? useless + 1 : 0;
    }
  }

  /**
   * Searches for the lowest combined imbalance, and for the targets if they may be in reach. Each round has independent runs of
   * {@link level} from home, which find more than runs from the best plan. On a large cluster the long runs begin at the best plan,
   * because with many moves a run from home does not reach what guides found. Each run ends with a short one on the real measure. Rounds
   * end at the same amounts of work under every limit, and each is divided into runs of equal length. When room is short, most runs let
   * departures free room.
   */
  #lowest(reachable: boolean, ends: Iterable<number>, { field, enough, offer }: Within): void {
    for (const end of ends) {
      if (this.#cut || this.#wholeRunsLeft <= 0) return;
      const proposals = (end - (this.#work - this.#settings.spent)) / PROPOSAL_COST;
      const isLong = end > LAST_SHORT;
      const longestFinish = reachable ? FINISH.targets : FINISH.lowest;
      const { runs, steps } = divided(field, proposals / (1 + longestFinish), isLong, this.#wholeRunsLeft);
      if (steps < LEAST_RUN) continue;
      const name = isLong ? courseOf(field, steps) : 'short';
      const course = COURSES[name];
      const start = name === 'fromBest' ? this.#best.place : field.home;
      const seeds = Array.from({ length: runs }, (_, run) => this.#nextSeed + run);
      this.#nextSeed += runs;
      const tight = this.#tight;
      const departuresFree = (seed: number): boolean => tight && seed % CAUTIOUS.every !== CAUTIOUS.first;
      const level = seeds.map((seed) => {
        const aim = reachable && seed % 2 === 1 ? ('targets' as const) : ('lowest' as const);
        const finish = { aim, steps: Math.ceil(steps * FINISH[aim]), heat: FINISH_HEAT };
        return { field, start, steps, seed, course, departuresFree: departuresFree(seed), finish };
      });
      for (const found of this.#found(level, enough)) offer(found.place);
      if (this.#cut || enough()) return;
      if (steps === wholeRun(field)) this.#wholeRunsLeft -= runs;
    }
  }

  /**
   * In a cluster of several parts: the best plans of the parts, as one plan. The search finds improvements of the whole more easily from
   * there than from home.
   */
  #partByPart(): void {
    const parts = partFields(this.#field);
    for (const share of PART_RUNS) {
      const place = Int32Array.from(this.#field.home);
      const runs = parts.map((field) => {
        const steps = Math.ceil(share * wholeRunElsewhere(field));
        return { field, start: field.home, steps, seed: 1, course: COURSES.short, departuresFree: false, finish: null };
      });
      for (const found of this.#found(runs)) for (const v of found.field.vmsOf) place[v] = int(found.place, v);
      if (this.#cut) return;
      if (parts.length > 0) this.#offerOrdered(place);
    }
  }

  /** Yields the results of runs one after the other, until the work limit or until the targets are reached. */
  *#found(
    runs: readonly LevelRun[],
    enough = () => false,
  ): Generator<Pick<LevelRun, 'field'> & Pick<LevelFound, 'place'>, void, undefined> {
    const results = this.#settings.carryOut(runs);
    try {
      for (const run of runs) {
        if (enough() || !this.#affords(stepsOf(run))) return;
        const found = results.next().value;
        if (found === undefined) return;
        this.#spent(found);
        this.#draft.refusals.addAll(found.refused);
        yield { field: run.field, place: found.place };
      }
    } finally {
      results.return();
    }
  }

  /** False when the work limit leaves no room for a run: the sequence ends there. */
  #affords(steps: number): boolean {
    if (this.#work + (steps + SAMPLES) * PROPOSAL_COST > this.#workLimit) this.#cut = true;
    return !this.#cut;
  }

  /** Looks for plans that reach the targets with one move less, until it finds none. */
  #fewer(least: number): void {
    const steps = Math.min(LONGEST_FEWER, Math.ceil(wholeRunElsewhere(this.#whole) / 4));
    for (let budget = this.#mostMoves(); budget >= least && this.#fewest !== null; budget = this.#mostMoves()) {
      for (const departuresFree of this.#departures) {
        if (!this.#affords(steps)) return;
        const { refusals } = this.#draft;
        const settings = { aim: 'targets', budget, steps, heat: 1, seed: budget, refusals } as const;
        const start = this.#withoutOne(this.#fewest);
        const found = anneal(this.#whole, start, this.#whole.room.copy(departuresFree), settings);
        this.#spent(found);
        this.#offerCourse(found.place);
        if (this.#mostMoves() < budget) break;
      }
      if (this.#mostMoves() >= budget) return;
    }
  }

  #spent({ steps, tight }: Annealed): void {
    this.#spend(steps * PROPOSAL_COST);
    if (tight) this.#tight = true;
  }

  /** Keeps a placement, without its needless moves, if it is better than the best so far. */
  #offer(place: Int32Array, parked: Parked = nobody): void {
    const solution = judge(this.#field, place, parked);
    if (compare(solution, this.#best) < 0) this.#keep(this.#pruned(this.#field, solution, this.#settings.minGain));
  }

  #keep(solution: Solution): void {
    const fits = solution.acceptable && solution.moves <= this.#field.budget;
    if (!fits || compare(solution, this.#best) >= 0) return;
    this.#best = solution;
    this.#bests.push(solution);
  }

  /** The same for a placement whose moves need an order. */
  #offerOrdered(place: Int32Array): void {
    if (compare(judge(this.#field, place), this.#best) >= 0) return;
    const ordered = this.#ordered(this.#field, place);
    if (ordered !== null) this.#offer(ordered.place, ordered.parked);
  }

  /** The placement, whose moves have an order within the budget of the field: a VM without a place in any order is parked, or stays. */
  #ordered(field: Field, place: Int32Array): { place: Int32Array; parked: Parked } | null {
    const blocked = blockedMoves(this.#draft, field, place, nobody);
    if (blocked.length === 0) return { place, parked: nobody };
    if (this.#settings.allowParking) {
      const tried = park(this.#draft, field, place);
      if (tried.blocked.length === 0 && judge(field, place, tried.parked).moves <= field.budget)
        return { place, parked: tried.parked };
    }
    const possible = Int32Array.from(place);
    for (const move of blocked) {
      if (move.phase !== 'spread') return null;
      possible[move.vm] = move.from;
    }
    return { place: possible, parked: nobody };
  }

  /** The placement without its least useful move. */
  #withoutOne(solution: Solution): Int32Array {
    const { home, V } = this.#field;
    let best: Solution | null = null;
    for (let v = 0; v < V; v++) {
      if (int(solution.place, v) === int(home, v)) continue;
      const place = Int32Array.from(solution.place);
      place[v] = int(home, v);
      const rest = judge(this.#field, place);
      if (best === null || rest.combined < best.combined) best = rest;
    }
    return best?.place ?? solution.place;
  }

  /** The solution without its needless moves. A VM that stays frees no room for others, so the order is computed again. */
  #pruned(field: Field, solution: Solution, minGain: number): Solution {
    return pruned(field, solution, minGain, (place) => {
      const ordered = this.#ordered(field, place);
      return ordered?.place === place ? ordered.parked : null;
    });
  }
}

/** Proposals of a run of the whole length. A small cluster needs more for each VM. */
const runOf = (perVm: number, { vmsOf }: Field): number => perVm * vmsOf.length + Math.min(60_000, 3000 * vmsOf.length);

/** Proposals of a whole run in the search for the lowest imbalance: several runs find more than a longer one. */
const wholeRun = (field: Field): number => runOf(4000, field);

/**
 * The most whole runs in a search for the lowest imbalance. Runs of a small cluster are short, and their best plan is often found by one run
 * of many (`npm run bench:quality`); on a larger cluster more runs cost time and find nothing more.
 */
const mostWholeRuns = ({ vmsOf }: Field): number => Math.max(6, Math.min(20, Math.round(800 / vmsOf.length)));

/** Proposals of a whole run in the other searches, and for parts. More proposals rarely find more. */
const wholeRunElsewhere = (field: Field): number => runOf(2000, field);

/** The last search for the lowest cost: length of the runs on the real measure, in runs from home; their heat; rounds without a result. */
const CHEAPER = { finish: 2, heat: 3, patience: 2 };

/** Proposals of a run from home of the last search for the lowest cost. */
const cheaperRun = (field: Field): number => Math.min(200_000, runOf(1000, field));

/** With fewer proposals, a long run from home does not reach what guides found. */
const leastFromHome = ({ vmsOf, budget }: Field): number =>
  Math.max(FROM_HOME.perVm * vmsOf.length, Math.min(FROM_HOME.enough * vmsOf.length, FROM_HOME.perMove * budget));

/** The course of a long run with this many proposals. */
function courseOf(field: Field, steps: number): 'fromBest' | 'reheated' | 'long' {
  if (steps < leastFromHome(field)) return 'fromBest';
  return steps >= REHEATED * field.vmsOf.length ? 'reheated' : 'long';
}

/**
 * The runs of a round with this many proposals, and the proposals of each. A long round has whole runs if it has room for them, else
 * as {@link RUNS} says, so that there are runs for several threads.
 */
function divided(
  field: Field,
  proposals: number,
  isLong: boolean,
  mostRuns: number,
): { readonly runs: number; readonly steps: number } {
  const whole = wholeRun(field);
  const stepsFor = (runs: number): number => Math.min(whole, Math.floor(proposals / runs) - 2 * SAMPLES);
  const least = !isLong ? 1 : stepsFor(RUNS.fromHome) >= leastFromHome(field) ? RUNS.fromHome : RUNS.fromBest;
  const runs = Math.min(mostRuns, Math.max(least, Math.round(proposals / whole)));
  return { runs, steps: stepsFor(runs) };
}

/** Ends of the rounds of the search for the lowest imbalance, in evaluated candidates. The first rounds are short. */
const SHORT_ROUNDS = [50_000, 500_000];

/** End of the last round of short runs. */
const LAST_SHORT = 2_000_000;

/** End of the first long round: the default work limit, for which the rounds are laid out. */
export const DEFAULT_ROUND = 20_000_000;

/** The further rounds: a short one, the default work limit, then doubled each time. */
function* furtherRounds(): Generator<number> {
  yield LAST_SHORT;
  for (let end = DEFAULT_ROUND; ; end *= 2) yield end;
}

/** A search for the lowest imbalance: until when, and what becomes of its results. */
type Within = {
  readonly field: Field;
  readonly enough: () => boolean;
  readonly offer: (place: Int32Array) => void;
};
