/** One delivery of one task, as the parts of its run share it. */
import type { Clock } from '@kronos/clock';
import type { Actor, MigrationRequested } from '@kronos/contracts';
import type { EventLog, TaskDelivery } from '@kronos/eventlog';
import type { Logger } from '@kronos/telemetry';
import type { Tracer } from '@opentelemetry/api';
import type { StartBoard } from './board.ts';
import type { LogReader } from './logReader.ts';
import type { TaskMeters } from './meters.ts';
import type { TaskOptions } from './options.ts';
import type { CheckedCloud } from './preflight.ts';
import type { CheckOptions } from './preflightRules.ts';
import type { Task } from './taskFacts.ts';
import type { Trials } from './trials.ts';

export interface RunDeps {
  readonly log: Pick<EventLog, 'append' | 'replay'>;
  readonly reader: LogReader;
  readonly board: StartBoard;
  readonly trials: Trials;
  readonly cloud: CheckedCloud;
  /** As the configuration and the log stand now. */
  readonly checkOptions: (task: Task) => CheckOptions;
  readonly options: TaskOptions;
  /** Aborted when an operator closes the task with force. */
  readonly forced: AbortSignal;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly meters: TaskMeters;
}

export interface DeliveredTask {
  readonly task: Task;
  readonly message: MigrationRequested;
  readonly delivery: TaskDelivery;
  readonly deps: RunDeps;
  /** The names of the task in log lines. */
  readonly about: Readonly<Record<string, unknown>>;
}

export function deliveredTask(message: MigrationRequested, delivery: TaskDelivery, deps: RunDeps): DeliveredTask {
  const task: Task = { ...message.data, aggregate: message.aggregate };
  const { aggregate, taskId, attempt, serverId, from, destination } = task;
  return { task, message, delivery, deps, about: { aggregate, taskId, attempt, serverId, from, destination } };
}

/** The delivery was given up: nothing more is done for it. */
export class Lost extends Error {}
