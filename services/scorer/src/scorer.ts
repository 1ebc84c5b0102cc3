/** Takes snapshots: observe once, then for each aggregate read its capacity, assemble, publish. */
import type { Clock } from '@kronos/clock';
import type { Actor, LogMark, Policy, Snapshot, SnapshotTaken } from '@kronos/contracts';
import { contextFrom, type EventLog } from '@kronos/eventlog';
import {
  assemble,
  CapacityReader,
  type CellsSettings,
  createLimiter,
  type Fetched,
  type HistoryReader,
  hostsOf,
  type KnownServer,
  knownAfter,
  type Observation,
  type ObserveOptions,
  observe,
  type Piece,
  type ReadHistory,
  readCells,
  type ServerSource,
  stillKnown,
} from '@kronos/observation';
import type { Neutron, Nova, Placement } from '@kronos/openstack';
import type { Prometheus } from '@kronos/prometheus';
import {
  attributes,
  type Check,
  failSpan,
  type Instruments,
  type Logger,
  spans,
  withCorrelation,
  withSpan,
} from '@kronos/telemetry';
import { context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { logSnapshot, measure, measureReads } from './meters.ts';
import type { SnapshotRequest } from './requests.ts';
import { cycleAt } from './schedule.ts';
import type { Seen } from './seen.ts';

export interface ScorerDeps {
  readonly log: Pick<EventLog, 'putSnapshot' | 'getSnapshot'>;
  /** The log that a snapshot states, by the newest snapshot before it. Absent: snapshots state none. */
  readonly logMark?: (before: SnapshotTaken | null) => Promise<LogMark>;
  readonly nova: Nova;
  /** Where the servers come from; absent: every server is read each time. */
  readonly servers?: ServerSource;
  readonly placement: Placement;
  readonly neutron: Neutron;
  /** Null in the rules-only mode. */
  readonly prometheus: Prometheus | null;
  /** Null where no aggregate has a forecast. */
  readonly history?: HistoryReader | null;
  readonly seen: Seen;
  readonly settings: ScorerSettings;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly metrics: Instruments;
}

export interface ScorerSettings {
  /** All aggregates in scope, the pool of unassigned hosts by its name on the wire. */
  readonly scope: readonly string[];
  /** The policies of an aggregate; one list for all aggregates that share a file. */
  readonly policiesOf: (aggregate: string) => readonly Policy[];
  /** `balance` of an aggregate. */
  readonly balances: (aggregate: string) => boolean;
  /** `forecast` of an aggregate. */
  readonly forecasts?: (aggregate: string) => boolean;
  readonly intervalMs: number;
  readonly stalenessMs: number;
  readonly queryDeadlineMs: number;
  /** Calls to OpenStack, and queries of Prometheus, at a time. */
  readonly concurrency: number;
  readonly observe: ObserveOptions;
  /** Metrics of each host, too. */
  readonly hostMetrics: boolean;
  readonly cells: CellsSettings;
}

/** How many snapshots were written, were there already, and could not be taken. */
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
  /** What the last observation could not read; ok before the first. */
  readonly openstack: () => Check;
  readonly prometheus: () => Check;
}

/** What was read for the snapshots of a cycle. */
type Observed = Observation & { readonly history: ReadHistory | null };

/** Aggregates whose snapshots are assembled and published at the same time. */
const AGGREGATES_AT_ONCE = 4;

