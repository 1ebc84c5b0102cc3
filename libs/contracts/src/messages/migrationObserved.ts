import { z } from 'zod';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';

/** Nova's ids of the migration that the attempt started. */
export const migrationObserved = defineEvent({
  type: 'migration.observed',
  writers: ['executor'],
  data: z.object({
    ...attemptOf,
    migrationId: z.int().nullable(),
    requestId: z.string().nullable(),
    /** The same in both cells, while the id is counted per cell. Absent: of a live migration. */
    migrationUuid: z.string().nullable().optional(),
  }),
  names: { ...attemptNames, migrationId: 'kept', requestId: 'request', migrationUuid: 'uuid' },
  sentence: (event) =>
    `Nova calls it migration ${event.data.migrationId ?? '(unknown)'}, request ${event.data.requestId ?? '(unknown)'}`,
});
export type MigrationObserved = z.infer<typeof migrationObserved.schema>;
