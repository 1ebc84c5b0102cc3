import type { CompleteEngineOptions, Reason } from '@kronos/contracts';
import { EPSILON } from '@kronos/rules';
import { int } from '../base/array.ts';
import { clusterAfter } from '../cluster/clusterAfter.ts';
import { allWithin, combinedOf, imbalances, valuesAfter } from '../cluster/measure.ts';
import { Draft } from '../draft/draft.ts';
import type { CarryOut } from '../search/anneal/runs.ts';
import { greedy } from '../search/greedy.ts';
import type { Field } from '../search/problem/field.ts';
import { blockedMoves, nobody } from '../search/problem/sequence.ts';
import { compare, costOfMoves, judge, type Solution } from '../search/problem/solution.ts';
import { type CourseFound, type FoundPlan, type SearchEnd, type SearchSettings, search } from '../search/search.ts';
import { pruned } from '../search/shorten/prune.ts';

type SpreadOptions = Pick<CompleteEngineOptions, 'minGain' | 'moveOverheadGib' | 'searchWorkLimit' | 'allowParking'> &
  Pick<SearchSettings, 'courseMoves'>;

/** The noise of the last cycles. */
export type NoiseKnown = {
  /** Standard deviation of the noise of the combined imbalance; 0: none is known. */
  readonly combined: number;
  /** Cycles in a row, this one included, in which every policy that is above its threshold was so, and no plan was released. */
  readonly cycles: number;
};

/** A gain up to this many standard deviations of the noise may be noise: a plan takes the best of many placements. */
const EXPLAINED = 3;
/** The same, however many cycles an imbalance lasts: each search takes what the noise of its own cycle makes look best. */
const EXPLAINED_EVER = 1.5;

/**
 * The gain up to which the noise of the last cycles may explain a plan. What has lasted for n cycles has been measured n times, and the noise
 * of the mean is that of one divided by the root of n.
 */
function explained({ combined, cycles }: NoiseKnown, within: boolean): number {
  const ofMean = EXPLAINED / Math.sqrt(Math.max(1, cycles));
  return combined * (within ? ofMean : Math.max(EXPLAINED_EVER, ofMean));
}

/**
 * The imbalance planner in spread mode: adds its moves to the draft.
 *
 * @param fullBudget the budget of a second run on the outcome.
 * @param carryOut how runs of the search are carried out; it changes no plan.
 */
export function spread(
  draft: Draft,
  fullBudget: number,
  options: SpreadOptions & Pick<CompleteEngineOptions, 'planner'> & { readonly noise?: NoiseKnown },
  carryOut: CarryOut,
): Spread {
  if (options.planner === 'greedy') {
    for (const { vm, to } of greedy(draft, options.minGain))
      draft.apply(vm, to, { phase: 'spread', why: 'lowers-imbalance' });
    return { ...nothingSaid, end: draft.budget === 0 ? 'budget' : 'done' };
  }
  const found = settled(draft, fullBudget, options, carryOut);
  const { field, solution, end, course, proven, unreachable } = found;
  const withheld = withheldOf(found, options.noise);
  if (withheld !== null) return { end, course: null, proven, withheld, unreachable };
  const lowers = solution.combined < combinedOf(field.cluster, field.imbalance) - EPSILON;
  const why = course === null || lowers ? 'lowers-imbalance' : 'part-of-course';
  for (let v = 0; v < field.V; v++) {
    const to = int(solution.place, v);
    if (to === field.home[v]) continue;
    const third = solution.parked.get(v);
    if (third !== undefined) draft.apply(v, third, { phase: 'spread', why: 'parks-vm', parking: true });
    draft.apply(v, to, { phase: 'spread', why });
  }
  return { end, course: course === null ? null : courseOf(field, course), proven, withheld: null, unreachable };
}

/** Why the moves are withheld: noise explains their gain, and no threshold demands the targets that they reach. Null: they are made. */
function withheldOf({ field, solution, course }: FoundPlan, noise: NoiseKnown | undefined): Spread['withheld'] {
  // The moves of this cycle's part of a course gain little by themselves, or there are none within the budget: the whole course counts.
  const { moves, combined, reached, within } = course?.solution ?? solution;
  if (noise === undefined || moves === 0) return null;
  const isAbove = !allWithin(field.cluster, field.imbalance);
  if (isAbove ? solution.reached || reached : solution.moves === 0) return null;
  const gain = combinedOf(field.cluster, field.imbalance) - combined;
  const least = explained(noise, solution.moves === 0 ? within : solution.within);
  return gain > least ? null : { moves, gain, least };
}

