import { createHmac } from 'node:crypto';
import { ALL, iso } from '@kronos/contracts';
import type { Notice } from './notice.ts';

export type SinkFormat = 'cloudevents' | 'slack' | 'alertmanager';

/** The headers and the body of a request. */
export type Post = { readonly headers: Readonly<Record<string, string>>; readonly json: unknown };

/** Characters of a text in a chat: receivers refuse messages that are too long. */
const MOST_TEXT = 3000;

const cut = (text: string): string => {
  const points = [...text];
  return points.length <= MOST_TEXT ? text : `${points.slice(0, MOST_TEXT - 3).join('')}...`;
};

/** Text in which a chat finds neither links nor mentions. */
const plain = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The CloudEvent in structured mode: nothing that others wrote is in a header, and the signature covers all of it. */
const cloudEvents = ({ attributes, data, text }: Notice): Post => ({
  headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
  json: { ...attributes, text, data },
});

function slack({ alarm, aggregate, by, text, topic }: Notice): Post {
  const where = aggregate === ALL ? '' : ` (${plain(aggregate)})`;
  const lines =
    alarm === null
      ? [`*${plain(topic)}*${where} ${plain(by)}: ${plain(text)}`]
      : alarm.type === 'alarm.resolved'
        ? [`*Over: ${plain(alarm.data.code)}*${where} ${plain(alarm.data.about)}: ${plain(alarm.data.text)}`]
        : [
            `*${plain(alarm.data.code)}*${where} ${plain(alarm.data.about)}: ${plain(alarm.data.text)}`,
            `${plain(alarm.data.remedy)} (${plain(alarm.data.runbook)})`,
          ];
  return { headers: {}, json: { text: cut(lines.join('\n')) } };
}

/** An alert that is not sent again ends by itself after this time. */
export const ALERT_MS = 5 * 60_000;

/** Alarms as POST /api/v2/alerts takes them. The labels identify the alert: those of an alarm never change. */
export const alerts = (notices: readonly Notice[], nowMs: number): Post => ({
  headers: {},
  json: notices.flatMap(({ alarm, aggregate }) => {
    if (alarm === null) return [];
    const { data } = alarm;
    const raised = alarm.type === 'alarm.raised';
    return [
      {
        labels: {
          alertname: 'KronosAlarm',
          cause: data.code,
          alarm: data.key,
          severity: 'warning',
          ...(aggregate === ALL ? {} : { aggregate }),
        },
        annotations: {
          summary: `${data.about}: ${data.text}`,
          ...(alarm.type === 'alarm.raised' ? { description: alarm.data.remedy, runbook: alarm.data.runbook } : {}),
        },
        startsAt: alarm.type === 'alarm.resolved' ? alarm.data.raisedAt : alarm.time,
        endsAt: raised ? iso(nowMs + ALERT_MS) : alarm.time,
      },
    ];
  }),
});

/** One notice in a sink's format. */
export function postOf(format: SinkFormat, notice: Notice, nowMs: number): Post {
  if (format === 'alertmanager') return alerts([notice], nowMs);
  return format === 'slack' ? slack(notice) : cloudEvents(notice);
}

/**
 * The headers of Standard Webhooks 1.0.
 *
 * @param secret base64, with or without `whsec_` before it
 * @param body the bytes that are sent
 */
export function signature(
  secret: string,
  { id, body, nowMs }: { readonly id: string; readonly body: string; readonly nowMs: number },
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signed = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signed}` };
}
