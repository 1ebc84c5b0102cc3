import { z } from 'zod';
import { serverBeforeSchema } from '../attempts.ts';
import { cellMethodSchema } from '../plans.ts';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

/** An attempt holds a slot from here to its end. The POST follows within 10 s or is not sent. */
export const migrationStarted = defineEvent({
  type: 'migration.started',
  writers: ['executor'],
  data: z.object({
    ...attemptOf,
    groups: z.array(z.string()),
    /** Newest Nova migration id known for this server: only a newer one is this attempt's. 0: none. */
    newestMigrationId: z.int().min(0),
    /** The scheduler was bypassed (`[executor] force`). */
    forced: z.boolean(),
    ramMb: z.number(),
    diskGb: z.number(),
    /** Of a move between cells: how, and the server as it was, which it must be again afterwards. */
    cell: z
      .object({
        method: cellMethodSchema,
        oldFlavor: z.string().nullable(),
        newFlavor: z.string().nullable(),
        before: serverBeforeSchema,
        /** Uuids of earlier cold migrations and resizes of the server: ids are counted per cell, so only another uuid is this attempt's. */
        knownMigrations: z.array(z.string()),
      })
      .optional(),
  }),
  names: {
    ...attemptNames,
    groups: 'nested',
    newestMigrationId: 'kept',
    forced: 'kept',
    ramMb: 'kept',
    diskGb: 'kept',
    cell: 'nested',
  },
  sentence: (event, nameOf) =>
    `attempt ${event.data.attempt}: ${moveText(event, nameOf)} started${event.data.forced ? ', forced past the scheduler' : ''}`,
});
export type MigrationStarted = z.infer<typeof migrationStarted.schema>;
