import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

export const migrationAborted = defineCommand({
  type: 'migration.aborted',
  addressesAll: true,
  holdsInWhatIf: false,
  data: { taskId: z.string() },
  names: { taskId: 'id' },
  example: { taskId: 'gpu-20260105T000000Z-s1' },
  sentence: (event) => `asked to abort ${event.data.taskId}${comment(event)}`,
});
