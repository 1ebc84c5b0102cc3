import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { defaultConfig, Secret, type SinkOptions } from '@kronos/config';
import type { Actor, LogEventOf, Message } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { commandEvent, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { type Play, type Played, serve } from '@kronos/http/testing';
import type { Alarm } from '@kronos/status';
import { startTelemetry } from '@kronos/telemetry';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Notifier, startNotifier } from './notify.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const by: Actor = { service: 'ledger', instance: 'ledger-test', version: '0.0.0' };
const telemetry = await startTelemetry({
  service: 'ledger',
  version: '0.0.0',
  instance: 'ledger-test',
  config: { ...defaultConfig, log: { level: 'silent', format: 'json' } },
  destination: { write: () => undefined },
});

let server: NatsServer;
let bed = 0;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  server = await startNatsServer();
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(async () => {
  await telemetry.shutdown();
  await server.stop();
});

const sink = (url: string, more: Partial<SinkOptions> = {}): SinkOptions => ({
  url: new Secret(url),
  urlFile: null,
  format: 'cloudevents',
  types: ['*'],
  aggregates: ['*'],
  secret: null,
  secretFile: null,
  authorization: null,
  authorizationFile: null,
  caCert: null,
  timeout: 10,
  ...more,
});

async function receiver(play: Play = (_, response) => void response.writeHead(204).end()): Promise<Played> {
  const played = await serve(play);
  closing.push(() => played.close());
  return played;
}

const alarm = (host: string): Alarm => ({
  code: 'host-down',
  severity: 'alarm',
  about: host,
  text: `${host} is down`,
  remedy: 'Repair it.',
  runbook: 'docs/runbook.md#kronoshostdown',
  places: [{ aggregate: host }],
  explains: [],
});

/** Streams of their own are not needed: each test has sinks of its own, which begin with what comes next. */
async function notifiers(count: number, sinks: Record<string, SinkOptions>, alarms: () => readonly Alarm[] = () => []) {
  bed++;
  const named = new Map(Object.entries(sinks).map(([name, one]) => [`${name}-${bed}`, one]));
  const connect = async (): Promise<EventLog> => {
    const log = await connectEventLog({ servers: [server.url], name: 'ledger' });
    closing.push(() => log.close());
    return log;
  };
  const log = await connect();
  const limits = { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 2 ** 26, logMaxBytes: 2 ** 28 };
  await log.provision({ limits, replicas: 1, aggregates: ['gpu'], sinks: [...named.keys()] });
  let aheadMs = 0;
  const clock = {
    ...systemClock,
    now: () => systemClock.now() + aheadMs,
    every: (ms: number, act: () => void) => systemClock.every(Math.min(ms, 50), act),
  };
  const running: Notifier[] = [];
  for (let i = 0; i < count; i++) {
    const notifier = startNotifier({
      log: await connect(),
      sinks: named,
      status: async () => ({ timeMs: 0, well: true, alarms: alarms(), aggregates: [], streams: [], services: [] }),
      nameOf: () => null,
      by: { ...by, instance: `ledger-${i}` },
      logger: telemetry.log,
      metrics: telemetry.metrics.instruments,
      clock,
    });
    running.push(notifier);
    closing.push(() => notifier.stop());
  }
  return { log, running, pass: (ms: number) => (aheadMs += ms) };
}

const paused = (id: string, aggregate = 'gpu') => commandEvent('aggregate.paused', aggregate, id, {});
const ids = ({ seen }: Played): string[] => seen.map(({ body }) => (JSON.parse(body) as Message).id);

it('two ledgers send every event once, in order, signed', async () => {
  const hook = await receiver();
  const { log } = await notifiers(2, { hook: sink(hook.url, { secret: new Secret(SECRET) }) });
  const names = Array.from({ length: 20 }, (_, i) => `order-${i}`);
  for (const name of names) await log.append(paused(name));
  await until(() => hook.seen.length >= names.length);
  expect(ids(hook)).toEqual(names.map((name) => `control:${name}`));
  for (const { body, headers } of hook.seen) {
    expect(headers['content-type']).toContain('application/cloudevents+json');
    expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toMatchObject({ specversion: '1.0' });
  }
  expect(new Set(hook.seen.map(({ headers }) => headers['webhook-id'])).size).toBe(names.length);
});

