import { z } from 'zod';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';

/** All checks have passed for `verifySeconds`. With `confirm: manual` it waits for a person. */
export const migrationVerified = defineEvent({
  type: 'migration.verified',
  writers: ['executor'],
  data: z.object({ ...attemptOf, host: z.string(), verifySeconds: z.number() }),
  names: { ...attemptNames, host: 'host', verifySeconds: 'kept' },
  sentence: (event, nameOf) =>
    `${nameOf(event.data.serverId)} on ${event.data.host} has passed its checks for ${event.data.verifySeconds} s`,
});
export type MigrationVerified = z.infer<typeof migrationVerified.schema>;
