import { iso, type LogEvent, type UnreadableEvent } from '@kronos/contracts';
import { taskReasons, type WaitReasonCode } from '@kronos/facts';
import {
  type AggregateState,
  expectedDuration,
  hostBroken,
  mayStart,
  type Places,
  type TaskFacts,
  taskStatus,
} from '@kronos/projections';
import { gibOfMove } from '@kronos/rules';
import { uselessness } from './alternates.ts';
import { cancelled, failureFor, type JudgedFailure } from './failure.ts';
import type { AttemptLog, Task, Word } from './taskStages.ts';

/** May a task start? `end`: never; the failure says whether another attempt may. */
export type Start =
  | { readonly kind: 'start' }
  | { readonly kind: 'wait'; readonly code: WaitReasonCode; readonly text: string; readonly untilMs: number | null }
  | { readonly kind: 'end'; readonly failure: JudgedFailure }
  /** The log has this attempt started or ended: the holder of the task checks again. */
  | { readonly kind: 'overtaken' };

/** The start rule, and the host breaker. */
export function judgeStart(state: AggregateState, task: Task, nowMs: number, places: Places): Start {
  if (state.unreadable !== null)
    return wait(
      'unreadable-event',
      `event ${state.unreadable.sequence} of the log needs a newer version to be understood`,
    );
  // Unset limits mean that moves between cells are off: no start, and no waiting for a slot.
  const known = state.tasks.get(task.taskId);
  const waits = known?.attempt === task.attempt && known.slot === null && known.end === null;
  if (waits && known.step.phase === 'cell' && places.caps.cells === undefined) {
    const text = 'moves between cells are off: [cells] aggregates of the executor is empty';
    return { kind: 'end', failure: cancelled('cells-off', text) };
  }
  const verdict = mayStart(state, task, nowMs, places);
  switch (verdict.verdict) {
    case 'wait':
      return { kind: 'wait', code: verdict.reason.code, text: verdict.reason.text, untilMs: verdict.untilMs };
    case 'end':
      return {
        kind: 'end',
        failure: {
          errorType: verdict.errorType,
          reason: verdict.reason,
          cause: taskReasons[verdict.reason.code].party,
          fault: 'none',
          hostAtFault: null,
        },
      };
    case 'started':
    case 'over':
      return { kind: 'overtaken' };
    case 'start':
      return judgeDestination(state, task, known, nowMs);
  }
}

/** Judges the destination of an attempt by the log alone: its usefulness, and the host breaker. */
function judgeDestination(
  state: AggregateState,
  { destination }: Task,
  known: TaskFacts | undefined,
  nowMs: number,
): Start {
  const end = (failure: JudgedFailure): Start => ({ kind: 'end', failure });
  const useless = known === undefined ? null : uselessness(state, known);
  if (useless !== null) return end(failureFor('no-longer-useful', { errorType: 'Cancelled', text: useless }));
  const options = state.configured?.options;
  const until = options === undefined ? null : hostBroken(state, destination, nowMs, options);
  if (until === null) return { kind: 'start' };
  const text = `${destination} is out as a destination after failures that were its fault`;
  const detail = { until: iso(until) };
  return end(failureFor('host-broken', { errorType: 'PreFlightError', text, detail }));
}

const wait = (code: WaitReasonCode, text: string): Start => ({ kind: 'wait', code, text, untilMs: null });

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
export function wordOn(state: AggregateState, taskId: string, attempt: number, paces: readonly number[] = []): Word {
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
