import { z } from 'zod';
import { alarm } from '../alarms.ts';
import { defineMessage } from './define.ts';

/**
 * A new alarm of `kronos status`, on `kronos.alarms.<key>`. For people; no decision reads it. `aggregate` is the aggregate
 * of the alarm, or `_all_`.
 */
export const alarmRaised = defineMessage({
  type: 'alarm.raised',
  writers: ['ledger'],
  data: z.object({
    ...alarm,
    remedy: z.string(),
    /** `docs/runbook.md#section` */
    runbook: z.string(),
    /** Consequences of the same cause. */
    explains: z.array(z.object({ code: z.string(), about: z.string(), text: z.string() })),
  }),
  sentence: (event) => `${event.data.about}: ${event.data.text}`,
});
export type AlarmRaised = z.infer<typeof alarmRaised.schema>;
