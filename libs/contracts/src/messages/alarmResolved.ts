import { z } from 'zod';
import { alarm } from '../alarms.ts';
import { isoTimeSchema } from '../envelope.ts';
import { defineMessage } from './define.ts';

/** An alarm has ended. */
export const alarmResolved = defineMessage({
  type: 'alarm.resolved',
  writers: ['ledger'],
  data: z.object({ ...alarm, raisedAt: isoTimeSchema }),
  sentence: (event) => `resolved: ${event.data.about}: ${event.data.text}`,
});
export type AlarmResolved = z.infer<typeof alarmResolved.schema>;
