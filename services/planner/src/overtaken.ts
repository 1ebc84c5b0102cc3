/** Whether the log has changed since a decision in a way that requires a new one. Pure. */
import { type AggregateState, pauseInForce } from '@kronos/projections';

/** The facts that can forbid a plan of the aggregate as a whole, by their names. */
const gateFacts = (state: AggregateState): Readonly<Record<string, string | number | null>> => ({
  pause: pauseInForce(state)?.sequence ?? null,
  'unreadable event': state.unreadable?.sequence ?? null,
  'plan that waits for approval': state.waiting,
  'release of a plan': state.lastRelease && `${state.lastRelease.planId} ${state.lastRelease.atMs}`,
  'refusal of a plan': state.lastRefusal && `${state.lastRefusal.planId} ${state.lastRefusal.atMs}`,
  'options of the planner': state.configured?.sequence ?? null,
  'end of a move': state.lastMoveEnd && `${state.lastMoveEnd.taskId} ${state.lastMoveEnd.atMs}`,
});

/**
 * The change on the log since a decision's basis that requires a new decision on the snapshot, or null. Other events
 * after the basis do not matter to the decision: they are caught where each task starts.
 *
 * @param basis the state that the decision was made on
 */
export function overtaken(basis: AggregateState, now: AggregateState): string | null {
  const before = gateFacts(basis);
  const after = gateFacts(now);
  const changed = Object.keys(before).find((fact) => before[fact] !== after[fact]);
  return changed === undefined ? null : `the log has changed since the decision: ${changed}`;
}
