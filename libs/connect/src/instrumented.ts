import { type Family, familyOf, type Message } from '@kronos/contracts';
import { AppendConflict, type EventLog } from '@kronos/eventlog';
import { attributes, type Instruments, spans, withSpan } from '@kronos/telemetry';
import { SpanKind, type Tracer } from '@opentelemetry/api';

export interface Instrumentation {
  readonly metrics: Instruments;
  readonly tracer: Tracer;
}

/** The event log, where each message that is written is counted and has a span, which readers of the message go on from. */
export function instrumented(log: EventLog, { metrics, tracer }: Instrumentation): EventLog {
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
      const count = (outcome: 'appended' | 'duplicate' | 'conflict' | 'failed') => {
        metrics.appends.add(1, { family, outcome });
        span.setAttribute(attributes.outcome, outcome);
      };
      try {
        const written = await act();
        count(written.duplicate ? 'duplicate' : 'appended');
        return { written };
      } catch (error) {
        count(error instanceof AppendConflict ? 'conflict' : 'failed');
        // That another was first is no failure of the span.
        if (error instanceof AppendConflict) return { error };
        throw error;
      }
    });
    if (result.written === undefined) throw result.error;
    return result.written;
  }

  const append: EventLog['append'] = (message: Message, options) =>
    write(
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
  return Object.assign(Object.create(log) as EventLog, { append, putSnapshot });
}
