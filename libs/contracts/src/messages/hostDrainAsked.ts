import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/**
 * The host is to be emptied: an executor disables its nova-compute service, and the planner evacuates it. `commandId` is the
 * id of the drain.
 */
export const hostDrainAsked = defineCommand({
  type: 'host.drainAsked',
  addressesAll: false,
  holdsInWhatIf: false,
  data: { host: z.string().min(1) },
  names: { host: 'host' },
  example: { host: 'cmp12' },
  sentence: (event) => `asked to drain ${event.data.host}${comment(event)}`,
});
