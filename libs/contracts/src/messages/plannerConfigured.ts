import { z } from 'zod';
import { engineOptionsSchema } from '../engine.ts';
import { defineEvent } from './define.ts';

/** The options that the decisions after this event use. */
export const plannerConfigured = defineEvent({
  type: 'planner.configured',
  writers: ['planner'],
  data: z.object({
    plannerVersion: z.string(),
    optionsDigest: z.string(),
    options: engineOptionsSchema,
    /**
     * The log's last sequence when the planner that writes this started: of planners with different options, the one that
     * started last wins. Planners before 0.2 do not state it.
     */
    startedAfter: z.int().nonnegative().optional(),
  }),
  names: { plannerVersion: 'kept', optionsDigest: 'kept', options: 'kept', startedAfter: 'kept' },
  sentence: (event) =>
    `planner ${event.data.plannerVersion} decides from now on with options ${event.data.optionsDigest}`,
});
export type PlannerConfigured = z.infer<typeof plannerConfigured.schema>;
