import { until } from '@kronos/clock/testing';
import { type Played, serve } from '@kronos/http/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openWorld, type World } from './world.ts';

type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  service: string;
  attributes: Record<string, unknown>;
};

type OtlpBody = {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] };
    scopeSpans: {
      spans: (Omit<Span, 'service' | 'attributes'> & {
        attributes: { key: string; value: Record<string, unknown> }[];
      })[];
    }[];
  }[];
};

/** A receiver of OTLP over HTTP with JSON bodies (OpenTelemetry protocol specification, OTLP/HTTP). */
async function startReceiver(): Promise<Played & { readonly spans: Span[] }> {
  const spans: Span[] = [];
  const server = await serve(({ body }, response) => {
    for (const { resource, scopeSpans } of (JSON.parse(body) as OtlpBody).resourceSpans) {
      const service = resource.attributes.find((a) => a.key === 'service.name')?.value.stringValue ?? '';
      for (const span of scopeSpans.flatMap((s) => s.spans))
        spans.push({
          ...span,
          service,
          attributes: Object.fromEntries(span.attributes.map((a) => [a.key, Object.values(a.value)[0]])),
        });
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  return { ...server, spans };
}

describe('tracing', () => {
  let world: World | null = null;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  beforeEach(async () => {
    receiver = await startReceiver();
  });
  afterEach(async () => {
    await world?.close();
    world = null;
    await receiver.close();
  });

  it('one migration is one trace over scorer, planner, executor and ledger', async () => {
    world = await openWorld({ speed: 20, env: { OS_TELEMETRY__OTLP_ENDPOINT: receiver.url } });
    await world.until('a completed migration', (events) => events.some((e) => e.type === 'migration.completed'));
    const services = ['kronos-scorer', 'kronos-planner', 'kronos-executor', 'kronos-ledger'];
    const complete = () =>
      [...Map.groupBy(receiver.spans, (s) => s.traceId).values()].find(
        (trace) =>
          services.every((service) => trace.some((s) => s.service === service)) &&
          // A span comes when it has ended, and this one ends after its own parts.
          trace.some((s) => s.name === 'executor.task'),
      );
    const trace = await until(complete, undefined, 'a trace with spans of all four services');
    // The parent of every span, except the root, is a span of the same trace.
    const roots = trace.filter((s) => s.parentSpanId === undefined || s.parentSpanId === '');
    expect(roots.map((s) => s.service)).toEqual(['kronos-scorer']);
    const task = trace.find((s) => s.name === 'executor.task');
    expect(task?.attributes['kronos.server.id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});
