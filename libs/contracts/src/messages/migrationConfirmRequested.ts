import { z } from 'zod';
import { attemptNames, settleOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

/** Written before an executor asks Nova to confirm: an attempt is confirmed or reverted, never both. */
export const migrationConfirmRequested = defineEvent({
  type: 'migration.confirmRequested',
  writers: ['executor'],
  data: z.object(settleOf),
  names: { ...attemptNames, cause: 'kept', reason: 'nested' },
  sentence: (event, nameOf) => `asked Nova to confirm ${moveText(event, nameOf)}: ${event.data.reason.text}`,
});
export type MigrationConfirmRequested = z.infer<typeof migrationConfirmRequested.schema>;
