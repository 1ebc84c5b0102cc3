import { z } from 'zod';
import { defineEvent } from './define.ts';
import { drainOf } from './drain.ts';

/** The host is enabled, and its drain is over. */
export const hostEnabled = defineEvent({
  type: 'host.enabled',
  writers: ['executor'],
  data: z.object({
    ...drainOf,
    /** False: somebody else enabled it, which ends a drain too. */
    byKronos: z.boolean(),
  }),
  names: { drainId: 'kept', host: 'host', byKronos: 'kept' },
  sentence: (event) =>
    event.data.byKronos
      ? `enabled ${event.data.host}: its drain has ended`
      : `somebody else enabled ${event.data.host}: its drain has ended`,
});
