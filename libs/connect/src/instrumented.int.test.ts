import { type LogEvent, subject } from '@kronos/contracts';
import { AppendConflict, connectEventLog, natsWire } from '@kronos/eventlog';
import { startNatsServer } from '@kronos/eventlog/testing';
import { testLog } from '@kronos/projections/testing';
import { attributes, createMetrics, spans, withSpan } from '@kronos/telemetry';
import { context, propagation, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest';
import { callHooks } from './calls.ts';
import { instrumented } from './instrumented.ts';

const exporter = new InMemorySpanExporter();
const tracer = () => trace.getTracer('test');
beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
});
afterEach(() => exporter.reset());
afterAll(() => {
  trace.disable();
  propagation.disable();
  context.disable();
});

it('each append is counted by what came of it, and readers go on from its span', async () => {
  const nats = await startNatsServer();
  onTestFinished(() => nats.stop());
  const bare = await connectEventLog({ servers: [nats.url], name: 'test' });
  onTestFinished(() => bare.close());
  const limits = { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 2 ** 20, logMaxBytes: 2 ** 24 };
  await bare.provision({ limits, replicas: 1, aggregates: ['gpu'] });
  const metrics = createMetrics(resourceFromAttributes({}));
  const { wrap } = instrumented({ metrics: metrics.instruments, tracer: tracer() });
  const log = await connectEventLog({ servers: [nats.url], name: 'service' }, {}, natsWire, wrap);
  onTestFinished(() => log.close());

  const draft = testLog('gpu', Date.now());
  draft.configured();
  draft.decided();
  const [first, second] = draft.events.map(({ event }) => event as LogEvent);
  if (first === undefined || second === undefined) throw new Error('no events');
  await withSpan(tracer(), 'cycle', {}, () => log.append(first));
  await log.append(first);
  const late = log.append(second, { expectedLastSequence: 0 });
  await expect(late).rejects.toBeInstanceOf(AppendConflict);

  const text = await metrics.scrape();
  for (const outcome of ['appended', 'duplicate', 'conflict'])
    expect(text).toContain(`kronos_log_appends_total{family="plans",outcome="${outcome}"} 1\n`);
  const appends = exporter.getFinishedSpans().filter((span) => span.name === spans.append);
  expect(appends.map((span) => span.attributes[attributes.outcome])).toEqual(['appended', 'duplicate', 'conflict']);
  // A conflict with an earlier append is no failure.
  expect(appends.map((span) => span.status.code)).toEqual(Array(3).fill(SpanStatusCode.UNSET));
  const { traceId, spanId } = appends[0]?.spanContext() ?? {};
  for await (const event of log.replay()) {
    expect(event.subject).toBe(subject('plans', 'gpu'));
    expect(event.traceparent).toBe(`00-${traceId}-${spanId}-01`);
  }
  expect(log.healthy().ok).toBe(true);
});

it('calls have spans within what they were made for: of very many only those that failed', async () => {
  const { onCall, injectHeaders } = callHooks(undefined);
  const report = { service: 'nova', method: 'GET', route: '/servers/{id}', durationMs: 20, attempt: 1 };
  onCall?.({ ...report, status: 200 });
  expect(exporter.getFinishedSpans()).toEqual([]);
  await withSpan(tracer(), 'task', {}, () => {
    for (let i = 0; i < 60; i++) onCall?.({ ...report, status: 200 });
    onCall?.({ ...report, status: 503, attempt: 2 });
    onCall?.({ ...report, status: undefined, error: 'KRONOS_HTTP_TIMEOUT' });
    expect(injectHeaders?.()).toHaveProperty('traceparent');
  });
  const calls = exporter.getFinishedSpans().filter((span) => span.name === spans.request);
  expect(calls.map((span) => span.status.code === SpanStatusCode.ERROR)).toEqual([
    ...Array(50).fill(false),
    ...[true, true],
  ]);
  expect(calls[0]?.attributes).toEqual({
    'peer.service': 'nova',
    'http.request.method': 'GET',
    'url.template': '/servers/{id}',
    'http.response.status_code': 200,
  });
  expect(calls[50]?.attributes['http.request.resend_count']).toBe(1);
  expect(calls[51]?.attributes[attributes.errorType]).toBe('KRONOS_HTTP_TIMEOUT');
});
