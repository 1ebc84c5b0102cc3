import { z } from 'zod';
import { reasonSchema } from '../envelope.ts';
import { clause } from '../phrases.ts';
import { defineEvent } from './define.ts';

/** A plan that waits for approval lost its reason, by the snapshot: it is over, and no cooldown follows. */
export const planWithdrawn = defineEvent({
  type: 'plan.withdrawn',
  writers: ['planner'],
  data: z.object({ planId: z.string(), snapshotId: z.string(), reason: reasonSchema }),
  names: { planId: 'id', snapshotId: 'id', reason: 'nested' },
  sentence: (event) => `withdrew ${event.data.planId}: ${clause(event.data.reason.text)}`,
});
export type PlanWithdrawn = z.infer<typeof planWithdrawn.schema>;
