import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
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
async function startReceiver(): Promise<{
  server: Server;
  url: string;
  spans: Span[];
  arrived: (condition: () => boolean, limitMs: number) => Promise<boolean>;
}> {
  const spans: Span[] = [];
  const looks = new Set<() => void>();
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = JSON.parse(await text(request)) as OtlpBody;
    for (const { resource, scopeSpans } of body.resourceSpans) {
      const service = resource.attributes.find((a) => a.key === 'service.name')?.value.stringValue ?? '';
      for (const span of scopeSpans.flatMap((s) => s.spans))
        spans.push({
          ...span,
          service,
          attributes: Object.fromEntries(span.attributes.map((a) => [a.key, Object.values(a.value)[0]])),
        });
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    for (const look of looks) look();
  };
  const server = createServer((request, response) => void receive(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    arrived: (condition, limitMs) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => resolve(false), limitMs);
        const look = () => {
          if (!condition()) return;
          clearTimeout(timer);
          looks.delete(look);
          resolve(true);
        };
        looks.add(look);
        look();
      }),
  };
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
    receiver.server.closeAllConnections();
    await new Promise((resolve) => receiver.server.close(resolve));
  });

  it('one migration is one trace over scorer, planner, executor and ledger', async () => {
    world = await openWorld({ speed: 20, env: { OS_TELEMETRY__OTLP_ENDPOINT: receiver.url } });
    await world.until('a completed migration', (events) => events.some((e) => e.type === 'migration.completed'));
    const services = ['kronos-scorer', 'kronos-planner', 'kronos-executor', 'kronos-ledger'];
    const complete = () =>
      [...Map.groupBy(receiver.spans, (s) => s.traceId).values()].find((trace) =>
        services.every((service) => trace.some((s) => s.service === service)),
      );
    expect(
      await receiver.arrived(() => complete() !== undefined, 30_000),
      'a trace with spans of all four services',
    ).toBe(true);
    const trace = complete() ?? [];
    // Every span but the root hangs on another one of the same trace.
    const roots = trace.filter((s) => s.parentSpanId === undefined || s.parentSpanId === '');
    expect(roots.map((s) => s.service)).toEqual(['kronos-scorer']);
    const task = trace.find((s) => s.name === 'executor.task');
    expect(task?.attributes['kronos.server.id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});
