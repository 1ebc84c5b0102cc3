import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/** A move between cells that waits in VERIFY_RESIZE is to be confirmed, whatever its checks say. */
export const migrationConfirmAsked = defineCommand({
  type: 'migration.confirmAsked',
  addressesAll: true,
  holdsInWhatIf: false,
  data: { taskId: z.string() },
  names: { taskId: 'id' },
  example: { taskId: 'gpu-20260105T000000Z-s1' },
  sentence: (event) => `asked to confirm ${event.data.taskId}${comment(event)}`,
});
