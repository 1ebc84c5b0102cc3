import { type Actor, ALL, type AlarmRaised, type AlarmResolved, iso, messageId, timeMs } from '@kronos/contracts';
import type { Alarm } from '@kronos/status';
import { alarmKey, unreadableCauses } from '@kronos/status';

/** The alarms that a check of the installation found, by key; null: it could not be checked. */
export type AlarmsSeen = ReadonlyMap<string, Alarm> | null;

/** The alarms that need a person. @param alarms as `kronos status` judges them */
export function lookOf(alarms: readonly Alarm[]): AlarmsSeen {
  // While NATS cannot be read, the state of other alarms is unknown: none of them may count as over.
  if (alarms.some(({ code }) => unreadableCauses.has(code))) return null;
  return new Map(alarms.filter(({ severity }) => severity === 'alarm').map((one) => [alarmKey(one), one]));
}

/** The record of an alarm: the newest message of its key. */
export type RecordedAlarm = { readonly message: AlarmRaised | AlarmResolved; readonly sequence: number };

export type Transition = {
  readonly message: AlarmRaised | AlarmResolved;
  /** `expectedLastSequence` of its subject: several ledgers see the same, and one of them records it. */
  readonly expected: number;
};

/**
 * The alarms that are raised or over. Two checks in a row must agree: one check may fall between a cause and its
 * remedy. An alarm that is now explained by another one is not over.
 *
 * @param before the check before this one
 */
export function transitions(
  recorded: ReadonlyMap<string, RecordedAlarm>,
  looks: { readonly before: AlarmsSeen; readonly now: AlarmsSeen },
  about: { readonly by: Actor; readonly nowMs: number },
): Transition[] {
  const { before, now } = looks;
  if (before === null || now === null) return [];
  const time = iso(about.nowMs);
  const envelope = (id: string, aggregate: string) => ({
    version: 1 as const,
    id,
    time,
    aggregate,
    by: about.by,
    correlationId: id,
    causationId: null,
  });
  const raised = [...now].flatMap(([key, alarm]): Transition[] => {
    const last = recorded.get(key);
    if (!before.has(key) || last?.message.type === 'alarm.raised') return [];
    const { code, text, remedy, runbook } = alarm;
    return [
      {
        expected: last?.sequence ?? 0,
        message: {
          type: 'alarm.raised',
          ...envelope(messageId.alarm('raised', key, time), aggregateOf(alarm)),
          data: { key, code, about: alarm.about, text, remedy, runbook, explains: [...alarm.explains] },
        },
      },
    ];
  });
  const explained = new Set([...now.values()].flatMap(({ explains }) => explains.map(({ code }) => code as string)));
  const resolved = [...recorded].flatMap(([key, { message, sequence }]): Transition[] => {
    if (message.type !== 'alarm.raised' || now.has(key) || before.has(key) || explained.has(message.data.code))
      return [];
    const { code, text } = message.data;
    return [
      {
        expected: sequence,
        message: {
          type: 'alarm.resolved',
          ...envelope(messageId.alarm('resolved', key, message.time), message.aggregate),
          data: { key, code, about: message.data.about, text, raisedAt: message.time },
        },
      },
    ];
  });
  return [...raised, ...resolved];
}

/** The aggregate that all places of an alarm name; `_all_` where they name none, or several. */
function aggregateOf({ places }: Alarm): string {
  const [first, ...others] = places.map(({ aggregate }) => aggregate);
  return first !== undefined && others.every((one) => one === first) ? first : ALL;
}

/** Send the end of an alert to an Alertmanager for this long: it may have been down. */
const TOLD_OVER_MS = 15 * 60_000;

/** The alerts to send to an Alertmanager now. They are sent repeatedly, because it drops alerts that are not sent again. */
export const current = (recorded: Iterable<RecordedAlarm>, nowMs: number): RecordedAlarm[] =>
  [...recorded].filter(
    ({ message }) => message.type === 'alarm.raised' || nowMs - timeMs(message.time) <= TOLD_OVER_MS,
  );
