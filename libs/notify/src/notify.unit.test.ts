import type { AlarmRaised, AlarmResolved, LogEventOf } from '@kronos/contracts';
import type { Alarm } from '@kronos/status';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { type AlarmsSeen, current, lookOf, type RecordedAlarm, transitions } from './alarms.ts';
import { wants } from './match.ts';
import { noticeOf } from './notice.ts';
import { ALERT_MS, postOf, signature } from './request.ts';
import { type DeliveryTrouble, isDead, judgeAttempt, LONGEST_MS, remedyFor, troubled } from './retry.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const time = new Date(NOW).toISOString();
const by = { service: 'ledger', instance: 'ledger-1', version: '1.0.0' } as const;

const paused = (id: string, comment: string | null = null, aggregate = 'gpu'): LogEventOf<'aggregate.paused'> => ({
  type: 'aggregate.paused',
  version: 1,
  id,
  time,
  aggregate,
  by: { service: 'operator', instance: 'ada', version: '1.0.0' },
  correlationId: id,
  causationId: null,
  data: { commandId: 'c', comment },
});
const event = (message = paused('e-1')) => noticeOf(message, { stream: 'KRONOS_LOG', sequence: 7 });

const raised = (key: string, atMs = NOW): AlarmRaised => ({
  type: 'alarm.raised',
  version: 1,
  id: `alarm.raised:${key}`,
  time: new Date(atMs).toISOString(),
  aggregate: 'gpu',
  by,
  correlationId: 'c',
  causationId: null,
  data: {
    key,
    code: 'host-down',
    about: 'gpu',
    text: 'cmp1 is <down>',
    remedy: 'Repair it.',
    runbook: 'docs/r.md#x',
    explains: [],
  },
});
const resolved = (key: string, atMs: number, raisedAtMs = NOW): AlarmResolved => {
  const { remedy, runbook, explains, ...data } = raised(key).data;
  return {
    ...raised(key, atMs),
    type: 'alarm.resolved',
    data: { ...data, raisedAt: new Date(raisedAtMs).toISOString() },
  };
};

describe('a notice', () => {
  const refused: LogEventOf<'migration.abortRefused'> = {
    ...paused('e-1'),
    type: 'migration.abortRefused',
    by: { service: 'executor', instance: 'e1', version: '1.0.0' },
    data: {
      ...{ taskId: 'p-s1', planId: 'p', serverId: 'vm1', attempt: 1, from: 'h1', destination: 'h2' },
      ...{ migrationId: 7, status: 409, text: 'it has ended' },
    },
  };
  it('names a server where its name is known', () => {
    const place = { stream: 'KRONOS_LOG', sequence: 7 };
    const said = noticeOf(refused, place, (id) => (id === 'vm1' ? 'database' : id));
    expect(said.text).toBe('Nova refused to abort database from h1 to h2 with 409: it has ended');
    expect(noticeOf(refused, place).text).toContain('abort vm1 from');
  });
});

describe('what a sink wants', () => {
  it('needs a type and an aggregate; what is about all aggregates goes to every sink', () => {
    const sink = { types: ['migration.*', 'alarm.*'], aggregates: ['gpu', 'web-*'] };
    expect(wants(sink, { topic: 'migration.failed', aggregate: 'gpu' })).toBe(true);
    expect(wants(sink, { topic: 'migration.failed', aggregate: 'web-1' })).toBe(true);
    expect(wants(sink, { topic: 'alarm.log-full', aggregate: '_all_' })).toBe(true);
    expect(wants(sink, { topic: 'migration.failed', aggregate: 'cpu' })).toBe(false);
    expect(wants(sink, { topic: 'cycle.decided', aggregate: 'gpu' })).toBe(false);
    expect(wants({ types: [], aggregates: ['*'] }, { topic: 'x', aggregate: 'gpu' })).toBe(false);
  });
});

