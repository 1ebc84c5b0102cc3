import { z } from 'zod';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

/** Written before an executor asks Nova to abort a migration: a later follower knows why it ends. */
export const migrationAbortRequested = defineEvent({
  type: 'migration.abortRequested',
  writers: ['executor'],
  data: z.object({
    ...attemptOf,
    /** `operator`, `queue`, `deadline`, `no-progress`, `hard-timeout`, or a word that a later version adds. */
    cause: z.string(),
    text: z.string(),
    /** The limit that was exceeded, in milliseconds; null when no limit is the cause. */
    limitMs: z.number().nullable(),
  }),
  names: { ...attemptNames, cause: 'kept', text: 'sentence', limitMs: 'kept' },
  sentence: (event, nameOf) => `asked Nova to abort ${moveText(event, nameOf)}: ${event.data.text}`,
});
export type MigrationAbortRequested = z.infer<typeof migrationAbortRequested.schema>;
