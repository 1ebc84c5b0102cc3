import { z } from 'zod';
import { attemptNames, settleOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

/** Written before an executor asks Nova to revert. */
export const migrationRevertRequested = defineEvent({
  type: 'migration.revertRequested',
  writers: ['executor'],
  data: z.object(settleOf),
  names: { ...attemptNames, cause: 'kept', reason: 'nested' },
  sentence: (event, nameOf) => `asked Nova to revert ${moveText(event, nameOf)}: ${event.data.reason.text}`,
});
export type MigrationRevertRequested = z.infer<typeof migrationRevertRequested.schema>;
