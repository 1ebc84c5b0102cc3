import { createHash } from 'node:crypto';
import { ALL, type AlarmRaised, type AlarmResolved, iso, type Message, sentence, timeMs } from '@kronos/contracts';
import { cloudEvent } from '@kronos/eventlog';

/** One thing that people are told. */
export type Notice = {
  /** The same for every attempt. Letters, digits and `-` alone, because it becomes a header. */
  readonly id: string;
  /** The option `types` of a sink selects by it: the type of an event, or `alarm.CAUSE`. */
  readonly topic: string;
  /** The aggregate, or `_all_`. */
  readonly aggregate: string;
  readonly timeMs: number;
  /** The author: `planner planner-1`. */
  readonly by: string;
  /** In one sentence. */
  readonly text: string;
  readonly alarm: AlarmRaised | AlarmResolved | null;
  /** Attributes of the CloudEvent, and its data. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly data: unknown;
};

/** A part of a header, from whatever text. */
const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 24);

/**
 * @param place the stream and the sequence that it has there, for the CloudEvents extension `sequence`
 * @param nameOf the name of a server by its uuid, as the sentence has it
 */
export function noticeOf(
  message: Message,
  place: { readonly stream: string; readonly sequence: number },
  nameOf: (serverId: string) => string = (id) => id,
): Notice {
  const alarm = message.type === 'alarm.raised' || message.type === 'alarm.resolved' ? message : null;
  return {
    id: `${place.stream === 'KRONOS_LOG' ? 'event' : 'alarm'}-${place.sequence}-${digest(message.id)}`,
    topic: alarm === null ? message.type : `alarm.${alarm.data.code}`,
    aggregate: message.aggregate,
    timeMs: timeMs(message.time),
    by: `${message.by.service} ${message.by.instance}`,
    text: sentence(message, nameOf),
    alarm,
    attributes: { ...cloudEvent(message), sequence: String(place.sequence).padStart(16, '0') },
    data: message.data,
  };
}

/** The notice that `kronos notify test` sends. */
export function testNotice(by: string, version: string, nowMs: number): Notice {
  const text = 'This is a test of notifications. Nothing is wrong.';
  const time = iso(nowMs);
  const alarm: AlarmRaised = {
    type: 'alarm.raised',
    version: 1,
    id: `notify.test:${nowMs}`,
    time,
    aggregate: ALL,
    by: { service: 'ledger', instance: 'test', version },
    correlationId: `notify.test:${nowMs}`,
    causationId: null,
    data: {
      key: 'test',
      code: 'test',
      about: 'kronos notify test',
      text,
      remedy: 'Nothing to do.',
      runbook: 'docs/notifications.md',
      explains: [],
    },
  };
  return {
    id: `test-${nowMs}-${digest(by)}`,
    topic: 'notify.test',
    aggregate: ALL,
    timeMs: nowMs,
    by,
    text,
    alarm,
    attributes: { ...cloudEvent(alarm), type: 'kronos.notify.test.v1', source: '/kronos/test' },
    data: { text },
  };
}