export function createScorer(deps: ScorerDeps): Scorer {
  const { log, seen, settings, clock, logger, tracer, metrics } = deps;
  const capacityReader = new CapacityReader(deps.placement, settings.concurrency, clock);
  /** Of all aggregates: what Prometheus is asked. */
  const policies = [...new Set(settings.scope.flatMap(settings.policiesOf))];
  const forecasts = settings.forecasts ?? (() => false);
  const forecasting = [...new Set(settings.scope.filter(forecasts).flatMap(settings.policiesOf))];
  let last: Observation | null = null;
  /** What this process knows of the aggregate's servers, and the snapshot it knows it from. */
  const memory = new Map<string, { readonly snapshotId: string; readonly known: readonly KnownServer[] }>();

  /** The servers that the next snapshot must find: of the newest snapshot of any replica. */
  async function knownServers(aggregate: string): Promise<readonly KnownServer[]> {
    const own = memory.get(aggregate);
    const newest = seen.newest(aggregate);
    if (newest === null || newest.data.snapshotId === own?.snapshotId) return own?.known ?? [];
    try {
      const known = knownAfter(await log.getSnapshot(newest));
      memory.set(aggregate, { snapshotId: newest.data.snapshotId, known });
      return known;
    } catch (error) {
      logger.warn(
        { aggregate, snapshotId: newest.data.snapshotId, err: error },
        'the snapshot before cannot be read, so servers that vanished since are not noticed',
      );
      return own?.known ?? [];
    }
  }

  /** One aggregate of the observation. */
  async function assembled(
    request: SnapshotRequest,
    aggregate: string,
    observation: Observed,
    known: readonly KnownServer[],
    signal: AbortSignal,
  ): Promise<Snapshot> {
    const topology = hostsOf(observation.lists, aggregate, settings.scope, settings.observe);
    const readFrom = clock.now();
    const capacity = await capacityReader.read(topology, signal);
    metrics.collectDuration.record((clock.now() - readFrom) / 1000, {
      part: 'capacity',
      outcome: capacity.failures.size === 0 ? 'read' : 'failed',
    });
    return assemble({
      identity: {
        id: request.id,
        purpose: request.purpose,
        cycle: request.cycle ?? cycleAt(observation.fromMs, settings.intervalMs),
        intervalSeconds: settings.intervalMs / 1000,
        observedFrom: new Date(observation.fromMs).toISOString(),
        time: new Date(clock.now()).toISOString(),
      },
      aggregate,
      scope: settings.scope,
      options: settings.observe,
      // A plan between cells reads no metrics of the other aggregates.
      policies: aggregate === request.aggregate ? settings.policiesOf(aggregate) : [],
      balance: settings.balances(aggregate),
      lists: observation.lists,
      index: observation.index,
      listings: observation.listings,
      capacity,
      answers: observation.answers,
      known,
      fates: observation.fates,
      history: forecasts(aggregate) ? observation.history : null,
    });
  }

  /** The snapshot, with what a plan needs that somebody asked for. */
  async function complete(
    request: SnapshotRequest,
    observation: Observed,
    known: readonly KnownServer[],
    signal: AbortSignal,
  ): Promise<Snapshot> {
    const { aggregate, cells, capacity } = request;
    if (cells === undefined) {
      const own = await assembled(request, aggregate, observation, known, signal);
      return capacity === undefined ? own : { ...own, capacity };
    }
    const names = settings.scope.filter((one) => one !== aggregate);
    const others = await Promise.all(names.map((one) => assembled(request, one, observation, [], signal)));
    const home = await assembled(request, aggregate, observation, known, signal);
    const { lists, index } = observation;
    const read = { ...cells, settings: settings.cells, home, others, lists, index };
    const reading = await readCells(read, deps.nova, deps.neutron, signal);
    // The last read ended now.
    return { ...home, time: new Date(clock.now()).toISOString(), cells: reading };
  }

  async function finish(request: SnapshotRequest, observation: Observed, signal: AbortSignal): Promise<Outcome> {
    const { aggregate } = request;
    const known = memory.get(aggregate)?.known ?? [];
    const snapshot = await complete(request, observation, known, signal);
    const published = await publish(request, snapshot);
    memory.set(aggregate, {
      snapshotId: snapshot.id,
      known: stillKnown(snapshot, known, observation.index, observation.fates),
    });
    measure(metrics, snapshot, { hosts: settings.hostMetrics });
    metrics.cycleDuration.record((clock.now() - observation.fromMs) / 1000, { aggregate });
    logSnapshot(logger, snapshot, published);
    return { snapshot, published };
  }

  const publish = (request: SnapshotRequest, snapshot: Snapshot): Promise<Outcome['published']> =>
    withSpan(tracer, spans.snapshotTaken, { kind: SpanKind.PRODUCER }, async (span) => {
      const { by } = deps;
      const { correlationId, causationId } = request;
      const mark = await deps.logMark?.(seen.newest(snapshot.aggregate));
      const put = await log.putSnapshot(snapshot, {
        by,
        correlationId,
        causationId,
        ...(mark === undefined ? {} : { log: mark }),
      });
      span.setAttribute(attributes.sequence, put.sequence);
      metrics.snapshotBytes.set(put.message.data.body.bytes, { aggregate: snapshot.aggregate });
      // A duplicate was written by somebody else, whose message the stream has; it is noted when it is read there.
      if (!put.duplicate) seen.note(put.message, put.sequence);
      return put.duplicate ? 'duplicate' : 'published';
    });

  return {
    async take(requests, signal) {
      const roots = requests.map((request) => ({ request, span: rootSpan(tracer, request) }));
      const [first] = roots;
      if (first === undefined) return { published: 0, duplicates: 0, failed: 0 };
      const inside = (span: Span) => trace.setSpan(ROOT_CONTEXT, span);
      let observation: Observed;
      try {
        const known = (await Promise.all(requests.map((one) => knownServers(one.aggregate)))).flat();
        // The reads serve all of the snapshots, and travel in the trace of the first.
        const [seenNow, history] = await context.with(inside(first.span), () =>
          Promise.all([
            observe({
              nova: deps.nova,
              ...(deps.servers === undefined ? {} : { servers: deps.servers }),
              prometheus: deps.prometheus,
              policies,
              stalenessMs: settings.stalenessMs,
              queryDeadlineMs: settings.queryDeadlineMs,
              concurrency: settings.concurrency,
              known,
              clock,
              signal,
            }),
            deps.history?.read(forecasting, clock.now(), signal) ?? null,
          ]),
        );
        observation = { ...seenNow, history };
      } catch (error) {
        for (const { span } of roots) {
          failSpan(span, error);
          span.end();
        }
        throw error;
      }
      last = observation;
      measureReads(metrics, observation.durations);
      const limit = createLimiter(AGGREGATES_AT_ONCE);
      const outcomes = await Promise.all(
        roots.map(({ request, span }) =>
          limit(() =>
            context.with(inside(span), () =>
              withCorrelation(request.correlationId, async (): Promise<keyof Taken> => {
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
              }),
            ),
          ),
        ),
      );
      const count = (outcome: keyof Taken) => outcomes.filter((one) => one === outcome).length;
      return { published: count('published'), duplicates: count('duplicates'), failed: count('failed') };
    },
    openstack() {
      const unread = Object.entries(last?.lists ?? {}).flatMap(([part, list]: [string, Fetched<unknown>]) =>
        list.ok ? [] : [`${part}: ${list.text}`],
      );
      return unread.length === 0 ? { ok: true } : { ok: false, reason: `not read: ${unread.join('; ')}` };
    },
    prometheus() {
      const failed = (last?.pieces ?? []).find((piece) => piece.name === spans.query && piece.failure !== null);
      return failed === undefined ? { ok: true } : { ok: false, reason: failed.failure ?? '' };
    },
  };
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
