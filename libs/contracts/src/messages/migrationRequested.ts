import { z } from 'zod';
import { isoTimeSchema } from '../envelope.ts';
import { stepSchema } from '../plans.ts';
import { defineMessage } from './define.ts';

/** A task on `kronos.migrations.<agg>`: one step of a released plan. */
export const migrationRequested = defineMessage({
  type: 'migration.requested',
  // The executor for retries; the restorer for tasks whose work queue was lost.
  writers: ['planner', 'executor', 'restorer'],
  data: stepSchema.omit({ why: true, delaySeconds: true }).extend({
    planId: z.string(),
    /** 1 for the first POST; retries count on. */
    attempt: z.int().min(1),
    /** Destination of this attempt: `to`, or an alternate. */
    destination: z.string(),
    notBefore: isoTimeSchema,
    /** Release + plan_ttl, or the closing of its window if that comes first: not started after this. */
    notAfter: isoTimeSchema,
  }),
  sentence: (event) =>
    `task ${event.data.taskId}, attempt ${event.data.attempt}: ${event.data.serverName} from ${event.data.from} to ${event.data.destination}`,
});
export type MigrationRequested = z.infer<typeof migrationRequested.schema>;
