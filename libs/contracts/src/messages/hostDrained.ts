import { z } from 'zod';
import { defineEvent } from './define.ts';
import { drainOf } from './drain.ts';

/** Nova has no server on the host any more: the drain has reached its end. The host stays disabled. */
export const hostDrained = defineEvent({
  type: 'host.drained',
  writers: ['executor'],
  data: z.object(drainOf),
  names: { drainId: 'kept', host: 'host' },
  sentence: (event) => `${event.data.host} is drained: no VM is left on it`,
});
