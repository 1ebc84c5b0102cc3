/** The facts of the log about one attempt. Pure. */
import type { LogEvent, UnreadableEvent } from '@kronos/contracts';
import { type AggregateState, expectedDuration, type TaskFacts, taskStatus } from '@kronos/projections';
import { gibOfMove } from '@kronos/rules';
import type { AttemptLog, AttemptOrders } from './taskFacts.ts';

/** The state of an attempt on the log. */
export function attemptLog(state: AggregateState, taskId: string, attempt: number): AttemptLog {
  const standing = taskStatus(state, taskId);
  if (!standing.known) return { kind: 'unknown' };
  const { task } = standing;
  if (task.end !== null) return { kind: 'ended', next: null };
  if (attempt < task.attempt) return { kind: 'ended', next: announced(task, attempt) };
  if (attempt > task.attempt) return { kind: 'unknown' };
  if (task.slot === null) return { kind: 'waiting' };
  const { newestMigrationId, migrationId, requestId, cell, startedAtMs } = task.slot;
  const moves = cell === undefined ? {} : { cell: { ...cell, startedAtMs } };
  return { kind: 'started', newestMigrationId, migrationId, requestId, stop: null, ...moves };
}

/** The attempt that the failure of `attempt` announced, while it has not begun. */
function announced(task: TaskFacts, attempt: number) {
  if (task.status !== 'retryPending' || task.attempt !== attempt + 1) return null;
  return { attempt: task.attempt, destination: task.destination, notBeforeMs: task.notBeforeMs };
}

/**
 * The facts of the log for the follower of an attempt.
 *
 * @param paces of moves in any aggregate
 */
export function ordersFor(
  state: AggregateState,
  taskId: string,
  attempt: number,
  paces: readonly number[] = [],
): AttemptOrders {
  const task = state.tasks.get(taskId);
  const slot = task?.slot ?? null;
  const usual =
    slot === null || slot.cell !== undefined ? null : expectedDuration(state, { ...slot, gib: gibOfMove(slot) }, paces);
  return {
    stopAsked: task !== undefined && (task.cancelAsked !== null || task.abortAsked !== null),
    ...(task?.settleAsked === undefined ? {} : { settleAsked: task.settleAsked }),
    closeAsked: task?.closeAsked ?? null,
    ended: task === undefined || task.end !== null || task.attempt > attempt,
    ...(usual === null ? {} : { usual }),
  };
}

/** The hosts that an event of the log concerns: a pre-flight of a move between them is no longer fresh. */
export function hostsInEvent(event: LogEvent | UnreadableEvent): readonly string[] {
  switch (event.type) {
    case 'migration.started':
    case 'migration.completed':
    case 'migration.failed':
      return [event.data.from, event.data.destination];
    default:
      return [];
  }
}
