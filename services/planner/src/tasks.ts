import {
  type Actor,
  type MigrationFailed,
  type MigrationRequested,
  messageId,
  type PlanDispatched,
} from '@kronos/contracts';
import { type AggregateState, notAfterMs, type PlanFacts, type TaskFacts } from '@kronos/projections';

const iso = (ms: number): string => new Date(ms).toISOString();

/** The messages that put a released plan's open tasks on the work queue, with the ids that any planner gives them. */
export function requests(state: AggregateState, plan: PlanFacts, by: Actor, nowMs: number): MigrationRequested[] {
  const lastStartMs = notAfterMs(plan);
  if (lastStartMs === null) return [];
  return openTasks(state, plan).map((task) => request(task, state.aggregate, plan, lastStartMs, by, nowMs));
}

/** Tasks of the plan that nobody has started or ended. */
const openTasks = (state: AggregateState, plan: PlanFacts): TaskFacts[] =>
  plan.tasks.flatMap((id) => {
    const task = state.tasks.get(id);
    return task === undefined || task.end !== null || task.slot !== null ? [] : [task];
  });

function request(
  task: TaskFacts,
  aggregate: string,
  plan: PlanFacts,
  lastStartMs: number,
  by: Actor,
  nowMs: number,
): MigrationRequested {
  const { delaySeconds: _, ...step } = task.step;
  return {
    type: 'migration.requested',
    version: 1,
    id: messageId.requested(task.id, task.attempt),
    time: iso(nowMs),
    aggregate,
    by,
    correlationId: plan.id,
    causationId: messageId.decided(plan.id),
    data: {
      ...step,
      planId: plan.id,
      attempt: task.attempt,
      destination: task.destination,
      notBefore: iso(task.notBeforeMs),
      notAfter: iso(lastStartMs),
    },
  };
}

/** The event that says a plan's tasks are all on the work queue. */
export const dispatchedEvent = (aggregate: string, plan: PlanFacts, by: Actor, nowMs: number): PlanDispatched => ({
  type: 'plan.dispatched',
  version: 1,
  id: messageId.dispatched(plan.id),
  time: iso(nowMs),
  aggregate,
  by,
  correlationId: plan.id,
  causationId: messageId.decided(plan.id),
  data: { planId: plan.id, tasks: plan.tasks.length },
});

/** Final results for tasks that nobody started and no executor ended: one `plan_ttl` after they could last be started. */
export function overdueResults(state: AggregateState, by: Actor, nowMs: number): MigrationFailed[] {
  const results: MigrationFailed[] = [];
  for (const plan of state.plans.values()) {
    const lastStartMs = notAfterMs(plan);
    if (plan.release === null || lastStartMs === null) continue;
    const ttlMs = lastStartMs - plan.release.atMs;
    if (nowMs <= lastStartMs + ttlMs) continue;
    for (const task of openTasks(state, plan)) {
      results.push({
        type: 'migration.failed',
        version: 1,
        id: messageId.ended(task.id, task.attempt),
        time: iso(nowMs),
        aggregate: state.aggregate,
        by,
        correlationId: plan.id,
        causationId: messageId.requested(task.id, task.attempt),
        data: {
          taskId: task.id,
          planId: plan.id,
          serverId: task.step.serverId,
          attempt: task.attempt,
          from: task.step.from,
          destination: task.destination,
          errorType: 'Cancelled',
          reason: {
            code: 'expired',
            text: `no executor started or ended it until ${iso(lastStartMs)}; recorded by the planner`,
          },
          retries: task.attempt - 1,
          retryPending: false,
          next: null,
          hostAtFault: null,
          started: false,
          nova: null,
        },
      });
    }
  }
  return results;
}
