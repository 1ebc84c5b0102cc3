import { z } from 'zod';
import { isoTimeSchema, message } from './envelope.ts';

/** An alarm as people read it. `key` identifies the alarm by its cause, and by its place where several places can have that cause. */
const alarm = {
  key: z.string().min(1),
  /** A cause of `kronos status`. */
  code: z.string(),
  /** Where, in words. */
  about: z.string(),
  text: z.string(),
};

/**
 * An alarm of `kronos status` that is there and was not before, on `kronos.alarms.<key>`. For people; no decision reads it.
 * `aggregate` is the one that the alarm is about, or `_all_`.
 */
export const alarmRaisedSchema = message(
  'alarm.raised',
  1,
  z.object({
    ...alarm,
    remedy: z.string(),
    /** `docs/runbook.md#section` */
    runbook: z.string(),
    /** Consequences of the same cause. */
    explains: z.array(z.object({ code: z.string(), about: z.string(), text: z.string() })),
  }),
);
export type AlarmRaised = z.infer<typeof alarmRaisedSchema>;

/** An alarm that is no longer there. */
export const alarmResolvedSchema = message('alarm.resolved', 1, z.object({ ...alarm, raisedAt: isoTimeSchema }));
export type AlarmResolved = z.infer<typeof alarmResolvedSchema>;