describe('a notice', () => {
  it('has the same id whenever it is made, and others have others', () => {
    expect(event().id).toBe(event().id);
    expect(event(paused('e-2')).id).not.toBe(event().id);
    expect(noticeOf(paused('e-1'), { stream: 'KRONOS_LOG', sequence: 8 }).id).not.toBe(event().id);
  });

  it('puts nothing that others wrote into a header', () => {
    const evil = 'x\r\nX-Evil: 1\u2028"';
    const { headers } = postOf('cloudevents', event(paused(evil, evil, evil)), NOW);
    const signed = signature('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', {
      id: event(paused(evil)).id,
      body: '{}',
      nowMs: NOW,
    });
    for (const value of Object.values({ ...headers, ...signed })) expect(value).toMatch(/^[\w.,;=+/ -]+$/);
  });

  it('is a CloudEvent with the attributes of the message, in structured mode', () => {
    const { headers, json } = postOf('cloudevents', event(paused('e-1', 'disks')), NOW);
    expect(headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
    expect(json).toEqual({
      specversion: '1.0',
      id: 'e-1',
      source: '/kronos/operator/ada',
      type: 'kronos.aggregate.paused.v1',
      time,
      subject: 'gpu',
      datacontenttype: 'application/json',
      correlationid: 'e-1',
      sequence: '0000000000000007',
      text: 'paused (disks)',
      data: { commandId: 'c', comment: 'disks' },
    });
    // Names of attributes: lower-case letters and digits.
    for (const name of Object.keys(json as object)) expect(name).toMatch(/^[a-z0-9]+$/);
  });

  it('is one text in a chat, without links and mentions, and is cut', () => {
    const { json } = postOf('slack', event(paused('e', '<!channel> & <https://evil|here>')), NOW);
    expect(json).toEqual({
      text: '*aggregate.paused* (gpu) operator ada: paused (&lt;!channel&gt; &amp; &lt;https://evil|here&gt;)',
    });
    const long = postOf('slack', event(paused('e', '\u{1F525}'.repeat(5000))), NOW).json as { text: string };
    expect([...long.text]).toHaveLength(3000);
    expect(long.text.isWellFormed()).toBe(true);
    const alarm = noticeOf(raised('k'), { stream: 'KRONOS_ALARMS', sequence: 1 });
    expect(postOf('slack', alarm, NOW).json).toEqual({
      text: '*host-down* (gpu) gpu: cmp1 is &lt;down&gt;\nRepair it. (docs/r.md#x)',
    });
    const over = noticeOf(resolved('k', NOW), { stream: 'KRONOS_ALARMS', sequence: 2 });
    expect(postOf('slack', over, NOW).json).toEqual({ text: '*Over: host-down* (gpu) gpu: cmp1 is &lt;down&gt;' });
  });

  it('is an alert with labels that stay, which ends by itself unless it is sent again', () => {
    const notice = noticeOf(raised('k', NOW - 1000), { stream: 'KRONOS_ALARMS', sequence: 1 });
    const [alert] = postOf('alertmanager', notice, NOW).json as { labels: object }[];
    expect(alert).toMatchObject({
      labels: { alertname: 'KronosAlarm', cause: 'host-down', alarm: 'k', aggregate: 'gpu', severity: 'warning' },
      annotations: { summary: 'gpu: cmp1 is <down>', description: 'Repair it.', runbook: 'docs/r.md#x' },
      startsAt: new Date(NOW - 1000).toISOString(),
      endsAt: new Date(NOW + ALERT_MS).toISOString(),
    });
    const over = noticeOf(resolved('k', NOW, NOW - 1000), { stream: 'KRONOS_ALARMS', sequence: 2 });
    const [end] = postOf('alertmanager', over, NOW + 60_000).json as { labels: object }[];
    expect(end).toMatchObject({ labels: alert?.labels, startsAt: new Date(NOW - 1000).toISOString(), endsAt: time });
    expect(postOf('alertmanager', event(), NOW).json).toEqual([]);
  });

  it('carries a signature that the library of Standard Webhooks verifies, and no other one', () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const body = JSON.stringify(postOf('cloudevents', event(paused('e', 'Zürich \u2028')), Date.now()).json);
    const headers = signature(secret, { id: event().id, body, nowMs: Date.now() });
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow();
    expect(() => new Webhook('whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD').verify(body, headers)).toThrow();
    const stale = signature(secret, { id: event().id, body, nowMs: Date.now() - 3_600_000 });
    expect(() => new Webhook(secret).verify(body, stale)).toThrow();
  });
});