it('a sink that fails gets everything later, in order, and delays no other one', async () => {
  const attempts: string[] = [];
  let broken = true;
  const hook = await receiver(({ body }, response) => {
    attempts.push((JSON.parse(body) as Message).id);
    response.writeHead(broken ? 503 : 204).end();
  });
  const chat = await receiver();
  const { log } = await notifiers(2, { hook: sink(hook.url), chat: sink(chat.url, { format: 'slack' }) });
  for (const name of ['f-1', 'f-2', 'f-3']) await log.append(paused(name));
  await until(() => chat.seen.length === 3);
  await until(() => attempts.length >= 2);
  expect(new Set(attempts)).toEqual(new Set(['control:f-1']));
  broken = false;
  await until(() => attempts.at(-1) === 'control:f-3');
  expect(attempts.filter((id) => id !== 'control:f-1')).toEqual(['control:f-2', 'control:f-3']);
});

it('sends what a sink wants, and no event that was restored', async () => {
  const hook = await receiver();
  const { log } = await notifiers(1, { hook: sink(hook.url, { types: ['aggregate.*'], aggregates: ['gpu'] }) });
  const other: LogEventOf<'plan.approved'> = {
    ...paused('no-type'),
    type: 'plan.approved',
    data: { commandId: 'no-type', comment: null, planId: 'p', steps: null },
  };
  await log.append(other);
  await log.append(paused('no-aggregate', 'cpu'));
  const last = await log.lastSequence('KRONOS_LOG');
  const data = new TextEncoder().encode(JSON.stringify(paused('restored')));
  const storedAt = Date.now() - 3_600_000;
  await log.restore([
    ...(await Array.fromAsync(log.copy({ from: 1, to: last }))),
    { sequence: last + 1, storedAt, subject: 'kronos.controls.gpu', headers: { 'Nats-Msg-Id': 'r' }, data },
  ]);
  await log.append(paused('wanted'));
  await until(() => hook.seen.length > 0);
  expect(ids(hook)).toEqual(['control:wanted']);
});

it('two ledgers record an alarm once, and its end, and each sink is told', async () => {
  const chat = await receiver();
  let alarms: Alarm[] = [];
  const { log } = await notifiers(2, { chat: sink(chat.url, { format: 'slack', types: ['alarm.*'] }) }, () => alarms);
  const before = await log.lastSequence('KRONOS_ALARMS');
  alarms = [alarm('cmp1')];
  await until(() => chat.seen.length === 1);
  alarms = [];
  await until(() => chat.seen.length === 2);
  expect(chat.seen.map(({ body }) => (JSON.parse(body) as { text: string }).text.split('\n')[0])).toEqual([
    '*host-down* (cmp1) cmp1: cmp1 is down',
    '*Over: host-down* (cmp1) cmp1: cmp1 is down',
  ]);
  expect((await log.lastSequence('KRONOS_ALARMS')) - before).toBe(2);
});

it('an Alertmanager is told again and again what is wrong, and that it is over', async () => {
  const manager = await receiver();
  let alarms = [alarm('cmp2')];
  await notifiers(
    1,
    { am: sink(manager.url, { format: 'alertmanager', types: ['alarm.*'], aggregates: ['cmp2'] }) },
    () => alarms,
  );
  await until(() => manager.seen.length >= 3);
  alarms = [];
  type Alert = { readonly labels: { readonly alarm: string }; readonly endsAt: string };
  const last = () => (JSON.parse(manager.seen.at(-1)?.body ?? '[]') as Alert[])[0];
  expect(manager.seen[0]?.path).toBe('/api/v2/alerts');
  expect(last()?.labels.alarm).toBe('host-down/cmp2');
  await until(() => Date.parse(last()?.endsAt ?? '') <= Date.now());
});

it('a dead sink shows after minutes, with the last answer and without its URL', async () => {
  const dead = await receiver((_, response) => void response.destroy());
  const { log, running, pass } = await notifiers(1, { hook: sink(`${dead.url}/services/T0/B0/hidden-token`) });
  const [notifier] = running;
  const found = () => notifier?.deadSinks() ?? [];
  await log.append(paused('dead'));
  await until(() => dead.seen.length >= 2);
  expect(found()).toEqual([]);
  pass(3 * 60_000);
  await until(() => found().length > 0);
  expect(found()).toMatchObject([
    { sink: expect.stringMatching(/^hook-/), reason: expect.stringContaining('unreachable') },
  ]);
  expect(JSON.stringify(found())).not.toContain('hidden-token');
});
