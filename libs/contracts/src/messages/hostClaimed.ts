import { z } from 'zod';
import { defineEvent } from './define.ts';
import { actOf } from './drain.ts';

/**
 * An executor alone may change the service of the host from here on. The request follows within 10 s or is not sent; a
 * successor waits until it can no longer be sent and then reads its effect.
 */
export const hostClaimed = defineEvent({
  type: 'host.claimed',
  writers: ['executor'],
  data: z.object(actOf),
  names: { drainId: 'kept', host: 'host', act: 'kept', attempt: 'kept' },
  sentence: (event) => `attempt ${event.data.attempt} to ${event.data.act} ${event.data.host}`,
});
