import { byText, type CycleDecided } from '@kronos/contracts';
import { meaningOf } from '@kronos/placement';
import { aggregateState, type LogState, pacesOfAll, planTime, stepTime } from '@kronos/projections';
import { RECENT_DECISIONS } from '../../memory/history.ts';
import { ApiError } from '../answer.ts';
import type { ApiContext, Handlers } from '../context.ts';
import { noPlan } from '../lookups.ts';
import { limitOf, sinceOf } from '../query.ts';
import { findPlan, findTask, planList, taskPage } from '../stateJson.ts';

/** How long the moves of a plan take, together and each. */
function timesOf(state: LogState, decision: CycleDecided | null) {
  const plan = decision?.data.plan ?? null;
  if (decision === null || plan === null) return { time: null, stepTimes: [] };
  const [paces, all] = [aggregateState(state, decision.aggregate), pacesOfAll(state)];
  return { time: planTime(paces, plan.steps, all), stepTimes: plan.steps.map((step) => stepTime(paces, step, all)) };
}

/** Plans, their tasks, and decisions. */
export const plansHandlers = ({
  input,
  lookups,
  reads,
}: ApiContext): Pick<Handlers, 'plans' | 'plan' | 'tasks' | 'task' | 'decisions'> => ({
  plans({ query }) {
    const limit = limitOf(query);
    const plans = lookups.chosen(query).flatMap((state) => planList(state, limit));
    return { plans: plans.sort((a, b) => b.sequence - a.sequence).slice(0, limit) };
  },

  async plan({ params: { id = '' }, query }) {
    const found = findPlan(input.state(), id);
    const decision = await lookups.decisionOf(id, query);
    if (found === null && decision === null) throw noPlan(id);
    return {
      ...timesOf(input.state(), decision),
      plan: found?.page ?? null,
      tasks: found?.tasks ?? [],
      decision: decision === null ? null : await lookups.inFull(decision),
      refused: Object.entries(decision?.data.refusals ?? {})
        .map(([code, candidates]) => ({ code, text: meaningOf(code), candidates }))
        .sort((a, b) => b.candidates - a.candidates),
      events: reads.about((e) => e.planId === id),
    };
  },

  tasks({ query }) {
    const limit = limitOf(query);
    const tasks = lookups
      .chosen(query)
      .flatMap((state) =>
        [...state.tasks.values()]
          .filter(({ end }) => end === null)
          .map((task) => ({ aggregate: state.aggregate, ...taskPage(task) })),
      );
    tasks.sort((a, b) => Number(a.started === null) - Number(b.started === null) || byText(a.notBefore, b.notBefore));
    return { sequence: input.state().sequence, total: tasks.length, tasks: tasks.slice(0, limit) };
  },

  task({ params: { id = '' } }) {
    const found = findTask(input.state(), id);
    const events = reads.about((e) => e.taskId === id);
    if (found === null && events.length === 0)
      throw new ApiError(404, `no task ${JSON.stringify(id)} in flight or among the recent events`);
    return { task: found === null ? null : { aggregate: found.aggregate, ...taskPage(found.task) }, events };
  },

  decisions({ query }) {
    const aggregate = query.get('aggregate');
    if (aggregate === null) throw new ApiError(400, 'name an aggregate: ?aggregate=NAME');
    const decisions = lookups.decisionsSince(lookups.known(aggregate), sinceOf(query));
    return { decisions: decisions.slice(-limitOf(query, { usual: RECENT_DECISIONS, most: RECENT_DECISIONS })) };
  },
});
