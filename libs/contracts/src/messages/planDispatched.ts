import { z } from 'zod';
import { count } from '../words.ts';
import { defineEvent } from './define.ts';

/** All tasks of a released plan are on the work queue. */
export const planDispatched = defineEvent({
  type: 'plan.dispatched',
  writers: ['planner'],
  data: z.object({ planId: z.string(), tasks: z.int() }),
  names: { planId: 'id', tasks: 'kept' },
  sentence: (event) => `${count(event.data.tasks, 'task')} of ${event.data.planId} on the work queue`,
});
export type PlanDispatched = z.infer<typeof planDispatched.schema>;
