import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/** For a task that nothing else can end: it ends within a minute, whatever Nova answers. A migration that Nova still works on is aborted first. */
export const migrationClosed = defineCommand({
  type: 'migration.closed',
  addressesAll: true,
  holdsInWhatIf: false,
  data: { taskId: z.string() },
  names: { taskId: 'id' },
  example: { taskId: 'gpu-20260105T000000Z-s1' },
  sentence: (event) => `asked to close ${event.data.taskId}${comment(event)}`,
});
