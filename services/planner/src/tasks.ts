import {
  type Actor,
  type MigrationFailed,
  type MigrationRequested,
  messageId,
  type PlanDispatched,
} from '@kronos/contracts';
import type { AggregateState, PlanFacts, TaskFacts } from '@kronos/projections';

const iso = (ms: number): string => new Date(ms).toISOString();

const DEFAULT_PLAN_TTL_SECONDS = 3600;

/** When a task of this plan may last be started: release + plan_ttl, as it was in force when the plan was decided. */
const notAfterMs = (plan: PlanFacts, releasedAtMs: number): number =>
  releasedAtMs + (plan.planTtlSeconds ?? DEFAULT_PLAN_TTL_SECONDS) * 1000;

/** Released plans whose tasks may not all be on the work queue, oldest first. */
export const undispatched = (state: AggregateState): PlanFacts[] =>
  [...state.plans.values()]
    .filter((p) => p.state === 'released' && p.dispatched === null)
    .sort((a, b) => a.sequence - b.sequence);

/** The messages that put a released plan's open tasks on the work queue, with the ids that any planner gives them. */
export function requests(state: AggregateState, plan: PlanFacts, by: Actor, nowMs: number): MigrationRequested[] {
  const { release } = plan;
  if (release === null) return [];
  return plan.tasks
    .map((id) => state.tasks.get(id))
    .filter((task) => task !== undefined && task.end === null && task.slot === null)
    .map((task) => request(task as TaskFacts, state.aggregate, plan, release.atMs, by, nowMs));
}

function request(
  task: TaskFacts,
  aggregate: string,
  plan: PlanFacts,
  releasedAtMs: number,
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
      notAfter: iso(notAfterMs(plan, releasedAtMs)),
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
    if (plan.release === null) continue;
    const ttlMs = (plan.planTtlSeconds ?? DEFAULT_PLAN_TTL_SECONDS) * 1000;
    const lastStartMs = notAfterMs(plan, plan.release.atMs);
    if (nowMs <= lastStartMs + ttlMs) continue;
    for (const id of plan.tasks) {
      const task = state.tasks.get(id);
      if (task === undefined || task.end !== null || task.slot !== null) continue;
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
