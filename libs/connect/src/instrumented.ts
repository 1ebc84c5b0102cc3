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
  /**
   * Why NATS does not store what the service writes, in the server's words; null while it stores everything. A service that
   * has nothing to write learns from its heartbeats that NATS stores again.
   */
  refused(): string | null;
};

/** `full` and `unanswered` can end without an append of this service. */
type Refusal = { readonly kind: 'full' | 'unanswered' | 'refused'; readonly text: string };

/** A stream that was full stores again from this much room on: more than any message takes. */
const ROOM_BYTES = 2 ** 20;

/** Errors of an append that a next one may meet again. A server that is out of disk space does not answer at all. */
const NOT_TAKEN = [LogFull, AppendRefused, AppendUnknown, StreamUnavailable];

/** The event log with telemetry: each append is counted and has a span, which the message carries to its readers. */
export function instrumented(log: EventLog, { metrics, tracer }: Instrumentation): ServiceLog {
  /** Stream -> the refusal of the last append to it. */
  const refusals = new Map<string, Refusal>();
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
          refusals.set(streamOf[family], {
            kind: kindOf(error),
            text: `${streamOf[family]}: ${(error as Error).message}`,
          });
        // A conflict or a withdrawal is no failure of the span.
        if (lost || withdrawn) return { error };
        throw error;
      }
    });
    if (result.written === undefined) throw result.error;
    return result.written;
  }

  /** A stored heartbeat shows that JetStream stores; the leader's answer about the stream shows that the stream does. */
  async function heartbeat(...[message, options]: Parameters<EventLog['append']>): ReturnType<EventLog['append']> {
    const before = [...refusals];
    const stored = await log.append(message, options);
    for (const [stream, refusal] of before) {
      if (refusal.kind === 'refused') continue;
      const usage = await log.usage(stream).catch(() => null);
      const full = refusal.kind === 'full' && usage !== null && !hasRoom(usage);
      if (usage !== null && !full && refusals.get(stream) === refusal) refusals.delete(stream);
    }
    return stored;
  }

  const append: EventLog['append'] = (message: Message, options) =>
    // A heartbeat has no cause, so it has no span.
    message.type === 'service.reported'
      ? heartbeat(message, options)
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
  const refused = (): string | null =>
    refusals.size === 0 ? null : [...refusals.values()].map(({ text }) => text).join('; ');
  return Object.assign(Object.create(log) as EventLog, { append, putSnapshot, refused });
}

const kindOf = (error: unknown): Refusal['kind'] =>
  error instanceof LogFull ? 'full' : error instanceof AppendRefused ? 'refused' : 'unanswered';

const hasRoom = ({ bytes, maxBytes }: { readonly bytes: number; readonly maxBytes: number }): boolean =>
  maxBytes === -1 || bytes + ROOM_BYTES <= maxBytes;
