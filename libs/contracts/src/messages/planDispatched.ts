import { z } from 'zod';
import { count } from '../words.ts';
import { defineEvent } from './define.ts';

/** All tasks of a released plan are on the work queue. */
export const planDispatched = defineEvent({
  type: 'plan.dispatched',
  writers: ['planner'],
  data: z.object({ planId: z.string(), tasks: z.int() }),
  names: { planId: 'id', tasks: 'kept' },
  sentence: (event) => `handed ${count(event.data.tasks, 'move')} of ${event.data.planId} to the executors`,
});
export type PlanDispatched = z.infer<typeof planDispatched.schema>;
