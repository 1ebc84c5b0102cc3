import { z } from 'zod';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

/**
 * An executor isolates an attempt whose number of deliveries suggests a poison message. Written before it starts, and
 * once more when it has survived; the newest one of an attempt counts.
 */
export const migrationSuspected = defineEvent({
  type: 'migration.suspected',
  writers: ['executor'],
  data: z.object({
    ...attemptOf,
    deliveries: z.int().min(1),
    /** Number of starts in a row without a note of survival, this one included. 0: survived. */
    tries: z.int().min(0),
  }),
  names: { ...attemptNames, deliveries: 'kept', tries: 'kept' },
  sentence: (event, nameOf) =>
    event.data.tries === 0
      ? `${moveText(event, nameOf)} did not crash its executor`
      : `${moveText(event, nameOf)} was delivered ${event.data.deliveries} times: isolation, try ${event.data.tries}`,
});
export type MigrationSuspected = z.infer<typeof migrationSuspected.schema>;
