import { z } from 'zod';
import { reasonSchema } from '../envelope.ts';
import { defineEvent } from './define.ts';
import { drainOf } from './drain.ts';

/** The drain is over, and the host stays as it is: it is not Kronos that disabled it, or somebody changed it since. */
export const hostLeftDisabled = defineEvent({
  type: 'host.leftDisabled',
  writers: ['executor'],
  data: z.object({
    ...drainOf,
    reason: reasonSchema,
    /** As Nova shows it. */
    disabledReason: z.string().nullable(),
  }),
  names: { drainId: 'kept', host: 'host', reason: 'nested', disabledReason: 'text' },
  sentence: (event) => `the drain of ${event.data.host} has ended; the host stays disabled: ${event.data.reason.text}`,
});
