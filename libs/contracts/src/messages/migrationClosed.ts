import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/** For a task that nothing else can end. A migration that Nova still works on is aborted first. */
export const migrationClosed = defineCommand({
  type: 'migration.closed',
  addressesAll: true,
  holdsInWhatIf: false,
  data: {
    taskId: z.string(),
    /** It ends within a minute, whatever Nova shows. Absent: when Nova shows that it no longer works on the server. */
    force: z.boolean().optional(),
  },
  names: { taskId: 'id', force: 'kept' },
  example: { taskId: 'gpu-20260105T000000Z-s1' },
  sentence: (event) =>
    `asked to close ${event.data.taskId}${event.data.force === true ? ', whatever Nova shows' : ''}${comment(event)}`,
});
