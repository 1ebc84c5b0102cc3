/** The messages of the executor. */
import {
  type Actor,
  iso,
  type MigrationAbortRefused,
  type MigrationAbortRequested,
  type MigrationCompleted,
  type MigrationConfirmRequested,
  type MigrationFailed,
  type MigrationObserved,
  type MigrationRequested,
  type MigrationRevertRequested,
  type MigrationSkipped,
  type MigrationStarted,
  type MigrationSuspected,
  type MigrationVerified,
  type MigrationVerifying,
  messageId,
  type StoredEvent,
} from '@kronos/contracts';
import { OVERDUE } from './deadline.ts';
import type { AbortRefusal, AttemptNames, CellStart, Ended, Next, Settle, Stop, Task } from './taskFacts.ts';

/** The author of an event, and the task on whose behalf it writes. */
export interface Origin {
  readonly by: Actor;
  readonly correlationId: string;
  /** ms since the epoch */
  readonly nowMs: number;
}

const attemptOf = (task: Task): AttemptNames => ({
  taskId: task.taskId,
  planId: task.planId,
  serverId: task.serverId,
  attempt: task.attempt,
  from: task.from,
  destination: task.destination,
});

const envelope = (task: Task, { by, correlationId, nowMs }: Origin) => ({
  version: 1 as const,
  time: iso(nowMs),
  aggregate: task.aggregate,
  by,
  correlationId,
});

export const startedEvent = (
  task: Task,
  origin: Origin,
  facts: { readonly newestMigrationId: number; readonly forced: boolean; readonly cell?: CellStart },
): MigrationStarted => ({
  type: 'migration.started',
  ...envelope(task, origin),
  id: messageId.started(task.taskId, task.attempt),
  causationId: messageId.requested(task.taskId, task.attempt),
  data: {
    ...attemptOf(task),
    groups: task.groups.map((group) => group.id),
    newestMigrationId: facts.newestMigrationId,
    forced: facts.forced,
    ramMb: task.ramMb,
    diskGb: task.diskGb,
    ...(facts.cell === undefined ? {} : { cell: startOf(facts.cell) }),
  },
});

const startOf = ({ method, oldFlavor, newFlavor, before, knownMigrations }: CellStart) => ({
  method,
  oldFlavor,
  newFlavor,
  before,
  knownMigrations: [...knownMigrations],
});

export const verifyingEvent = (task: Task, origin: Origin, host: string): MigrationVerifying => ({
  type: 'migration.verifying',
  ...envelope(task, origin),
  id: messageId.verifying(task.taskId, task.attempt),
  causationId: messageId.started(task.taskId, task.attempt),
  data: { ...attemptOf(task), host },
});

export const verifiedEvent = (
  task: Task,
  origin: Origin,
  { host, verifySeconds }: { readonly host: string; readonly verifySeconds: number },
): MigrationVerified => ({
  type: 'migration.verified',
  ...envelope(task, origin),
  id: messageId.verified(task.taskId, task.attempt),
  causationId: messageId.verifying(task.taskId, task.attempt),
  data: { ...attemptOf(task), host, verifySeconds },
});

/** That Nova is asked to confirm or to revert. */
export const settleEvent = (
  task: Task,
  origin: Origin,
  { act, cause, reason }: Settle,
): MigrationConfirmRequested | MigrationRevertRequested => ({
  type: act === 'confirm' ? 'migration.confirmRequested' : 'migration.revertRequested',
  ...envelope(task, origin),
  id: messageId.settleRequested(task.taskId, task.attempt),
  causationId: messageId.verifying(task.taskId, task.attempt),
  data: { ...attemptOf(task), cause, reason },
});

export const observedEvent = (
  task: Task,
  origin: Origin,
  facts: { readonly migrationId: number; readonly requestId: string | null; readonly migrationUuid?: string | null },
): MigrationObserved => ({
  type: 'migration.observed',
  ...envelope(task, origin),
  id: messageId.observed(task.taskId, task.attempt),
  causationId: messageId.started(task.taskId, task.attempt),
  data: { ...attemptOf(task), ...facts },
});

