import { type Family, familyOf, type Message } from '@kronos/contracts';
import {
  AppendConflict,
  AppendRefused,
  AppendUnknown,
  AppendWithdrawn,
  type EventLog,
  LogFull,
  StreamUnavailable,
  streamOf,
} from '@kronos/eventlog';
import { attributes, type Instruments, spans, withSpan } from '@kronos/telemetry';
import { SpanKind, type Tracer } from '@opentelemetry/api';

export interface Instrumentation {
  readonly metrics: Instruments;
  readonly tracer: Tracer;
}

/** The event log of a service. */
export type ServiceLog = EventLog & {
  /** Why NATS takes no more of what the service writes, in the server's words; null while it takes everything. */
  refused(): string | null;
};

/** Errors of an append that a next one may meet again. A server that is out of disk space does not answer at all. */
const NOT_TAKEN = [LogFull, AppendRefused, AppendUnknown, StreamUnavailable];

/** The event log, where each message that is written is counted and has a span, which readers of the message go on from. */
export function instrumented(log: EventLog, { metrics, tracer }: Instrumentation): ServiceLog {
  /** Stream -> the refusal of the last append to it. */
  const refusals = new Map<string, string>();
  async function write<T extends { readonly duplicate: boolean }>(
    family: Family,
    about: Record<string, string>,
    act: () => Promise<T>,
  ): Promise<T> {
    const input = {
      kind: SpanKind.PRODUCER,
      attributes: {
        'messaging.system': 'nats',
        'messaging.operation.type': 'send',
        'messaging.destination.template': `kronos.${family}.{aggregate}`,
        ...about,
      },
    };
    const result = await withSpan(tracer, spans.append, input, async (span) => {
      const count = (outcome: 'appended' | 'duplicate' | 'conflict' | 'withdrawn' | 'failed') => {
        metrics.appends.add(1, { family, outcome });
        span.setAttribute(attributes.outcome, outcome);
      };
      try {
        const written = await act();
        count(written.duplicate ? 'duplicate' : 'appended');
        refusals.delete(streamOf[family]);
        return { written };
      } catch (error) {
        const withdrawn = error instanceof AppendWithdrawn;
        const lost = error instanceof AppendConflict;
        count(lost ? 'conflict' : withdrawn ? 'withdrawn' : 'failed');
        if (NOT_TAKEN.some((kind) => error instanceof kind))
          refusals.set(streamOf[family], `${streamOf[family]}: ${(error as Error).message}`);
        // That another was first, or that the writer took it back, is no failure of the span.
        if (lost || withdrawn) return { error };
        throw error;
      }
    });
    if (result.written === undefined) throw result.error;
    return result.written;
  }

  const append: EventLog['append'] = (message: Message, options) =>
    // A heartbeat belongs to no chain of causes: it has no span.
    message.type === 'service.reported'
      ? log.append(message, options)
      : write(
          familyOf(message.type),
          {
            [attributes.aggregate]: message.aggregate,
            [attributes.correlationId]: message.correlationId,
            'messaging.message.id': message.id,
          },
          () => log.append(message, options),
        );
  const putSnapshot: EventLog['putSnapshot'] = (snapshot, envelope) =>
    write('snapshots', { [attributes.aggregate]: snapshot.aggregate, [attributes.snapshotId]: snapshot.id }, () =>
      log.putSnapshot(snapshot, envelope),
    );
  const refused = (): string | null => (refusals.size === 0 ? null : [...refusals.values()].join('; '));
  return Object.assign(Object.create(log) as EventLog, { append, putSnapshot, refused });
}
