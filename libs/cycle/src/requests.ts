import { type Actor, iso, type MigrationRequested, messageId, timeMs } from '@kronos/contracts';
import { type AggregateState, causeOf, notAfterMs, type PlanFacts, type TaskFacts } from '@kronos/projections';

/** Tasks of a released plan that nobody has started or ended. */
export const openTasks = (state: AggregateState, plan: PlanFacts): TaskFacts[] =>
  unendedTasks(state, plan).filter((task) => task.slot === null);

const unendedTasks = (state: AggregateState, plan: PlanFacts): TaskFacts[] =>
  plan.tasks.flatMap((id) => {
    const task = state.tasks.get(id);
    return task === undefined || task.end !== null ? [] : [task];
  });

type Sender = { readonly by: Actor; readonly nowMs: number };

/** The messages that put a released plan's open tasks on the work queue, with the ids that any planner gives them. */
export function taskRequests(state: AggregateState, plan: PlanFacts, by: Actor, nowMs: number): MigrationRequested[] {
  return requestsOf(state, plan, openTasks(state, plan), { by, nowMs });
}

/**
 * The messages of every task that has not ended, those of started ones too: for a work queue that was lost. Who gets a
 * started one looks for its migration in Nova and follows it to its end.
 */
export function lostRequests(state: AggregateState, by: Actor, nowMs: number): MigrationRequested[] {
  const plans = [...state.plans.values()].sort((a, b) => a.sequence - b.sequence);
  return plans.flatMap((plan) => requestsOf(state, plan, unendedTasks(state, plan), { by, nowMs }));
}

function requestsOf(
  { aggregate }: AggregateState,
  plan: PlanFacts,
  tasks: readonly TaskFacts[],
  { by, nowMs }: Sender,
): MigrationRequested[] {
  const lastStartMs = notAfterMs(plan);
  if (lastStartMs === null) return [];
  return tasks.map((task) => {
    const { delaySeconds: _, ...step } = task.step;
    const { startBefore } = step;
    return {
      type: 'migration.requested',
      version: 1,
      id: messageId.requested(task.id, task.attempt),
      time: iso(nowMs),
      aggregate,
      by,
      correlationId: plan.id,
      causationId: causeOf(plan),
      data: {
        ...step,
        planId: plan.id,
        attempt: task.attempt,
        destination: task.destination,
        notBefore: iso(task.notBeforeMs),
        notAfter: iso(startBefore === undefined ? lastStartMs : Math.min(lastStartMs, timeMs(startBefore))),
      },
    };
  });
}
