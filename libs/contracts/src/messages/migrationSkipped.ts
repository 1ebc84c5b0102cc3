import { z } from 'zod';
import { reasonSchema } from '../envelope.ts';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

/** The executor's dry run: pre-flight passed for real, nothing was asked of Nova. */
export const migrationSkipped = defineEvent({
  type: 'migration.skipped',
  writers: ['executor'],
  data: z.object({ ...attemptOf, reason: reasonSchema }),
  names: { ...attemptNames, reason: 'nested' },
  sentence: (event, nameOf) => `${moveText(event, nameOf)} skipped: ${event.data.reason.text}`,
});
export type MigrationSkipped = z.infer<typeof migrationSkipped.schema>;
