import type { Reason } from '@kronos/contracts';
import { sharedReasons as shared } from './sharedReasons.ts';

/** Why a released task waits before its start, by code. The first reason that holds counts. */
export const waitReasons = {
  'unreadable-event': shared['unreadable-event'],
  clock: shared.clock,
  paused: shared.paused,
  'not-due': 'The start is due later: a delay of its step, or the pause before another attempt.',
  dependency: 'A move that the task depends on has not completed.',
  'cells-off': shared['cells-off'],
  'server-moving': 'Another move of the VM runs.',
  max_concurrent_migrations: 'As many moves run in the aggregate as the limit allows.',
  max_outbound_per_host: 'As many moves leave the source as the limit allows.',
  max_inbound_per_host: 'As many moves reach the destination as the limit allows.',
  max_concurrent_per_group: 'As many members of a server group move as the limit allows.',
} as const;
export type WaitReasonCode = keyof typeof waitReasons;

/** Why a drain leaves its host disabled when it ends, by code. */
export const drainReasons = {
  'not-ours': 'The host was disabled before the drain, and not by Kronos.',
  changed: 'Somebody changed the reason with which Kronos disabled the host.',
  'forced-down': 'Somebody forced the service of the host down.',
} as const;
export type DrainReasonCode = keyof typeof drainReasons;

/** Why a planner does not decide a snapshot, by code: the label `reason` of kronos_snapshots_not_decided_total. */
export const snapshotReasons = {
  'record-only': shared['record-only'],
  'already-decided': 'The snapshot was decided before, or a later one was.',
  'clock-skew': "The scorer's clock is ahead of the NATS server's by more than max_clock_skew.",
  'stored-late': 'The snapshot was stored later than its time by more than max_clock_skew.',
  clock: shared.clock,
  'too-old': 'The snapshot is older than two intervals.',
  'unreadable-snapshot': 'The message of the snapshot cannot be read, or the snapshot of a request is no longer kept.',
  'other-log': 'The snapshot, or the planner, belongs to another log.',
  'other-options': 'Another planner, which started later, has other options for the aggregate.',
  'lost-race': 'Another planner decided first.',
  'log-full': 'The event log is full.',
  error: 'The decision failed: the log of the planner says why.',
} as const;
export type SnapshotReasonCode = keyof typeof snapshotReasons;

/** Why an executor ends its work on a task, by code. */
export const releaseReasons = {
  ended: 'The outcome is on the log.',
  'already-ended': 'The log had the outcome of the attempt before.',
  'unknown-task': 'No released plan on the log has the task and the attempt.',
  'retry-pending': 'The next attempt is on the work queue.',
  'handed-over': 'The executor stops, and another one continues the task.',
  requeued: 'The task waits on the work queue.',
  suspected: 'The task crashed the executors that worked on it, and is tried again later.',
} as const;
export type ReleaseReasonCode = keyof typeof releaseReasons;

/** A reason with a code of one list. */
export type ReasonOf<C extends string> = Reason & { readonly code: C };
