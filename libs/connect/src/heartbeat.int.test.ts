import { systemClock } from '@kronos/clock';
import { defaultConfig } from '@kronos/config';
import { defaultStorageLimits, type Message, type ServiceReported } from '@kronos/contracts';
import { connectEventLog, LogFull, natsWire, StreamUnavailable } from '@kronos/eventlog';
import { bareConnection, commandEvent, startNatsServer } from '@kronos/eventlog/testing';
import { createLogger, createMetrics, HttpServer } from '@kronos/telemetry';
import { trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { expect, it, onTestFinished } from 'vitest';
import { type ReportPace, reportService } from './heartbeat.ts';
import { instrumented } from './instrumented.ts';

async function bed(limits = defaultStorageLimits) {
  const nats = await startNatsServer();
  onTestFinished(() => nats.stop());
  const bare = await connectEventLog({ servers: [nats.url], name: 'test' });
  onTestFinished(() => bare.close());
  await bare.provision({ limits, replicas: 1, aggregates: ['gpu'] });
  const metrics = createMetrics(resourceFromAttributes({}));
  const { wrap, refused } = instrumented({ metrics: metrics.instruments, tracer: trace.getTracer('test') });
  const log = Object.assign(await connectEventLog({ servers: [nats.url], name: 'planner' }, {}, natsWire, wrap), {
    refused,
  });
  onTestFinished(() => log.close());
  const logger = createLogger({ service: 'planner', version: '0', level: 'silent' });
  const http = new HttpServer({ address: '127.0.0.1', port: 0, portOption: 'planner_port', log: logger, metrics });
  const stopping = new AbortController();
  const start = (pace?: ReportPace) =>
    reportService({
      pace,
      log,
      http,
      config: defaultConfig,
      by: { service: 'planner', instance: 'host:1', version: '0.1.0' },
      aggregates: ['gpu'],
      stopping: stopping.signal,
      logger,
      clock: systemClock,
    });
  /** Every heartbeat from now on. */
  const beats = bare.tail({ families: ['services'], since: 'all' })[Symbol.asyncIterator]();
  const next = async (): Promise<ServiceReported & { subject: string }> => {
    const { value } = await beats.next();
    if (value === undefined || value.problem !== undefined) throw new Error('no heartbeat that can be read');
    return { ...(value.message as ServiceReported), subject: value.subject };
  };
  return { nats, bare, log, http, stopping, start, next };
}

it('a service reports its start, each change of its readiness and its stop, and only the last one is kept', async () => {
  const { bare, http, stopping, start, next } = await bed();
  let started = false;
  let trouble: string | null = null;
  http.check('started', () => (started ? { ok: true } : { ok: false, reason: 'starting' }));
  http.check('clock', () => (trouble === null ? { ok: true } : { ok: false, reason: trouble }));
  const heartbeats = start();
  const first = await next();
  expect(first).toMatchObject({
    subject: 'kronos.services.planner.host=3A1',
    by: { service: 'planner', instance: 'host:1', version: '0.1.0' },
    data: { state: 'starting', failing: [], aggregates: ['gpu'], options: { 'engine.cooldown': 600 } },
  });
  started = true;
  expect((await next()).data).toMatchObject({ state: 'running', failing: [] });
  trouble = 'it is 9 s wrong';
  expect((await next()).data).toMatchObject({ failing: [{ check: 'clock', reason: 'it is 9 s wrong' }] });
  stopping.abort();
  expect((await next()).data.state).toBe('stopping');
  await heartbeats.stop();
  expect((await next()).data).toMatchObject({ state: 'stopped', failing: [] });
  expect(await bare.usage('KRONOS_SERVICES')).toMatchObject({ messages: 1 });
});

it('a service reports how far the checkpoint that its fold started from is verified, and at once when it is', async () => {
  const { start, next } = await bed();
  const heartbeats = start();
  onTestFinished(() => heartbeats.stop());
  expect((await next()).data.checkpoint).toBeUndefined();
  const verification = { checkpoint: 1571 as number | null, verifiedTo: 400, verified: false };
  heartbeats.verify(verification);
  expect((await next()).data.checkpoint).toEqual({ sequence: 1571, verifiedTo: 400 });
  Object.assign(verification, { verifiedTo: 1571, verified: true });
  expect((await next()).data.checkpoint).toEqual({ sequence: 1571, verifiedTo: 1571 });
  // Started again, from the first event.
  heartbeats.verify({ checkpoint: null, verifiedTo: 0, verified: false });
  expect((await next()).data.checkpoint).toBeUndefined();
});

const control = (i: number): Message =>
  commandEvent('aggregate.resumed', 'gpu', `c${i}`, { comment: 'x'.repeat(30_000) });

it('a service whose appends are refused is not ready, in the words of the server, until one is taken', async () => {
  const { log, http, start, next } = await bed({ ...defaultStorageLimits, logMaxBytes: 2 ** 20 });
  const heartbeats = start();
  onTestFinished(() => heartbeats.stop());
  expect((await next()).data.failing).toEqual([]);
  const fill = async () => {
    for (let i = 0; ; i++) await log.append(control(i));
  };
  await expect(fill()).rejects.toBeInstanceOf(LogFull);
  const refused = {
    check: 'appends',
    reason: expect.stringMatching(/^KRONOS_LOG: .*maximum bytes exceeded \(10077\)/),
    parts: [{ code: 'stream-full', part: 'KRONOS_LOG', text: expect.stringContaining('maximum bytes exceeded') }],
  };
  expect((await next()).data.failing).toEqual([refused]);
  expect((await http.readiness()).ready).toBe(false);
  // A small message is accepted.
  await log.append({ ...control(-1), data: { commandId: 'small', comment: null } } as Message);
  expect((await next()).data.failing).toEqual([]);
});

it('a service whose appends get no answer is not ready', async () => {
  const { nats, log, start, next } = await bed();
  const heartbeats = start();
  onTestFinished(() => heartbeats.stop());
  expect((await next()).data.failing).toEqual([]);
  const connection = await bareConnection(nats.url);
  await connection.request('$JS.API.STREAM.DELETE.KRONOS_LOG');
  await connection.close();
  await expect(log.append(control(0), { timeoutMs: 300 })).rejects.toBeInstanceOf(StreamUnavailable);
  expect((await next()).data.failing).toMatchObject([
    { check: 'appends', reason: expect.stringMatching(/^KRONOS_LOG: /) },
  ]);
});

it.each([
  ['got no answer', { logMaxBytes: 2 ** 24 }],
  ['found the log full', { logMaxBytes: 2 ** 20 }],
])(
  'a service whose last append %s is ready again once NATS stores, also when it has nothing to write',
  async (_, limits) => {
    const { nats, bare, log, http, start, next } = await bed({ ...defaultStorageLimits, ...limits });
    const heartbeats = start({ everyMs: 100, lookMs: 20 });
    onTestFinished(() => heartbeats.stop());
    const full = limits.logMaxBytes === 2 ** 20;
    if (full) {
      const fill = async () => {
        for (let i = 0; ; i++) await log.append(control(i));
      };
      await expect(fill()).rejects.toBeInstanceOf(LogFull);
    } else {
      const connection = await bareConnection(nats.url);
      await connection.request('$JS.API.STREAM.DELETE.KRONOS_LOG');
      await connection.close();
      await expect(log.append(control(0), { timeoutMs: 300 })).rejects.toBeInstanceOf(StreamUnavailable);
    }
    let beat = await next();
    while (beat.data.failing.length === 0) beat = await next();
    // Heartbeats are stored all the while: they alone are no sign that the log stores again.
    for (let i = 0; i < 5; i++) expect((await next()).data.failing).toMatchObject([{ check: 'appends' }]);
    expect((await http.readiness()).ready).toBe(false);
    const roomy = { ...defaultStorageLimits, logMaxBytes: 2 ** 24 };
    await bare.provision({ limits: roomy, replicas: 1, aggregates: ['gpu'] });
    while (beat.data.failing.length > 0) beat = await next();
    expect((await http.readiness()).ready).toBe(true);
  },
);
