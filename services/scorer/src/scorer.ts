/** Takes snapshots: observe once, then for each aggregate read its capacity, assemble, publish. */
import type { Snapshot } from '@kronos/contracts';
import { AppendWithdrawn, contextFrom } from '@kronos/eventlog';
import { createLimiter, type Piece } from '@kronos/observation';
import { attributes, type Check, failSpan, spans, withCorrelation, withSpan } from '@kronos/telemetry';
import { context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { type CycleReadings, createCompose } from './compose.ts';
import type { ScorerDeps } from './deps.ts';
import { createKnownServers } from './knownServers.ts';
import { logSnapshot, measure } from './meters.ts';
import type { HangingCall } from './reads.ts';
import type { SnapshotRequest } from './requests.ts';
import { SharedReads } from './sharedReads.ts';
import { type LongRead, longestRead } from './slowCycle.ts';

/** Number of snapshots that were written, that existed already, and that could not be taken. */
export interface Taken {
  readonly published: number;
  readonly duplicates: number;
  readonly failed: number;
}

export interface Scorer {
  /**
   * Takes snapshots from one observation. An aggregate that fails is logged and leaves the others alone.
   *
   * @throws the signal's reason when it aborts before they are taken.
   */
  take(requests: readonly SnapshotRequest[], signal: AbortSignal): Promise<Taken>;
  /** The check of the last observation's reads; ok before the first. */
  readonly openstack: () => Check;
  readonly prometheus: () => Check;
  /** The calls that have not been answered for long: of each API the oldest. */
  readonly hanging: () => readonly HangingCall[];
  /** The read of the last snapshots that took longest; null before the first. */
  readonly longest: () => LongRead | null;
}

/** Aggregates whose snapshots are assembled and published at the same time. */
const AGGREGATES_AT_ONCE = 4;

/** Stores a snapshot with the log that it states; reads the log again when that has aged before the bytes leave. */
async function put(deps: ScorerDeps, request: SnapshotRequest, snapshot: Snapshot, signal: AbortSignal) {
  const { by, log, seen, logger } = deps;
  const { correlationId, causationId } = request;
  for (;;) {
    const stated = await deps.logMark?.(seen.newest(snapshot.aggregate));
    const envelope = { by, correlationId, causationId };
    if (stated === undefined) return await log.putSnapshot(snapshot, envelope);
    try {
      return await log.putSnapshot(snapshot, { ...envelope, log: stated.mark }, { veto: stated.aged });
    } catch (error) {
      if (!(error instanceof AppendWithdrawn)) throw error;
      signal.throwIfAborted();
      logger.debug({ aggregate: snapshot.aggregate, snapshotId: snapshot.id, err: error }, 'the log is read again');
    }
  }
}

const publish = (
  deps: ScorerDeps,
  request: SnapshotRequest,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<Outcome['published']> =>
  withSpan(deps.tracer, spans.snapshotTaken, { kind: SpanKind.PRODUCER }, async (span) => {
    const stored = await put(deps, request, snapshot, signal);
    span.setAttribute(attributes.sequence, stored.sequence);
    deps.metrics.snapshotBytes.set(stored.message.data.body.bytes, { aggregate: snapshot.aggregate });
    // A duplicate was written by somebody else, whose message the stream has; it is noted when it is read there.
    if (!stored.duplicate) deps.seen.note(stored.message, stored.sequence);
    return stored.duplicate ? 'duplicate' : 'published';
  });

export function createScorer(deps: ScorerDeps): Scorer {
  const { settings, clock, logger, tracer, metrics } = deps;
  const servers = createKnownServers(deps);
  const compose = createCompose(deps);
  const cloud = new SharedReads(deps);

  /** Makes and publishes one snapshot. The caller has its span active. */
  async function finish(request: SnapshotRequest, observation: CycleReadings, signal: AbortSignal): Promise<Outcome> {
    const { aggregate } = request;
    const known = servers.of(aggregate);
    const snapshot = await compose.snapshot(request, observation, known, signal);
    const published = await publish(deps, request, snapshot, signal);
    servers.note(snapshot, known, observation);
    measure(metrics, snapshot, { hosts: settings.hostMetrics });
    metrics.cycleDuration.record((clock.now() - observation.fromMs) / 1000, { aggregate });
    logSnapshot(logger, snapshot, published);
    return { snapshot, published };
  }

  /** One request, to its end: an aggregate that fails leaves the others alone. @throws the signal's reason */
  async function answer(
    { request, span }: Root,
    observation: CycleReadings,
    signal: AbortSignal,
  ): Promise<keyof Taken> {
    const { aggregate } = request;
    for (const piece of observation.pieces) showPiece(tracer, piece);
    try {
      const { snapshot, published } = await finish(request, observation, signal);
      span.setAttributes({
        [attributes.hosts]: snapshot.hosts.length,
        [attributes.servers]: snapshot.servers.length,
        [attributes.outcome]: published,
      });
      metrics.snapshots.add(1, { aggregate, outcome: published });
      return published === 'published' ? 'published' : 'duplicates';
    } catch (error) {
      failSpan(span, error);
      signal.throwIfAborted();
      metrics.snapshots.add(1, { aggregate, outcome: 'failed' });
      logger.error({ aggregate, snapshotId: request.id, err: error }, 'this snapshot could not be taken');
      return 'failed';
    } finally {
      span.end();
    }
  }

  return {
    async take(requests, signal) {
      const roots = requests.map((request): Root => ({ request, span: rootSpan(tracer, request) }));
      const [first] = roots;
      if (first === undefined) return { published: 0, duplicates: 0, failed: 0 };
      let observation: CycleReadings;
      try {
        // The reads serve all of the snapshots, and travel in the trace of the first.
        observation = await context.with(inside(first.span), async () => {
          const known = (await Promise.all(requests.map((one) => servers.newest(one.aggregate)))).flat();
          return cloud.read(known, signal);
        });
      } catch (error) {
        failAll(roots, error);
        throw error;
      }
      const limit = createLimiter(AGGREGATES_AT_ONCE);
      const outcomes = await Promise.all(
        roots.map((root) => limit(() => inTrace(root, () => answer(root, observation, signal)))),
      );
      const count = (outcome: keyof Taken) => outcomes.filter((one) => one === outcome).length;
      return { published: count('published'), duplicates: count('duplicates'), failed: count('failed') };
    },
    openstack: () => cloud.openstack(compose.capacities()),
    prometheus: () => cloud.prometheus(),
    hanging: () => cloud.hanging(),
    longest: () => longestRead(cloud.durations(), compose.capacityMs()),
  };
}

/** A request with the span of its trace. */
interface Root {
  readonly request: SnapshotRequest;
  readonly span: Span;
}

const inside = (span: Span) => trace.setSpan(ROOT_CONTEXT, span);

const inTrace = <T>({ request, span }: Root, act: () => Promise<T>): Promise<T> =>
  context.with(inside(span), () => withCorrelation(request.correlationId, act));

/** Ends the traces of snapshots that cannot be taken for a failure which they share. */
function failAll(roots: readonly Root[], error: unknown): void {
  for (const { span } of roots) {
    failSpan(span, error);
    span.end();
  }
}

interface Outcome {
  readonly snapshot: Snapshot;
  readonly published: 'published' | 'duplicate';
}

/** One trace per snapshot; that of a command links to the command's own. */
function rootSpan(tracer: Tracer, request: SnapshotRequest): Span {
  const cause = trace.getSpanContext(contextFrom(request.traceparent));
  return tracer.startSpan(
    spans.cycle,
    {
      root: true,
      attributes: {
        [attributes.aggregate]: request.aggregate,
        [attributes.snapshotId]: request.id,
        [attributes.purpose]: request.purpose,
        [attributes.correlationId]: request.correlationId,
      },
      links: cause === undefined ? [] : [{ context: cause }],
    },
    ROOT_CONTEXT,
  );
}

/** Shows work that is over as a child of the active span. */
function showPiece(tracer: Tracer, piece: Piece): void {
  const span = tracer.startSpan(piece.name, { startTime: piece.fromMs, attributes: piece.attributes });
  if (piece.failure !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: piece.failure });
  span.end(piece.toMs);
}
