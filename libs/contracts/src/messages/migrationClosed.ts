import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/** The task ends without waiting for Nova any longer. For a task that nothing else can end: what Nova still does is left alone. */
export const migrationClosed = defineCommand({
  type: 'migration.closed',
  addressesAll: true,
  holdsInWhatIf: false,
  data: { taskId: z.string() },
  names: { taskId: 'id' },
  example: { taskId: 'gpu-20260105T000000Z-s1' },
  sentence: (event) => `asked to close ${event.data.taskId}${comment(event)}`,
});
