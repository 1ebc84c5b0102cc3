/** Messages that cannot be read as tasks. */
import { type Actor, iso, type MigrationFailed, messageId } from '@kronos/contracts';
import type { AggregateState, TaskFacts } from '@kronos/projections';
import { reason } from './failure.ts';

export interface DeadMessage {
  readonly aggregate: string;
  /** Sequence of the message on the work queue. */
  readonly sequence: number;
  readonly body: string;
  /** Its problem. */
  readonly problem: string;
}

/**
 * The final result of a message that cannot be read: of the task that it names, if the log has that task waiting; of the
 * message itself, if it names none that the log knows. Null: the task has begun or ended, its own result says how.
 */
export function deadLetterEvent(
  dead: DeadMessage,
  state: AggregateState,
  origin: { readonly by: Actor; readonly nowMs: number },
): MigrationFailed | null {
  const named = namedTask(dead.body);
  const facts = named === null ? undefined : state.tasks.get(named);
  if (facts !== undefined && (facts.slot !== null || facts.end !== null)) return null;
  const about = facts === undefined ? { ...UNKNOWN, taskId: `unreadable-${dead.sequence}` } : attemptOf(facts);
  const { taskId, attempt } = about;
  return {
    type: 'migration.failed',
    version: 1,
    id: messageId.ended(taskId, attempt),
    time: iso(origin.nowMs),
    aggregate: dead.aggregate,
    by: origin.by,
    correlationId: facts === undefined ? taskId : about.planId,
    causationId: null,
    data: {
      ...about,
      errorType: 'DeadLetter',
      reason: reason('unreadable', `message ${dead.sequence} of the work queue is no task: ${dead.problem}`, {
        sequence: dead.sequence,
        body: dead.body.slice(0, 2000),
      }),
      cause: 'kronos',
      retries: attempt - 1,
      retryPending: false,
      next: null,
      hostAtFault: null,
      started: false,
      nova: null,
    },
  };
}

const UNKNOWN = { planId: 'unknown', serverId: 'unknown', attempt: 1, from: 'unknown', destination: 'unknown' };

const attemptOf = ({ id: taskId, planId, step, attempt, destination }: TaskFacts) => ({
  taskId,
  planId,
  serverId: step.serverId,
  attempt,
  from: step.from,
  destination,
});

/** The `data.taskId` of any body; null when it has none. */
function namedTask(body: string): string | null {
  try {
    const parsed: unknown = JSON.parse(body);
    const data = field(parsed, 'data');
    const id = field(data, 'taskId');
    return typeof id === 'string' ? id : null;
  } catch {
    return null;
  }
}

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
