import { HIDDEN } from '@kronos/config/secret';
import { errorText } from '@kronos/contracts/words';
import {
  type Attributes,
  type Context,
  context,
  type DiagLogger,
  DiagLogLevel,
  diag,
  type Link,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { type ExportResult, W3CTraceContextPropagator } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from './log.ts';
import { isSecretName, scrub } from './scrub.ts';

export interface TracingInput {
  readonly resource: Resource;
  /** OTLP/HTTP receiver without `/v1/traces`; null: spans exist (for logs and propagation) and go nowhere. */
  readonly endpoint: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly samplingRatio: number;
  readonly log: Logger;
}

export interface Tracing {
  readonly tracer: Tracer;
  /** Sends what is left and ends tracing. Never fails: an unreachable receiver is logged. */
  shutdown(): Promise<void>;
}

/**
 * Makes the process trace: registers the AsyncLocalStorage context manager and W3C trace context propagation with
 * `@opentelemetry/api`, so that every library that uses the API takes part.
 */
export async function startTracing(input: TracingInput): Promise<Tracing> {
  diag.setLogger(diagTo(input.log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const spanProcessors = input.endpoint === null ? [] : [await processorTo(input.endpoint, input)];
  const provider = new TracerProvider({
    resource: input.resource,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(input.samplingRatio) }),
    spanProcessors,
  });
  trace.setGlobalTracerProvider(provider);
  return {
    tracer: trace.getTracer('kronos'),
    shutdown: async () => {
      try {
        await provider.shutdown();
      } catch (error) {
        input.log.warn({ err: error }, 'the last traces could not be sent');
      }
      trace.disable();
      context.disable();
      propagation.disable();
      diag.disable();
    },
  };
}

/** Sends spans in batches. Its modules are loaded only where traces are sent. */
async function processorTo(
  endpoint: string,
  { headers, timeoutMs }: Pick<TracingInput, 'headers' | 'timeoutMs'>,
): Promise<SpanProcessor> {
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
  const sender = new OTLPTraceExporter({
    url: `${endpoint}/v1/traces`,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
  });
  return new BatchSpanProcessor({
    exporter: new ScrubbingExporter(sender),
    exportTimeoutMillis: timeoutMs,
  });
}

export interface SpanInput {
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
  /** Spans that this one follows from without being their child. */
  readonly links?: readonly Link[];
  /** Context of the parent, e.g. one extracted from a message. Default: the active one. */
  readonly parent?: Context;
}

/**
 * Runs a function inside a new span, ends the span when it has settled, and marks the span when it fails. The error
 * passes on. The span's `error.type` is the error's code, else its name.
 */
export async function withSpan<T>(
  tracer: Tracer,
  name: string,
  { kind = SpanKind.INTERNAL, attributes = {}, links = [], parent = context.active() }: SpanInput,
  fn: (span: Span) => T | Promise<T>,
): Promise<T> {
  const span = tracer.startSpan(name, { kind, attributes, links: [...links] }, parent);
  try {
    return await context.with(trace.setSpan(parent, span), () => fn(span));
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** Marks a span as failed. */
export function failSpan(span: Span, error: unknown): void {
  const message = errorText(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : null;
  span.setAttribute('error.type', code ?? (error instanceof Error ? error.name : typeof error));
  span.setStatus({ code: SpanStatusCode.ERROR, message });
  if (error instanceof Error) span.recordException(error);
}

/** Hides secrets in whatever text a span carries. */
class ScrubbingExporter implements SpanExporter {
  readonly #inner: SpanExporter;

  constructor(inner: SpanExporter) {
    this.#inner = inner;
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#inner.export(
      spans.map((span) => this.#clean(span)),
      done,
    );
  }

  shutdown(): Promise<void> {
    return this.#inner.shutdown();
  }

  async forceFlush(): Promise<void> {
    await this.#inner.forceFlush?.();
  }

  #clean(span: ReadableSpan): ReadableSpan {
    const { status } = span;
    const shown: Partial<ReadableSpan> = {
      attributes: this.#cleanAttributes(span.attributes),
      events: span.events.map((event) => ({ ...event, attributes: this.#cleanAttributes(event.attributes ?? {}) })),
      links: span.links.map((link) => ({ ...link, attributes: this.#cleanAttributes(link.attributes ?? {}) })),
      status: status.message === undefined ? status : { ...status, message: scrub(status.message) },
    };
    const fields = Object.entries(shown).map(([key, value]): [string, PropertyDescriptor] => [key, { value }]);
    return Object.create(span, Object.fromEntries(fields));
  }

  #cleanAttributes(attributes: Attributes): Attributes {
    return Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => {
        if (typeof value === 'string') return [key, isSecretName(key) ? HIDDEN : scrub(value)];
        if (Array.isArray(value)) return [key, value.map((v) => (typeof v === 'string' ? scrub(v) : v))];
        return [key, value];
      }) as [string, Attributes[string]][],
    );
  }
}

function diagTo(log: Logger): DiagLogger {
  const to =
    (level: 'error' | 'warn' | 'info' | 'debug' | 'trace') =>
    (message: string, ...args: unknown[]) =>
      log[level]({ component: 'opentelemetry', ...(args.length > 0 ? { details: args } : {}) }, message);
  return { error: to('error'), warn: to('warn'), info: to('info'), debug: to('debug'), verbose: to('trace') };
}
