import type { AggregateState, TaskFacts } from './state.ts';

/** A task has ended when its one final result is on the log. */
const isOver = (task: TaskFacts): boolean => task.end !== null;

/** Every released move that has not ended, in the order of its plans and steps: not only those that hold a slot. */
export function inFlight(state: Pick<AggregateState, 'plans' | 'tasks'>): TaskFacts[] {
  const moves: TaskFacts[] = [];
  for (const plan of [...state.plans.values()].sort((a, b) => a.sequence - b.sequence))
    for (const id of plan.tasks) {
      const task = state.tasks.get(id);
      if (task !== undefined && !isOver(task)) moves.push(task);
    }
  return moves;
}

/** The same of the other aggregates, in the order of their names. */
export const inFlightElsewhere = ({
  elsewhere,
}: Pick<AggregateState, 'elsewhere'>): { readonly aggregate: string; readonly task: TaskFacts }[] =>
  elsewhere.flatMap((other) => inFlight(other).map((task) => ({ aggregate: other.aggregate, task })));

export type TaskStanding =
  /** It is of a plan that the state still holds. */
  | { readonly known: true; readonly task: TaskFacts }
  /** Never released, or its plan is over: no service may act on it. */
  | { readonly known: false };

/** The standing of a task on the log. */
export function taskStatus(state: Pick<AggregateState, 'tasks'>, taskId: string): TaskStanding {
  const task = state.tasks.get(taskId);
  return task === undefined ? { known: false } : { known: true, task };
}
