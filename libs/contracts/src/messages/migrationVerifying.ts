import { z } from 'zod';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';

/** Its server has arrived and is in VERIFY_RESIZE: from here on it is to be confirmed or reverted. */
export const migrationVerifying = defineEvent({
  type: 'migration.verifying',
  writers: ['executor'],
  data: z.object({
    ...attemptOf,
    /** The server's host by Nova: a resize names none. */
    host: z.string(),
  }),
  names: { ...attemptNames, host: 'host' },
  sentence: (event, nameOf) =>
    `${nameOf(event.data.serverId)} has arrived on ${event.data.host} and waits to be confirmed (VERIFY_RESIZE)`,
});
export type MigrationVerifying = z.infer<typeof migrationVerifying.schema>;