describe('an attempt', () => {
  const answered = (status: number, retryAfterMs?: number) => ({ kind: 'answered', status, retryAfterMs }) as const;

  it('that is refused quotes what the receiver says, without its markup', () => {
    const body = '<html><b>invalid_payload</b>\n no text</html>';
    expect(judgeAttempt({ ...answered(400), body }, 1)).toMatchObject({
      kind: 'later',
      reason: 'the receiver answers 400: invalid_payload no text',
    });
    expect(judgeAttempt({ ...answered(400), body: 'x'.repeat(5000) }, 1)).toMatchObject({
      reason: `the receiver answers 400: ${'x'.repeat(200)}`,
    });
  });

  it('that is taken is over', () => {
    for (const status of [200, 202, 204]) expect(judgeAttempt(answered(status), 3)).toEqual({ kind: 'delivered' });
  });

  it.each([301, 401, 403, 404, 410, 429, 500, 503])(
    'that is answered with %d is made again, however often',
    (status) => {
      expect(judgeAttempt(answered(status), 1)).toMatchObject({ kind: 'later', delayMs: 1000 });
      expect(judgeAttempt(answered(status), 1000)).toMatchObject({ kind: 'later', delayMs: LONGEST_MS });
    },
  );

  it('waits longer each time, and as long as the receiver asks, within a bound', () => {
    const delays = [1, 2, 3, 4].map((n) => judgeAttempt({ kind: 'failed', reason: 'x' }, n));
    expect(delays).toMatchObject([{ delayMs: 1000 }, { delayMs: 2000 }, { delayMs: 4000 }, { delayMs: 8000 }]);
    expect(judgeAttempt(answered(429, 30_000), 1)).toMatchObject({ delayMs: 30_000 });
    expect(judgeAttempt(answered(429, 1), 3)).toMatchObject({ delayMs: 4000 });
    expect(judgeAttempt(answered(429, 1e12), 1)).toMatchObject({ delayMs: 3_600_000 });
  });

  it.each([400, 413, 422])(
    'that is answered with %d is dropped after some tries: no notice blocks a sink for ever',
    (status) => {
      expect(judgeAttempt(answered(status), 5)).toMatchObject({ kind: 'later' });
      expect(judgeAttempt(answered(status), 6)).toMatchObject({ kind: 'dropped' });
    },
  );

  it.each([
    [{ kind: 'failed', reason: 'ECONNREFUSED' } as const, 'Check url and ca_cert of [notify:chat]'],
    [answered(302), 'Set url of [notify:chat] to the address that the receiver redirects to.'],
    [answered(401), 'Check authorization and secret of [notify:chat]'],
    [answered(404), 'Check url of [notify:chat].'],
    [answered(422), 'Check that format = slack of [notify:chat]'],
    [answered(503), 'Read the log of the receiver.'],
  ])('that fails (%o) has a remedy', (attempt, remedy) => {
    expect(remedyFor(attempt, { name: 'chat', format: 'slack' })).toContain(remedy);
  });
});

describe('a sink', () => {
  const after = (...failures: number[]): DeliveryTrouble =>
    failures.reduce<DeliveryTrouble | null>((before, at) => troubled(before, 'x', at), null) as DeliveryTrouble;

  it('is dead when it has failed for minutes, and lately', () => {
    expect(isDead(after(0, 60_000, 180_000), 200_000)).toBe(true);
  });
  it('is not dead after one failure, however long ago: another ledger may have delivered it', () => {
    expect(isDead(after(0), 300_000)).toBe(false);
  });
  it('is not dead when nothing has failed for long', () => {
    expect(isDead(after(0, 180_000), 180_000 + 3 * LONGEST_MS)).toBe(false);
    expect(after(0, 180_000, 180_000 + 3 * LONGEST_MS).sinceMs).toBe(180_000 + 3 * LONGEST_MS);
  });
});

