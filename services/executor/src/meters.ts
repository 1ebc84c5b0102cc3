import type { MoveEnd } from '@kronos/contracts';
import type { Instruments } from '@kronos/telemetry';
import type { Ended, Task } from './taskFacts.ts';
import type { TaskState } from './taskStages.ts';

/** The counters of the executor. */
export interface TaskMeters {
  delivered(aggregate: string, deliveries: number): void;
  lost(aggregate: string): void;
  heldBack(task: Task, code: string): void;
  moved(task: Task, before: TaskState, after: TaskState): void;
  ended(task: Task, ended: Ended, end: MoveEnd): void;
  abortRefused(task: Task): void;
  /** A message that is no task, recorded as a result: nobody knows its phase. */
  deadLettered(aggregate: string): void;
}

export function taskMeters(metrics: Instruments): TaskMeters {
  /** Task -> bytes that its migration still has to copy. */
  const remaining = new Map<string, { readonly aggregate: string; readonly bytes: number }>();
  const showRemaining = (aggregate: string): void => {
    const ofAggregate = [...remaining.values()].filter((entry) => entry.aggregate === aggregate);
    const bytes = ofAggregate.reduce((sum, entry) => sum + entry.bytes, 0);
    metrics.migrationRemaining.set(bytes, { aggregate });
  };
  return {
    delivered: (aggregate, deliveries) =>
      metrics.tasksReceived.add(1, { aggregate, delivery: deliveries === 1 ? 'first' : 'redelivered' }),
    lost: (aggregate) => metrics.deliveriesLost.add(1, { aggregate }),
    heldBack: ({ aggregate }, reason) => metrics.tasksHeldBack.add(1, { aggregate, reason }),
    moved(task, before, after) {
      const { aggregate, phase, taskId } = task;
      const { stage } = after;
      if (before.stage.at === 'claiming' && stage.at === 'posting')
        metrics.migrationsStarted.add(1, { aggregate, phase, forced: stage.forced ? 'true' : 'false' });
      const bytes = stage.at === 'following' ? (stage.run.watch?.best?.remainingBytes ?? null) : null;
      if (bytes === null ? !remaining.delete(taskId) : remaining.get(taskId)?.bytes === bytes) return;
      if (bytes !== null) remaining.set(taskId, { aggregate, bytes });
      showRemaining(aggregate);
    },
    ended({ aggregate, phase }, ended, end) {
      if (end !== 'plain') metrics.migrationsWarned.add(1, { aggregate, phase, end });
      const failed = ended.type === 'failed';
      const retried = failed && ended.next !== null;
      const outcome = retried ? 'retried' : ended.type;
      metrics.migrationsEnded.add(1, { aggregate, phase, outcome, error_type: failed ? ended.errorType : 'none' });
      if (ended.type === 'skipped' || ended.nova === null) return;
      const { totalMs, queuedMs, memoryBytes } = ended.nova;
      if (totalMs !== null) metrics.migrationDuration.record(totalMs / 1000, { aggregate, outcome: ended.type });
      if (queuedMs !== null) metrics.migrationQueued.record(queuedMs / 1000, { aggregate });
      if (memoryBytes !== null) metrics.migrationBytes.add(memoryBytes, { aggregate });
    },
    abortRefused: ({ aggregate }) => metrics.abortsRefused.add(1, { aggregate }),
    deadLettered: (aggregate) =>
      metrics.migrationsEnded.add(1, { aggregate, phase: 'unknown', outcome: 'failed', error_type: 'DeadLetter' }),
  };
}
