/** The start rule with the host breaker, for an attempt by the log. Pure. */
import { iso } from '@kronos/contracts';
import { taskReasons, type WaitReasonCode } from '@kronos/facts';
import { type AggregateState, hostBroken, mayStart, type Places, type TaskFacts } from '@kronos/projections';
import { uselessness } from './alternates.ts';
import { cancelled, failureFor, type JudgedFailure } from './failure.ts';
import type { Task } from './taskFacts.ts';

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