describe('the alarms', () => {
  const alarm = (code: string, place: Record<string, string> = { aggregate: 'gpu' }, explains: string[] = []) =>
    ({
      code,
      severity: 'alarm',
      about: 'gpu',
      text: 'text',
      remedy: 'r',
      runbook: 'docs/runbook.md#x',
      places: [place],
      explains: explains.map((one) => ({ code: one, about: 'a', text: 't' })),
    }) as unknown as Alarm;
  const look = (...alarms: Alarm[]): AlarmsSeen => lookOf(alarms);
  const about = { by, nowMs: NOW };
  const state = (...all: (AlarmRaised | AlarmResolved)[]): Map<string, RecordedAlarm> =>
    new Map(all.map((message, i) => [message.data.key, { message, sequence: i + 1 }]));
  const KEY = 'host-down/gpu';

  it('are raised when two looks in a row find them, once', () => {
    const down = alarm('host-down');
    expect(transitions(state(), { before: look(), now: look(down) }, about)).toEqual([]);
    expect(transitions(state(), { before: null, now: look(down) }, about)).toEqual([]);
    expect(transitions(state(), { before: look(down), now: look(down) }, about)).toMatchObject([
      { expected: 0, message: { type: 'alarm.raised', aggregate: 'gpu', data: { key: KEY, code: 'host-down' } } },
    ]);
    expect(transitions(state(raised(KEY)), { before: look(down), now: look(down) }, about)).toEqual([]);
  });

  it('are over when two looks in a row do not find them', () => {
    const open = state(raised(KEY, NOW - 5000));
    const over = { before: look(), now: look() };
    expect(transitions(open, { before: look(alarm('host-down')), now: look() }, about)).toEqual([]);
    expect(transitions(open, over, about)).toMatchObject([
      {
        expected: 1,
        message: { type: 'alarm.resolved', data: { key: KEY, raisedAt: new Date(NOW - 5000).toISOString() } },
      },
    ]);
    expect(transitions(state(resolved(KEY, NOW)), over, about)).toEqual([]);
  });

  it('are raised anew on what was recorded last', () => {
    const down = look(alarm('host-down'));
    expect(transitions(state(resolved(KEY, NOW - 9)), { before: down, now: down }, about)).toMatchObject([
      { expected: 1, message: { type: 'alarm.raised' } },
    ]);
  });

  it('are not over while nothing can be known, or while another alarm explains them', () => {
    const open = state(raised(KEY));
    expect(look(alarm('nats-unreachable', {}))).toBeNull();
    expect(transitions(open, { before: look(), now: look(alarm('nats-unreachable', {})) }, about)).toEqual([]);
    const other = look(alarm('service-missing', { service: 'scorer' }, ['host-down']));
    expect(transitions(open, { before: other, now: other }, about).map(({ message }) => message.type)).toEqual([
      'alarm.raised',
    ]);
  });

  it('are told apart by place, and those that are only worth knowing are left out', () => {
    const both = look(alarm('host-down', { aggregate: 'a' }), alarm('host-down', { aggregate: 'b' }));
    expect(transitions(state(), { before: both, now: both }, about)).toHaveLength(2);
    expect(lookOf([{ ...alarm('host-disabled'), severity: 'info' }])).toEqual(new Map());
  });

  it('are told to an Alertmanager while they are there, and for a while after', () => {
    const all = [...state(raised('a', 0), resolved('b', NOW - 60_000), resolved('c', NOW - 3_600_000)).values()];
    expect(current(all, NOW).map(({ message }) => message.data.key)).toEqual(['a', 'b']);
  });
});
