import type { Config } from '@kronos/config';
import { context, createContextKey, trace } from '@opentelemetry/api';
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';
import { asRecord, hideFields, scrub } from './scrub.ts';

export type { Logger } from 'pino';

const CORRELATION = createContextKey('kronos correlation id');

/** Runs a function; every log line inside it carries this `correlationId`. */
export const withCorrelation = <T>(correlationId: string, fn: () => T): T =>
  context.with(context.active().setValue(CORRELATION, correlationId), fn);

/** The correlation id of the running code, or null. */
export function activeCorrelation(): string | null {
  const id = context.active().getValue(CORRELATION);
  return typeof id === 'string' ? id : null;
}

export interface LogInput {
  readonly service: string;
  readonly version: string;
  readonly level: string;
  /** Makes a line for people of one of JSON, see {@link lineRenderer}. Default: lines are JSON. */
  readonly render?: Render | null;
  /** Default: standard output. */
  readonly destination?: DestinationStream;
}

/** Makes a line for people of a line of JSON. */
type Render = (line: string) => string;

/** The renderer of the lines of a format; null: they stay JSON. `terminal`: whether they go to one. */
export async function lineRenderer(
  format: Config['log']['format'],
  { terminal }: { readonly terminal: boolean },
): Promise<Render | null> {
  if (format === 'json' || (format === 'auto' && !terminal)) return null;
  // Only loaded where people read the log.
  const { prettyFactory } = await import('pino-pretty');
  return prettyFactory({
    colorize: terminal,
    messageKey: 'message',
    timestampKey: 'time',
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'service,version,trace_id,span_id',
    messageFormat: '{service} {message}',
  });
}

/**
 * The logger of a process: one JSON object per line (or readable lines), with service, version, the active span's
 * `trace_id` and `span_id`, and `correlationId`. Fields with the name of a secret, and the configuration's secrets
 * wherever they turn up, show `[secret]`. Writes synchronously, so that the last line before an exit is not lost.
 */
export function createLogger(input: LogInput): Logger {
  const options: LoggerOptions = {
    level: input.level,
    base: { service: input.service, version: input.version },
    timestamp: pino.stdTimeFunctions.isoTime,
    messageKey: 'message',
    formatters: {
      level: (level) => ({ level }),
      bindings: (bindings) => asRecord(hideFields(bindings)),
      log: (object) => asRecord(hideFields(object)),
    },
    // hideFields has made plain objects of errors already.
    serializers: { err: (error: unknown) => error },
    mixin: activeIds,
    hooks: { streamWrite: scrub },
  };
  const destination = input.destination ?? pino.destination({ fd: 1, sync: true });
  const { render = null } = input;
  if (render === null) return pino(options, destination);
  // Rendering takes escapes away, and with them what may have kept a secret from being found.
  return pino(options, { write: (line: string) => destination.write(scrub(render(line))) });
}

/** Fields that link a line to its trace and its chain of events. */
function activeIds(): object {
  const span = trace.getActiveSpan()?.spanContext();
  const correlationId = activeCorrelation();
  return {
    ...(span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId }),
    ...(correlationId === null ? {} : { correlationId }),
  };
}
