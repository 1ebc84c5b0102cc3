import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/** A move between cells is to be reverted as soon as Nova allows it. */
export const migrationRevertAsked = defineCommand({
  type: 'migration.revertAsked',
  addressesAll: true,
  holdsInWhatIf: false,
  data: { taskId: z.string() },
  names: { taskId: 'id' },
  example: { taskId: 'gpu-20260105T000000Z-s1' },
  sentence: (event) => `asked to revert ${event.data.taskId}${comment(event)}`,
});