/** The findings of the imbalance planner beside its moves. */
export type Spread = {
  readonly end: SearchEnd;
  /** The moves that are left beyond this cycle, too. Null: the budget reaches every target, or there is no course. */
  readonly course: FoundCourse | null;
  /** No moves of any number gain `min_gain`, or each of them gains less and they reach no targets. */
  readonly proven: boolean;
  /** A plan that is not made, or the whole course of which it is a part, because its gain may be noise: the gain must exceed `least`. Null: there is none. */
  readonly withheld: { readonly moves: number; readonly gain: number; readonly least: number } | null;
  /** The thresholds that no moves of any number reach. Greedy does not look for them. */
  readonly unreachable: readonly Reason[];
};

/** Before a search, and after greedy. */
export const nothingSaid: Spread = { end: 'done', course: null, proven: false, withheld: null, unreachable: [] };

export type FoundCourse = Pick<Solution, 'moves' | 'cost' | 'combined'> & {
  readonly reaches: boolean;
  /** By policy, at the end of the course. */
  readonly imbalance: Float64Array;
  /** Moves of the smallest part that may be made at once. */
  readonly needed: number;
};

function courseOf(field: Field, { solution, needed }: CourseFound): FoundCourse {
  const { place, moves, combined, reached } = solution;
  const imbalance = imbalances(field.cluster, valuesAfter(field.cluster, field.score, field.home, place));
  return { moves, cost: plainCost(field, solution), combined, reaches: reached, imbalance, needed };
}

/** The cost of the moves without regard to recent moves of their VMs, in GiB. */
function plainCost(field: Field, solution: Solution): number {
  const { V, home, cluster } = field;
  let cost = 0;
  for (let v = 0; v < V; v++)
    if (int(solution.place, v) !== int(home, v))
      cost += costOfMoves(field, v, solution) / (1 + int(cluster.recentMoves, v));
  return cost;
}

/**
 * Searches until another run would not change the result. If the first run does not use the whole budget, a second run starts from its
 * outcome. Its moves become part of the plan as far as the budget allows.
 */
function settled(draft: Draft, fullBudget: number, options: SpreadOptions, carryOut: CarryOut): FoundPlan {
  const { minGain, moveOverheadGib, allowParking, searchWorkLimit: workLimit, courseMoves } = options;
  const course = courseMoves === undefined ? {} : { courseMoves };
  const settings = { minGain, moveOverheadGib, allowParking, workLimit, carryOut, ...course };
  let found = search(draft, { ...settings, spent: 0 });
  let evaluated = draft.evaluated;
  while (found.end === 'done' && !found.solution.within && found.solution.moves > 0) {
    const { field } = found;
    const again = new Draft(clusterAfter(draft.cluster, found.solution.place), fullBudget);
    const second = search(again, { ...settings, spent: found.work });
    evaluated += again.evaluated;
    draft.evaluated = evaluated;
    if (second.solution.moves === 0) {
      found = { ...found, end: second.end === 'work' ? 'work' : 'done', work: second.work };
      break;
    }
    // The last plan is the best, but an earlier one may need fewer moves.
    let best = found.solution;
    let whole = false;
    for (const { place } of second.bests) {
      const order = (to: Int32Array) => (blockedMoves(draft, field, to, nobody).length === 0 ? nobody : null);
      const merged = pruned(field, judge(field, place), minGain, order);
      const possible =
        merged.acceptable &&
        merged.moves <= field.budget &&
        compare(merged, best) < 0 &&
        merged.place.every((host, v) => host === field.home[v] || field.movable[v] === 1) &&
        order(merged.place) !== null;
      if (possible) best = merged;
      whole = possible;
    }
    found = { ...found, solution: best, end: whole ? second.end : 'budget', work: second.work };
  }
  return found;
}
