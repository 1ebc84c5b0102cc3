import { type Config, scopeOf, storageLimits } from '@kronos/config';
import { joinLog, type Outside, realOutside } from '@kronos/connect';
import { streamNames } from '@kronos/contracts';
import type { LogPosition } from '@kronos/eventlog';
import { type AllCaps, aggregateState, type LogState, slots } from '@kronos/projections';
import { type Instruments, type ServiceDefinition, kronosVersion as version } from '@kronos/telemetry';
import { checkedCloud } from './checkedCloud.ts';
import { UnknownAggregate } from './errors.ts';
import { taskMeters } from './meters.ts';
import { taskOptions } from './options.ts';
import { tracedStages } from './stageSpans.ts';
import { createExecutor, type ExecutorDeps } from './worker.ts';

/** Tasks held at once, the waiting ones included. */
const CONCURRENCY = 2000;

/**
 * The aggregates that an executor serves: those named on its command line, else all in scope.
 *
 * @throws UnknownAggregate
 */
export function servedAggregates(config: Pick<Config, 'engine'>, named: readonly string[]): string[] {
  const scope = scopeOf(config);
  const unknown = named.find((name) => !scope.includes(name));
  if (unknown !== undefined) throw new UnknownAggregate(unknown, scope);
  return named.length === 0 ? scope : [...new Set(named)];
}

const checkOptions = ({ engine, executor }: Config): ExecutorDeps['check'] => ({
  aggregates: engine.aggregates,
  optOut: engine.optOut,
  force: executor.force,
});

/** The limits of moves at once; those of moves between cells only where such moves are on. */
const capsOf = ({ cells, executor }: Pick<Config, 'cells' | 'executor'>): AllCaps => {
  const { maxConcurrentMigrations, maxOutboundPerHost, maxInboundPerHost, maxConcurrentPerGroup } = executor;
  const caps = { maxConcurrentMigrations, maxOutboundPerHost, maxInboundPerHost, maxConcurrentPerGroup };
  if (cells.aggregates.length === 0) return caps;
  return {
    ...caps,
    cells: {
      maxConcurrentMigrations: cells.maxConcurrentResizes,
      maxOutboundPerHost: cells.maxOutboundPerHost,
      maxInboundPerHost: cells.maxInboundPerHost,
      maxConcurrentPerGroup,
    },
  };
};

/** Where the fold of the log stands, and the moves that take slots there. */
function measureFold(
  { state, sequence }: LogPosition<LogState>,
  aggregates: readonly string[],
  metrics: Instruments,
): void {
  metrics.foldSequence.set(sequence, {});
  for (const aggregate of aggregates)
    metrics.migrationsInFlight.set(slots(aggregateState(state, aggregate)).total, { aggregate });
}

/** The executor as a service; `named`: the aggregates of its command line. */
export const executorService = (
  named: readonly string[],
  { clock, connectLog, openCloud, pace }: Outside = realOutside,
): ServiceDefinition => ({
  name: 'executor',
  version,
  async start({ config, log: logger, metrics, http, instance, tracer, onScrape, stopping }) {
    const aggregates = servedAggregates(config, named);
    const log = await connectLog(config, 'executor', logger, { metrics, tracer });
    await log.verify({
      streams: [streamNames.log, streamNames.migrations, streamNames.services],
      buckets: [],
      taskConsumers: aggregates,
      limits: storageLimits(config),
      ackWaitSeconds: config.nats.ackWait,
    });
    const by = { service: 'executor', instance, version } as const;
    const folded = await joinLog({
      log,
      config,
      by,
      aggregates,
      clock,
      pace,
      logger,
      http,
      metrics,
      stopping,
      // Its NATS user may not read snapshots: the planner compares them.
      snapshotsOf: [],
    });
    const { view, guard, clockCheck } = folded;
    const cloud = openCloud(config, metrics);
    const { executor: options } = config;
    const executor = createExecutor({
      log,
      view,
      guard,
      aggregates,
      cloud: checkedCloud(cloud, config.nova.sriovPorts, clock),
      check: checkOptions(config),
      options: taskOptions(config),
      caps: capsOf(config),
      ackWaitMs: config.nats.ackWait * 1000,
      concurrency: CONCURRENCY,
      by,
      clock,
      clockProblem: clockCheck.problem,
      logger,
      tracer,
      meters: tracedStages(taskMeters(metrics), tracer),
    });
    logger.info({ aggregates, dryRun: options.dryRun, force: options.force }, 'serving');
    http.check('clock', clockCheck.check);
    onScrape(() => measureFold(view.at(), aggregates, metrics));
    return {
      done: folded.hold(executor.done),
      async stop() {
        folded.unwatch();
        await executor.stop();
        await folded.close();
        await cloud.close();
      },
    };
  },
});
