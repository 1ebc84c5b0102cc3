import { z } from 'zod';
import { isoTimeSchema, message } from './envelope.ts';

/** An alarm for people. `key` identifies its cause, and its place when several places can have that cause. */
const alarm = {
  key: z.string().min(1),
  /** A cause of `kronos status`. */
  code: z.string(),
  /** The place, as text. */
  about: z.string(),
  text: z.string(),
};

/**
 * A new alarm of `kronos status`, on `kronos.alarms.<key>`. For people; no decision reads it. `aggregate` is the aggregate
 * of the alarm, or `_all_`.
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

/** An alarm has ended. */
export const alarmResolvedSchema = message('alarm.resolved', 1, z.object({ ...alarm, raisedAt: isoTimeSchema }));
export type AlarmResolved = z.infer<typeof alarmResolvedSchema>;
