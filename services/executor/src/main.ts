import { type Config, storageLimits } from '@kronos/config';
import { connectLog, openCloud } from '@kronos/connect';
import { streamNames, UNASSIGNED } from '@kronos/contracts';
import { aggregateState, createFolder, type Folder, slots } from '@kronos/projections';
import { commandLine, runService, kronosVersion as version } from '@kronos/telemetry';
import { systemClock } from './clock.ts';
import { UnknownAggregate } from './errors.ts';
import { taskMeters } from './meters.ts';
import { taskOptions } from './options.ts';
import { providers } from './providers.ts';
import { createExecutor } from './worker.ts';

const { file, values } = commandLine(
  'executor',
  { aggregate: { type: 'string', multiple: true }, unassigned: { type: 'boolean' } },
  [
    '--aggregate NAME   serve this aggregate; repeatable (default: all in scope)',
    '--unassigned       serve the pool of hypervisors that belong to no aggregate',
  ],
);

/** Tasks held at once, the waiting ones included. */
const CONCURRENCY = 2000;

/** The aggregates that this executor serves: those named on its command line, else all in scope. */
function served(config: Config): string[] {
  const scope = [...config.engine.aggregates, ...(config.engine.includeUnassignedHosts ? [UNASSIGNED] : [])];
  const named = [values.aggregate ?? []].flat().filter((name) => typeof name === 'string');
  if (values.unassigned === true) named.push(UNASSIGNED);
  const unknown = named.find((name) => !scope.includes(name));
  if (unknown !== undefined) throw new UnknownAggregate(unknown, scope);
  return named.length === 0 ? scope : [...new Set(named)];
}

const toCheck = ({ ok, detail }: { ok: boolean; detail: string }) => (ok ? ({ ok } as const) : { ok, reason: detail });

process.exit(
  await runService(
    {
      name: 'executor',
      version,
      async start({ config, log: logger, metrics, http, instance, tracer, onScrape }) {
        const aggregates = served(config);
        const log = await connectLog(config, 'executor', logger);
        await log.verify({
          streams: [streamNames.log, streamNames.migrations],
          buckets: [],
          taskConsumers: aggregates,
          limits: storageLimits(config),
          ackWaitSeconds: config.nats.ackWait,
        });
        const view = await log.view<Folder>({
          initial: createFolder(),
          evolve: (folder, stored) => folder.apply(stored),
        });
        await view.refresh();
        const cloud = openCloud(config, process.env, metrics);
        const executor = createExecutor({
          log,
          view,
          aggregates,
          cloud: { ...cloud, providerOf: providers(cloud.nova, systemClock) },
          check: { aggregates: config.engine.aggregates, optOut: config.engine.optOut, force: config.executor.force },
          options: taskOptions(config),
          caps: {
            maxConcurrentMigrations: config.executor.maxConcurrentMigrations,
            maxOutboundPerHost: config.executor.maxOutboundPerHost,
            maxInboundPerHost: config.executor.maxInboundPerHost,
            maxConcurrentPerGroup: config.executor.maxConcurrentPerGroup,
          },
          ackWaitMs: config.nats.ackWait * 1000,
          concurrency: CONCURRENCY,
          by: { service: 'executor', instance, version },
          clock: systemClock,
          logger,
          tracer,
          meters: taskMeters(metrics),
        });
        logger.info({ aggregates, dryRun: config.executor.dryRun, force: config.executor.force }, 'serving');
        http.check('nats', () => toCheck(log.healthy()));
        http.check('log', () => toCheck(view.healthy()));
        onScrape(() => {
          metrics.foldSequence.set(view.sequence, {});
          const state = view.state.snapshot();
          for (const aggregate of aggregates)
            metrics.migrationsInFlight.set(slots(aggregateState(state, aggregate)).total, { aggregate });
        });
        return {
          done: executor.done,
          async stop() {
            await executor.stop();
            await view.close();
            await log.close();
            await cloud.close();
          },
        };
      },
    },
    { file, env: process.env },
  ),
);
