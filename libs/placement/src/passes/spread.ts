import type { EngineOptions } from '@kronos/contracts';
import { NO_REPAIR } from '../constraints.ts';
import { Draft } from '../draft.ts';
import { outcomeOf } from '../outcome.ts';
import { greedy } from './greedy.ts';
import { type Found, type SearchEnd, search } from './search/search.ts';
import { blockedMoves, nobody } from './search/sequence.ts';
import { compare, judge } from './search/solution.ts';

/**
 * The imbalance planner in spread mode: adds its moves to the draft.
 *
 * @param fullBudget what a second run on the outcome would have.
 */
export function spread(
  draft: Draft,
  fullBudget: number,
  options: Pick<EngineOptions, 'planner' | 'minGain' | 'searchWorkLimit' | 'allowParking'>,
): SearchEnd {
  if (options.planner === 'greedy') {
    for (const { vm, to } of greedy(draft, options.minGain)) draft.apply(vm, to, 'spread', 'lowers-imbalance');
    return draft.budget === 0 ? 'budget' : 'done';
  }
  const { field, solution, end } = settled(draft, fullBudget, options);
  for (let v = 0; v < field.V; v++) {
    const to = solution.place[v] as number;
    if (to === field.home[v]) continue;
    const third = solution.parked.get(v);
    if (third !== undefined) draft.apply(v, third, 'spread', 'parks-vm', NO_REPAIR, true);
    draft.apply(v, to, 'spread', 'lowers-imbalance');
  }
  return end;
}

/**
 * A search whose outcome a second run would leave as it is. Where the first one ends for want of ideas, a second one is
 * made on its outcome: what it still finds becomes part of the plan if the budget allows, else the budget ended it.
 */
function settled(
  draft: Draft,
  fullBudget: number,
  options: Pick<EngineOptions, 'minGain' | 'searchWorkLimit' | 'allowParking'>,
): Found {
  const { minGain, allowParking, searchWorkLimit: workLimit } = options;
  let found = search(draft, { minGain, allowParking, workLimit, spent: 0 });
  let evaluated = draft.evaluated;
  while (found.end === 'done' && !found.solution.within && found.solution.moves > 0) {
    const { field } = found;
    const again = new Draft(outcomeOf(draft.cluster, found.solution.place), fullBudget);
    const second = search(again, { minGain, allowParking, workLimit, spent: found.work });
    evaluated += again.evaluated;
    draft.evaluated = evaluated;
    if (second.solution.moves === 0) {
      found = { ...found, end: second.end === 'work' ? 'work' : 'done', work: second.work };
      break;
    }
    const merged = judge(field, second.solution.place);
    const possible =
      merged.acceptable &&
      merged.moves <= field.budget &&
      compare(merged, found.solution) < 0 &&
      merged.place.every((host, v) => host === field.home[v] || field.movable[v] === 1) &&
      blockedMoves(draft, field, merged.place, nobody).length === 0;
    if (!possible) {
      found = { ...found, end: 'budget', work: second.work };
      break;
    }
    found = { ...found, solution: merged, end: second.end, work: second.work };
  }
  return found;
}
