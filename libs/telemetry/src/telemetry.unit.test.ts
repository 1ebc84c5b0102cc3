import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Config, defaultConfig, Secret } from '@kronos/config';
import { context, propagation, SpanKind, trace } from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import { attributes, spans } from './names.ts';
import { parseOtlpHeaders, startTelemetry, type Telemetry } from './telemetry.ts';
import { withSpan } from './tracing.ts';

interface OtlpAttribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number };
}
interface OtlpSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly events: readonly { readonly name: string; readonly attributes: readonly OtlpAttribute[] }[];
  readonly status: { readonly code: number; readonly message?: string };
}
interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

/** A receiver of OTLP/HTTP and what it got. */
async function receiver() {
  const requests: { readonly url: string; readonly headers: IncomingHttpHeaders; readonly text: string }[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      requests.push({ url: request.url ?? '', headers: request.headers, text });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  const bodies = () => requests.map((r): OtlpBody => JSON.parse(r.text));
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    resources: () => bodies().flatMap((b) => b.resourceSpans.map((r) => r.resource.attributes)),
    spans: () => bodies().flatMap((b) => b.resourceSpans.flatMap((r) => r.scopeSpans.flatMap((s) => s.spans))),
  };
}

async function start(settings: Partial<Config['telemetry']>, nats: Partial<Config['nats']> = {}) {
  const lines: string[] = [];
  const config: Config = {
    ...defaultConfig,
    nats: { ...defaultConfig.nats, ...nats },
    telemetry: { ...defaultConfig.telemetry, serviceName: 'kronos-planner', ...settings },
  };
  const telemetry: Telemetry = await startTelemetry({
    service: 'planner',
    version: '1.2.3',
    instance: 'node1:42',
    config,
    destination: { write: (line: string) => void lines.push(line) },
  });
  let down: Promise<void> | null = null;
  const shutdown = () => {
    down ??= telemetry.shutdown();
    return down;
  };
  open.push(shutdown);
  return { ...telemetry, shutdown, lines };
}

const attribute = (list: readonly OtlpAttribute[], key: string) => list.find((a) => a.key === key)?.value.stringValue;

describe('traces', () => {
  it('reach the OTLP receiver, the last ones at shutdown, with parent, links, kind and resource', async () => {
    const otlp = await receiver();
    const { tracer, shutdown } = await start({
      otlpEndpoint: otlp.url,
      otlpHeaders: new Secret('authorization=Bearer hunter2, x-team = a=b'),
    });
    await withSpan(
      tracer,
      spans.decide,
      { kind: SpanKind.CONSUMER, attributes: { [attributes.aggregate]: 'gpu' } },
      async (span) => {
        const links = [{ context: span.spanContext() }];
        await withSpan(tracer, spans.dispatch, {}, () => {});
        await context.with(trace.deleteSpan(context.active()), () => withSpan(tracer, spans.task, { links }, () => {}));
      },
    );
    expect(otlp.requests).toHaveLength(0);
    await shutdown();
    const byName = Object.fromEntries(otlp.spans().map((s) => [s.name, s]));
    const decide = byName[spans.decide];
    expect(Object.keys(byName).sort()).toEqual([spans.task, spans.decide, spans.dispatch].sort());
    expect(byName[spans.dispatch]).toMatchObject({ parentSpanId: decide?.spanId, traceId: decide?.traceId });
    expect(byName[spans.task]?.links).toMatchObject([{ traceId: decide?.traceId, spanId: decide?.spanId }]);
    expect(byName[spans.task]?.traceId).not.toBe(decide?.traceId);
    expect(decide?.kind).toBe(5);
    expect(attribute(decide?.attributes ?? [], attributes.aggregate)).toBe('gpu');
    const resource = otlp.resources()[0] ?? [];
    expect(
      ['service.name', 'service.version', 'service.instance.id', 'service.namespace'].map((k) =>
        attribute(resource, k),
      ),
    ).toEqual(['kronos-planner', '1.2.3', 'node1:42', 'kronos']);
    expect(otlp.requests[0]).toMatchObject({
      url: '/v1/traces',
      headers: { authorization: 'Bearer hunter2', 'x-team': 'a=b' },
    });
  });

  it('mark what failed, pass the error on, and show no secret', async () => {
    const otlp = await receiver();
    const { tracer, shutdown } = await start({ otlpEndpoint: otlp.url }, { password: new Secret('hunter2-pw') });
    const error = Object.assign(new Error('login with hunter2-pw at nats://u:pw@h refused'), { code: 'KRONOS_NATS' });
    const failed = withSpan(
      tracer,
      spans.append,
      { attributes: { url: 'nats://u:pw@h', password: 'x', list: ['hunter2-pw'] } },
      () => {
        throw error;
      },
    );
    await expect(failed).rejects.toBe(error);
    await shutdown();
    const [span] = otlp.spans();
    expect(span?.status).toEqual({ code: 2, message: 'login with [secret] at nats://[secret]@h refused' });
    expect(attribute(span?.attributes ?? [], attributes.errorType)).toBe('KRONOS_NATS');
    expect(span?.events[0]).toMatchObject({ name: 'exception' });
    expect(otlp.requests.map((r) => r.text).join()).not.toMatch(/hunter2|u:pw/);
    expect(attribute(span?.attributes ?? [], 'password')).toBe('[secret]');
  });

  it('go on across processes by W3C trace context', async () => {
    const { tracer } = await start({ otlpEndpoint: null });
    const headers: Record<string, string> = {};
    const sent = await withSpan(tracer, spans.decide, {}, (span) => {
      propagation.inject(context.active(), headers);
      return span.spanContext();
    });
    expect(headers).toEqual({ traceparent: `00-${sent.traceId}-${sent.spanId}-01` });
    const parent = propagation.extract(context.active(), headers);
    const received = await withSpan(tracer, spans.task, { parent }, (span) => span.spanContext());
    expect(received.traceId).toBe(sent.traceId);
    expect(received.spanId).not.toBe(sent.spanId);
  });

  it('give the log its ids also when they are sent nowhere', async () => {
    const { tracer, log, lines } = await start({ otlpEndpoint: null });
    const { traceId, spanId } = await withSpan(tracer, spans.decide, {}, async (span) => {
      await Promise.resolve();
      log.info('inside');
      return span.spanContext();
    });
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ trace_id: traceId, span_id: spanId });
  });

  it('are sampled by ratio at the root, and continued when they came in sampled', async () => {
    const otlp = await receiver();
    const { tracer, shutdown } = await start({ otlpEndpoint: otlp.url, samplingRatio: 0 });
    await withSpan(tracer, spans.decide, {}, () => {});
    const parent = propagation.extract(context.active(), {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    });
    await withSpan(tracer, spans.task, { parent }, () => {});
    await shutdown();
    expect(otlp.spans().map((s) => s.name)).toEqual([spans.task]);
  });

  it('cannot stop a process: a receiver that is not there is logged', async () => {
    const otlp = await receiver();
    const gone = otlp.url;
    await open.pop()?.();
    const { tracer, shutdown, lines } = await start({
      otlpEndpoint: gone,
      otlpTimeout: 0.5,
      otlpHeaders: new Secret('authorization=Bearer hunter2'),
    });
    await withSpan(tracer, spans.decide, {}, () => {});
    await shutdown();
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join()).not.toContain('hunter2');
  });
});

describe('headers for the receiver', () => {
  it('are a comma list of name=value', () => {
    expect(parseOtlpHeaders('')).toEqual({});
    expect(parseOtlpHeaders('a=b, c = d=e ,')).toEqual({ a: 'b', c: 'd=e' });
  });
});
