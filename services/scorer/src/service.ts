import { snapshotMark } from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import { aggregateConfig, type Config, scopeOf, storageLimits } from '@kronos/config';
import { checkClock, healthCheck, logClock, type Outside, realOutside, reportService } from '@kronos/connect';
import { bucketNames, streamNames } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import {
  type CellsSettings,
  EndedMigrations,
  HistoryReader,
  type KeepServers,
  keepServers,
  readOptions,
  type ServerSource,
} from '@kronos/observation';
import type { Nova } from '@kronos/openstack';
import type { Prometheus } from '@kronos/prometheus';
import { type ServiceDefinition, kronosVersion as version } from '@kronos/telemetry';
import type { ScorerSettings } from './deps.ts';
import { reportHanging } from './hanging.ts';
import { showResync } from './meters.ts';
import { createFeed, type Feed, type FeedDeps, fedServers } from './notifications.ts';
import { createScoreLoop } from './scoreLoop.ts';
import { createScorer } from './scorer.ts';
import { Seen } from './seen.ts';

/** Calls to OpenStack, and queries of Prometheus, at a time. */
const CONCURRENCY = 8;

/** The scorer as a service. */
export const scorerService = (outside: Outside = realOutside): ServiceDefinition => ({
  name: 'scorer',
  version,
  async start({ config, policiesOf, hostCells, log: logger, metrics, http, instance, tracer, stopping }) {
    const { clock, connectLog, openCloud, openPrometheus, pace } = outside;
    const settings = scorerSettings(config, { policiesOf, hostCells });
    const { scope, balances, forecasts, intervalMs } = settings;
    const maxClockSkewMs = config.engine.maxClockSkew * 1000;
    // Opened resources are closed again, also when the start fails half-way.
    await using opened = new AsyncDisposableStack();
    const log = await connectLog(config, 'scorer', logger, { metrics, tracer });
    opened.defer(() => log.close());
    await log.verify(requiredOf(config));
    const by = { service: 'scorer', instance, version } as const;
    const heartbeats = reportService({ log, http, config, by, aggregates: scope, stopping, logger, clock, pace });
    const onProblem = logClock(logger);
    const clockCheck = await checkClock({ log, by, clock, metrics, maxSkewMs: maxClockSkewMs, onProblem });
    opened.defer(async () => clockCheck.stop());
    const cloud = openCloud(config, metrics);
    opened.defer(() => cloud.close());
    const prometheus = scope.some(balances) ? openPrometheus(config) : null;
    opened.defer(async () => prometheus?.close());
    const history = prometheus === null ? null : historyReader(config, scope.filter(forecasts), clock, prometheus);
    const seen = new Seen();
    const clockWrong = (): boolean => clockCheck.problem() !== null;
    const { servers, feed } = serversOf({ log, config, nova: cloud.nova, by, clock, clockWrong, logger, metrics });
    if (feed !== null) opened.adopt(consume(feed, config, instance, outside), (consuming) => consuming.stop());
    const scorer = createScorer({
      log,
      logMark: snapshotMark(log, clock),
      nova: cloud.nova,
      ...(servers === null ? {} : { servers }),
      placement: cloud.placement,
      neutron: cloud.neutron,
      prometheus,
      history,
      ended: endedReader(config, scope, cloud.nova, clockWrong),
      seen,
      calls: () => [...cloud.calls.list(), ...(prometheus?.inProgress() ?? [])],
      settings,
      by,
      clock,
      logger,
      tracer,
      metrics,
    });
    const timing = { intervalMs, clock, maxClockSkewMs, signal: stopping };
    const cycle = createScoreLoop({ log, scorer, seen, scope, instance, logger, metrics, ...timing });
    const endReports = reportHanging({ hanging: scorer.hanging, clock, logger });
    opened.defer(async () => endReports());
    http.check('nats', () => healthCheck(log.healthy()));
    http.check('openstack', () => scorer.openstack());
    http.check('prometheus', () => scorer.prometheus());
    http.check('snapshots', () => cycle.current());
    http.check('clock', () => {
      const own = clockCheck.check();
      return own.ok ? cycle.clockRight() : own;
    });
    const done = feed === null ? cycle.run() : Promise.race([cycle.run(), following(feed, stopping)]);
    const all = opened.move();
    return {
      done,
      async stop() {
        await done.catch(() => undefined);
        await heartbeats.stop();
        await all.disposeAsync();
      },
    };
  },
});

/** The streams, buckets and limits that a scorer requires of NATS. */
const requiredOf = (config: Config): Parameters<EventLog['verify']>[0] => ({
  streams: [
    streamNames.snapshots,
    streamNames.log,
    streamNames.services,
    ...(config.inventory.mode === 'notifications' ? [streamNames.inventory] : []),
  ],
  buckets: [bucketNames.snapshots],
  taskConsumers: [],
  limits: storageLimits(config),
});