export const suspectedEvent = (
  task: Task,
  origin: Origin,
  { trial, ...facts }: { readonly deliveries: number; readonly trial: number; readonly tries: number },
): MigrationSuspected => ({
  type: 'migration.suspected',
  ...envelope(task, origin),
  id: messageId.suspected(task.taskId, task.attempt, `${facts.deliveries}.${trial}`, facts.tries),
  causationId: messageId.requested(task.taskId, task.attempt),
  data: { ...attemptOf(task), ...facts },
});

export const abortRequestedEvent = (task: Task, origin: Origin, stop: Stop): MigrationAbortRequested => ({
  type: 'migration.abortRequested',
  ...envelope(task, origin),
  id: messageId.abortRequested(task.taskId, task.attempt),
  causationId: messageId.started(task.taskId, task.attempt),
  data: {
    ...attemptOf(task),
    cause: stop.cause,
    text: stop.cause === 'operator' ? 'an operator asked for it' : stop.text,
    limitMs: stop.cause === 'operator' ? null : stop.limitMs,
  },
});

export const abortRefusedEvent = (
  task: Task,
  origin: Origin,
  { migrationId, refusal }: { readonly migrationId: number; readonly refusal: AbortRefusal },
): MigrationAbortRefused => ({
  type: 'migration.abortRefused',
  ...envelope(task, origin),
  id: messageId.abortRefused(task.taskId, task.attempt),
  causationId: messageId.abortRequested(task.taskId, task.attempt),
  data: { ...attemptOf(task), migrationId, ...refusal },
});

/** The stop that an executor before this one has decided on; null when the events name none. */
export async function stopOf(
  events: AsyncIterable<Pick<StoredEvent, 'event'>>,
  { taskId, attempt }: Pick<Task, 'taskId' | 'attempt'>,
): Promise<Stop | null> {
  for await (const { event } of events) {
    if (event.type !== 'migration.abortRequested') continue;
    if (event.data.taskId !== taskId || event.data.attempt !== attempt) continue;
    const { cause, text, limitMs } = event.data;
    if (cause === 'operator') return { cause };
    const known = OVERDUE.find((name) => name === cause) ?? 'deadline';
    return { cause: known, text, limitMs: limitMs ?? 0 };
  }
  return null;
}

/** The one outcome of an attempt. */
export function endedEvent(
  task: Task,
  origin: Origin,
  ended: Ended,
): MigrationCompleted | MigrationFailed | MigrationSkipped {
  const started = ended.type === 'failed' ? ended.started : ended.type === 'completed' && ended.outcome === 'migrated';
  const { taskId, attempt } = task;
  const head = {
    ...envelope(task, origin),
    id: messageId.ended(taskId, attempt),
    causationId: started ? messageId.started(taskId, attempt) : messageId.requested(taskId, attempt),
  };
  const data = { ...attemptOf(task), retries: attempt - 1 };
  switch (ended.type) {
    case 'completed': {
      const { type: _, ...told } = ended;
      return { type: 'migration.completed', ...head, data: { ...data, ...told } };
    }
    case 'skipped':
      return { type: 'migration.skipped', ...head, data: { ...attemptOf(task), reason: ended.reason } };
    case 'failed': {
      const { type: _, next, ...told } = ended;
      const retry = next === null ? null : nextOf(next);
      return {
        type: 'migration.failed',
        ...head,
        data: { ...data, ...told, retryPending: next !== null, next: retry },
      };
    }
  }
}

const nextOf = ({ attempt, destination, notBeforeMs }: Next) => ({ attempt, destination, notBefore: iso(notBeforeMs) });

/** The task of the next attempt. */
export function nextRequest(task: Task, origin: Origin, next: Next): MigrationRequested {
  const { aggregate: _, ...data } = task;
  return {
    type: 'migration.requested',
    ...envelope(task, origin),
    id: messageId.requested(task.taskId, next.attempt),
    causationId: messageId.ended(task.taskId, task.attempt),
    data: { ...data, ...nextOf(next) },
  };
}
