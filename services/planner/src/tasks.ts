import { type Actor, type MigrationFailed, messageId, type PlanDispatched } from '@kronos/contracts';
import { openTasks } from '@kronos/cycle';
import { type AggregateState, notAfterMs, type PlanFacts } from '@kronos/projections';

const iso = (ms: number): string => new Date(ms).toISOString();

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