/** The settings of snapshots, with what the configuration's files say. */
function scorerSettings(config: Config, files: Pick<ScorerSettings, 'policiesOf' | 'hostCells'>) {
  const { engine, prometheus } = config;
  const engineOf = (aggregate: string) => aggregateConfig(config, aggregate).engine;
  const intervalMs = engine.evaluationInterval * 1000;
  return {
    ...files,
    scope: scopeOf(config),
    balances: (aggregate: string): boolean => engineOf(aggregate).balance,
    forecasts: (aggregate: string): boolean => engineOf(aggregate).balance && engineOf(aggregate).forecast,
    intervalMs,
    stalenessMs: prometheus.stalenessThreshold * 1000,
    queryDeadlineMs: Math.max(intervalMs, prometheus.timeout * 1000),
    concurrency: CONCURRENCY,
    hostMetrics: config.telemetry.hostMetrics,
    cells: cellsSettings(config),
    observe: readOptions(config),
  };
}

/** Consumes Nova's notifications into the feed. */
const consume = (feed: Feed, config: Config, instance: string, { clock, openNotifications }: Outside) =>
  openNotifications(config, {
    name: `kronos-scorer ${instance}`,
    clock,
    ready: () => feed.ready(),
    store: (body) => feed.store(body),
    onState: ({ connected, detail }) => feed.connected(connected, detail),
  });

type ServersDeps = Omit<FeedDeps, 'inventory' | 'syncIntervalMs'> &
  Pick<KeepServers, 'clockWrong'> & { readonly config: Config; readonly nova: Nova };

/** The source of servers by `[inventory] mode`, and the feed of notifications where they keep it current. */
function serversOf({ log, config: { inventory, engine }, nova, by, clock, clockWrong, logger, metrics }: ServersDeps): {
  readonly servers: ServerSource | null;
  readonly feed: Feed | null;
} {
  const { mode, syncInterval } = inventory;
  const syncIntervalMs = syncInterval * 1000;
  if (mode === 'api') return { servers: null, feed: null };
  const kept = keepServers({
    nova,
    clock,
    mode,
    optOut: engine.optOut,
    syncIntervalMs,
    maxClockSkewMs: engine.maxClockSkew * 1000,
    clockWrong,
    concurrency: CONCURRENCY,
    onResync: showResync(metrics, logger),
  });
  if (mode === 'changes') return { servers: kept, feed: null };
  const feed = createFeed({ log, inventory: kept.inventory, syncIntervalMs, by, clock, logger, metrics });
  return { servers: fedServers(kept, feed), feed };
}

/** The settings of plans between cells, from `[cells]`. */
const cellsSettings = ({ cells }: Config): CellsSettings => ({
  map: Object.fromEntries(cells.aggregates.map(({ aggregate, cell }) => [aggregate, cell])),
  volumesShared: cells.volumesShared,
  networksShared: cells.networksShared,
  maxImageGib: cells.maxImageGib === 0 ? null : cells.maxImageGib,
  crossCellWeight: cells.crossCellWeight,
  downtimeFixedSeconds: cells.downtimeFixed,
  downtimeSecondsPerGib: cells.downtimePerGib,
  confirm: cells.confirm,
  verifySeconds: cells.verifySeconds,
  approvalTtlSeconds: cells.approvalTtl,
  planTtlSeconds: cells.planTtl,
});

/** Fails where the feed does; never ends otherwise. */
async function following(feed: Feed, stopping: AbortSignal): Promise<never> {
  try {
    await feed.follow();
  } catch (error) {
    if (!stopping.aborted) throw error;
  }
  return Promise.withResolvers<never>().promise;
}

/** Null where no aggregate waits for moves of others. */
function endedReader(
  config: Config,
  scope: readonly string[],
  nova: Nova,
  clockWrong: () => boolean,
): EndedMigrations | null {
  const waits = (aggregate: string): boolean => aggregateConfig(config, aggregate).engine.foreignMoves === 'wait';
  return scope.some(waits) ? new EndedMigrations(nova, clockWrong) : null;
}

/** Null without aggregates. */
function historyReader(
  config: Config,
  aggregates: readonly string[],
  clock: Clock,
  prometheus: Prometheus,
): HistoryReader | null {
  const { engine, prometheus: asked } = config;
  if (aggregates.length === 0) return null;
  const horizons = aggregates.map((name) => aggregateConfig(config, name).engine.forecastHorizon);
  return new HistoryReader({
    prometheus,
    clock,
    horizonMs: Math.max(...horizons) * 1000,
    days: engine.forecastDays,
    concurrency: CONCURRENCY,
    deadlineMs: Math.max(engine.evaluationInterval, asked.timeout) * 1000,
  });
}
