import { z } from 'zod';
import { defineEvent } from './define.ts';
import { drainOf } from './drain.ts';

/** The host takes no more servers: by Kronos, or because somebody had disabled it before. */
export const hostDisabled = defineEvent({
  type: 'host.disabled',
  writers: ['executor'],
  data: z.object({
    ...drainOf,
    /** False: it was disabled already. Kronos will not enable it. */
    byKronos: z.boolean(),
    /** As Nova shows it. */
    disabledReason: z.string().nullable(),
  }),
  names: { drainId: 'kept', host: 'host', byKronos: 'kept', disabledReason: 'text' },
  sentence: (event) =>
    event.data.byKronos
      ? `disabled ${event.data.host}: its VMs leave`
      : `${event.data.host} was disabled already (${event.data.disabledReason ?? 'no reason given'}): its VMs leave`,
});
