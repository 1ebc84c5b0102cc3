/** Whether a move to an alternate still serves its purpose, by the log. Pure. */
import { type TaskReasonCode, taskCodeOf } from '@kronos/facts';
import type { AggregateState, StepFacts, TaskFacts } from '@kronos/projections';
import { type LoadMove, usefulness } from '@kronos/rules';

/** Reasons after which a host is no destination any more: it takes part in no imbalance. */
const OUT: ReadonlySet<TaskReasonCode | undefined> = new Set<TaskReasonCode>([
  'destination-unknown',
  'host-down',
  'host-disabled',
  'destination-left',
  'destination-unavailable',
]);

/**
 * Why a task's move to an alternate is of no use any more; null: it is of use. Moves that balance are judged on what the hosts carry with
 * the other moves of the plan done. A host is left, a group is whole or a host is empty at any legal destination: pre-flight looks at those.
 */
export function uselessness(state: AggregateState, task: TaskFacts): string | null {
  const { step, destination } = task;
  if (step.phase !== 'spread' || destination === step.to) return null;
  const tasks = [...state.tasks.values()].filter((other) => other.id !== task.id);
  // It makes room for a move that is still to come.
  if (tasks.some((other) => other.end === null && other.step.dependsOn.includes(task.id))) return null;
  const plan = state.plans.get(task.planId);
  if (plan?.loads === undefined) return 'the plan does not say what its hosts carry';
  const later = tasks.filter((other) => (state.plans.get(other.planId)?.sequence ?? 0) >= plan.sequence);
  const others = later.flatMap((other) => {
    const host = other.end === null ? other.destination : other.end.host;
    return host === null || host === other.step.from ? [] : [loadMove(other.step, host)];
  });
  const out = new Set(
    [task, ...tasks].flatMap(({ lastFailure }) =>
      lastFailure !== null && OUT.has(taskCodeOf(lastFailure.reason.code)) ? [lastFailure.destination] : [],
    ),
  );
  const { helps, without, withMove } = usefulness(plan.loads, loadMove(step, destination), others, out);
  if (helps) return null;
  return `a move to ${destination} would not lower the combined imbalance: ${without.toFixed(3)} without it, ${withMove.toFixed(3)} with it`;
}

function loadMove({ from, to: first, alternates, alternateWeights, weights }: StepFacts, to: string): LoadMove {
  const own = to === first ? undefined : alternateWeights?.[alternates.indexOf(to)];
  const each = Object.entries(weights);
  return {
    from,
    to,
    leaves: Object.fromEntries(each.map(([policy, { source }]) => [policy, source])),
    adds: own ?? Object.fromEntries(each.map(([policy, { destination }]) => [policy, destination])),
  };
}
