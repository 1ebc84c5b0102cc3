import type { Clock } from '@kronos/clock';
import { type Actor, subject } from '@kronos/contracts';
import { AppendConflict, type EventLog, type TaskDelivery, type TaskOutcome } from '@kronos/eventlog';
import type { Logger } from '@kronos/telemetry';
import { deadLetterEvent } from './deadLetter.ts';
import type { LogReader } from './logReader.ts';
import type { TaskMeters } from './meters.ts';

export interface DeadLetterDeps {
  readonly log: Pick<EventLog, 'append'>;
  readonly reader: LogReader;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly meters: Pick<TaskMeters, 'deadLettered'>;
}

/** Records that a message is no task; then it leaves the queue. */
export async function recordDeadLetter(
  { log, reader, by, clock, logger, meters }: DeadLetterDeps,
  delivery: TaskDelivery,
  problem: string,
  body: string,
): Promise<TaskOutcome> {
  const { aggregate, sequence, lost } = delivery;
  const dead = { aggregate, sequence, body, problem };
  while (!lost.aborted) {
    const at = await reader.refresh(aggregate);
    const origin = { by, nowMs: clock.read().wall };
    const event = deadLetterEvent(dead, at.state, origin);
    logger.error(
      { aggregate, sequence, problem, recorded: event?.data.taskId ?? null },
      'a message of the work queue is not a task',
    );
    if (event === null) return { kind: 'dead' };
    try {
      await log.append(event, { expectedLastSequence: at.expectedOn(subject('results', aggregate)) });
      meters.deadLettered(aggregate);
      return { kind: 'dead' };
    } catch (error) {
      if (!(error instanceof AppendConflict)) throw error;
    }
  }
  return { kind: 'handOver' };
}
