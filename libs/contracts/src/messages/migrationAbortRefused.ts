import { z } from 'zod';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

/** Nova refused to abort a migration. The executor keeps following it; readers know that an abort does not end it. */
export const migrationAbortRefused = defineEvent({
  type: 'migration.abortRefused',
  writers: ['executor'],
  data: z.object({
    ...attemptOf,
    migrationId: z.int(),
    /** HTTP status of Nova's answer. */
    status: z.int(),
    /** Nova's own words. */
    text: z.string(),
  }),
  names: { ...attemptNames, migrationId: 'kept', status: 'kept', text: 'sentence' },
  sentence: (event, nameOf) =>
    `Nova refused to abort ${moveText(event, nameOf)} with ${event.data.status}: ${event.data.text}`,
});
export type MigrationAbortRefused = z.infer<typeof migrationAbortRefused.schema>;
