import { z } from 'zod';
import { cellResultSchema, novaFactsSchema } from '../attempts.ts';
import { isoTimeSchema, reasonSchema } from '../envelope.ts';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

/** The code of the reason with which a task ends that an operator closed. Whether the operator's `migration.closed` is on the log is for the fold to judge. */
export const CLOSED = 'closed';

const data = z.object({
  ...attemptOf,
  /** A reader meets types of later versions too: unknown ones quarantine, to be safe. */
  errorType: z.string(),
  reason: reasonSchema,
  /**
   * The party at fault, a key of `parties` in libs/facts: `server`, `destination`, `scheduler`, `operator` and others. Absent: written
   * by Kronos 0.1, or by a planner.
   */
  cause: z.string().optional(),
  retries: z.int().min(0),
  /** Another attempt follows; else this is the task's one final result. */
  retryPending: z.boolean(),
  /** Destination and earliest time of the next attempt; null when final. */
  next: z.object({ attempt: z.int(), destination: z.string(), notBefore: isoTimeSchema }).nullable(),
  /** The destination that caused the failure, for the host breaker; null when none did. */
  hostAtFault: z.string().nullable(),
  /** False when this attempt never got as far as `migration.started`. */
  started: z.boolean(),
  nova: novaFactsSchema.nullable(),
  /** Of a move between cells that was started. */
  cell: cellResultSchema.optional(),
});

const plannerMayEnd = ({ started, reason, retryPending, errorType, hostAtFault }: z.infer<typeof data>): boolean =>
  (!started || reason.code === CLOSED) && !retryPending && errorType === 'Cancelled' && hostAtFault === null;

/** Whether the move ended because nobody wants it any more: nothing failed. */
export const isCancelled = ({ data }: { readonly data: { readonly errorType: string } }): boolean =>
  data.errorType === 'Cancelled';

export const migrationFailed = defineEvent({
  type: 'migration.failed',
  // The planner only for tasks that no executor ended, see `wrongAuthor`.
  writers: ['executor', 'planner'],
  data,
  names: {
    ...attemptNames,
    errorType: 'kept',
    reason: 'nested',
    cause: 'kept',
    retries: 'kept',
    retryPending: 'kept',
    next: 'nested',
    hostAtFault: 'host',
    started: 'kept',
    nova: 'nested',
    cell: 'nested',
  },
  misuse: ({ by, data }) =>
    by.service !== 'planner' || plannerMayEnd(data)
      ? null
      : 'the planner may only end tasks that were never started or that an operator closed, as Cancelled, and this result says something else',
  sentence: (event, nameOf) =>
    `attempt ${event.data.attempt}: ${moveText(event, nameOf)} ${isCancelled(event) ? 'was cancelled' : `failed, ${event.data.errorType}`}: ${event.data.reason.text}${
      event.data.next === null ? '' : `; next on ${event.data.next.destination}`
    }`,
});
export type MigrationFailed = z.infer<typeof migrationFailed.schema>;
