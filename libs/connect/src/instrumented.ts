import { type FailingPart, type Family, familyOf, partCodes } from '@kronos/contracts';
import {
  AppendConflict,
  AppendRefused,
  AppendUnknown,
  AppendWithdrawn,
  type EventLog,
  LogFull,
  type Seams,
  StreamUnavailable,
  streamOf,
  unknownWrite,
  type Wrap,
  type Write,
  type Written,
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
   * Why NATS does not store what the service writes, by stream and in the server's words; empty while it stores everything.
   * A service that has nothing to write learns from its heartbeats that NATS stores again.
   */
  refused(): readonly FailingPart[];
};

type RefusalCode = (typeof partCodes)['streamFull' | 'storageFull' | 'unanswered' | 'refused'];

/** A full stream, a full server and a silent one can recover without an append of this service. */
type Refusal = {
  readonly code: RefusalCode;
  readonly text: string;
  /** A heartbeat has failed since: NATS as a whole did not store. */
  heartbeatFailed: boolean;
  /** Heartbeats that were stored since. */
  heartbeats: number;
};

/**
 * The stream of heartbeats is in memory: that NATS stores them does not show that it stores on disk. While none of them has
 * failed, a stream that did not answer, or found no storage, is judged by the next append to it, or after this many heartbeats.
 */
const HEARTBEATS_KEPT = 30;

/** A stream that was full stores again from this much room on: more than any message takes. */
const ROOM_BYTES = 2 ** 20;

/** Errors of an append that a next one may meet again. A server that is out of disk space does not answer at all. */
const NOT_TAKEN = [LogFull, AppendRefused, AppendUnknown, StreamUnavailable];

/** Telemetry of one connection: how to decorate its seams, and what the decorated append learned. */
export type LogTelemetry = { readonly wrap: Wrap } & Pick<ServiceLog, 'refused'>;

/**
 * Telemetry of the event log: each append is counted and has a span, which the message carries to its readers. Details of
 * decisions are counted with the message that refers to them.
 */
export function instrumented({ metrics, tracer }: Instrumentation): LogTelemetry {
  const refusals = new Refusals();

  async function counted<T extends { readonly duplicate: boolean }>(
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
        refusals.stored(streamOf[family]);
        return { written };
      } catch (error) {
        const withdrawn = error instanceof AppendWithdrawn;
        const lost = error instanceof AppendConflict;
        count(lost ? 'conflict' : withdrawn ? 'withdrawn' : 'failed');
        refusals.failed(streamOf[family], error);
        // A conflict or a withdrawal is no failure of the span.
        if (lost || withdrawn) return { error };
        throw error;
      }
    });
    if (result.written === undefined) throw result.error;
    return result.written;
  }

  function append(write: Write, inner: Seams['append'], log: Parameters<Wrap>[1]): Promise<Written<Write>> {
    switch (write.kind) {
      case 'object':
        return inner(write);
      case 'snapshot': {
        const { aggregate, id } = write.snapshot;
        const about = { [attributes.aggregate]: aggregate, [attributes.snapshotId]: id };
        return counted('snapshots', about, () => inner(write));
      }
      case 'message': {
        const { message } = write;
        // A heartbeat has no cause, so it has no span.
        if (message.type === 'service.reported') return refusals.judgedAfter(() => inner(write), log.usage);
        const about = {
          [attributes.aggregate]: message.aggregate,
          [attributes.correlationId]: message.correlationId,
          'messaging.message.id': message.id,
        };
        return counted(familyOf(message.type), about, () => inner(write));
      }
      default:
        return unknownWrite(write);
    }
  }

  return {
    wrap: (inner, log) => ({
      ...inner,
      append: async <W extends Write>(write: W) => (await append(write, inner.append, log)) as Written<W>,
    }),
    refused: () => refusals.list(),
  };
}

/** Stream -> the refusal of the last append to it. */
class Refusals {
  readonly #of = new Map<string, Refusal>();

  stored(stream: string): void {
    this.#of.delete(stream);
  }

  failed(stream: string, error: unknown): void {
    if (NOT_TAKEN.some((kind) => error instanceof kind))
      this.#of.set(stream, {
        code: codeOf(error),
        text: (error as Error).message,
        heartbeatFailed: false,
        heartbeats: 0,
      });
  }

  list(): FailingPart[] {
    return [...this.#of].map(([part, { code, text }]) => ({ code, part, text }));
  }

  /** A stored heartbeat shows that JetStream stores in memory; the leader's answer about the stream shows that the stream does. */
  async judgedAfter<T>(beat: () => Promise<T>, usageOf: Parameters<Wrap>[1]['usage']): Promise<T> {
    const before = [...this.#of];
    const stored = await beat().catch((error: unknown) => {
      for (const [, refusal] of before) refusal.heartbeatFailed = true;
      throw error;
    });
    for (const [stream, refusal] of before) {
      refusal.heartbeats += 1;
      if (!mayHaveRecovered(refusal)) continue;
      const usage = await usageOf(stream).catch(() => null);
      const full = refusal.code === partCodes.streamFull && usage !== null && !hasRoom(usage);
      if (usage !== null && !full && this.#of.get(stream) === refusal) this.#of.delete(stream);
    }
    return stored;
  }
}

function codeOf(error: unknown): RefusalCode {
  if (error instanceof LogFull) return error.ofServer ? partCodes.storageFull : partCodes.streamFull;
  return error instanceof AppendRefused ? partCodes.refused : partCodes.unanswered;
}

/** Whether heartbeats can show that it is over. What the server refuses, it refuses until the next append says otherwise. */
function mayHaveRecovered({ code, heartbeatFailed, heartbeats }: Refusal): boolean {
  if (code === partCodes.refused) return false;
  return code === partCodes.streamFull || heartbeatFailed || heartbeats >= HEARTBEATS_KEPT;
}

const hasRoom = ({ bytes, maxBytes }: { readonly bytes: number; readonly maxBytes: number }): boolean =>
  maxBytes === -1 || bytes + ROOM_BYTES <= maxBytes;
