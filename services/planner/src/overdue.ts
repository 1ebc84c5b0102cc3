import { type Actor, CLOSED, closedText, iso, type MigrationFailed, messageId } from '@kronos/contracts';
import { openTasks } from '@kronos/cycle';
import type { ReasonOf, TaskReasonCode } from '@kronos/facts';
import { type AggregateState, notAfterMs, type TaskFacts } from '@kronos/projections';

/** An executor that holds a task ends it within this time of an operator's `migration.closed` with force; then a planner does. */
export const CLOSE_GRACE_MS = 60_000;

/**
 * Final results for tasks that no executor ended: those that nobody started, one `plan_ttl` after they could last be started,
 * and those that an operator closed with force a minute ago. Without force, only an executor sees whether Nova still works on the server.
 */
export function overdueResults(state: AggregateState, by: Actor, nowMs: number): MigrationFailed[] {
  const results: MigrationFailed[] = [];
  const end = (task: TaskFacts, reason: ReasonOf<TaskReasonCode>): void => {
    const started = task.slot !== null;
    results.push({
      type: 'migration.failed',
      version: 1,
      id: messageId.ended(task.id, task.attempt),
      time: iso(nowMs),
      aggregate: state.aggregate,
      by,
      correlationId: task.planId,
      causationId: (started ? messageId.started : messageId.requested)(task.id, task.attempt),
      data: {
        taskId: task.id,
        planId: task.planId,
        serverId: task.step.serverId,
        attempt: task.attempt,
        from: task.step.from,
        destination: task.destination,
        errorType: 'Cancelled',
        reason,
        retries: task.attempt - 1,
        retryPending: false,
        next: null,
        hostAtFault: null,
        started,
        nova: null,
      },
    });
  };
  for (const task of state.tasks.values()) {
    if (task.end !== null || task.closeAsked?.force !== true || nowMs < task.closeAsked.atMs + CLOSE_GRACE_MS) continue;
    const text = `${closedText(task.closeAsked)}; no executor held it, recorded by the planner`;
    end(task, { code: CLOSED, text });
  }
  for (const plan of state.plans.values()) {
    const lastStartMs = notAfterMs(plan);
    if (plan.release === null || lastStartMs === null) continue;
    const ttlMs = lastStartMs - plan.release.atMs;
    if (nowMs <= lastStartMs + ttlMs) continue;
    const text = `no executor started or ended it until ${iso(lastStartMs)}; recorded by the planner`;
    for (const task of openTasks(state, plan)) end(task, { code: 'expired', text });
  }
  return results;
}
