import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/** Not started: it ends Cancelled. Started: it is aborted as `migration.aborted` asks. */
export const migrationCancelled = defineCommand({
  type: 'migration.cancelled',
  addressesAll: true,
  holdsInWhatIf: false,
  data: { taskId: z.string() },
  names: { taskId: 'id' },
  example: { taskId: 'gpu-20260105T000000Z-s1' },
  sentence: (event) => `asked to cancel ${event.data.taskId}${comment(event)}`,
});
