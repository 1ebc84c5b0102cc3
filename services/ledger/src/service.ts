import { scopeOf, storageLimits } from '@kronos/config';
import {
  checkClock,
  consoleConfig,
  logClock,
  logDurability,
  type Outside,
  openIdentity,
  openRegions,
  realOutside,
  reportService,
} from '@kronos/connect';
import { bucketNames, streamNames } from '@kronos/contracts';
import { type ServiceContext, type ServiceDefinition, kronosVersion as version } from '@kronos/telemetry';
import type { Acting } from './acting/deps.ts';
import { type RunningLedger, startLedger } from './ledger.ts';

/** Opens what people's acts need; their commands go over connections of their own, whose users may write them. */
async function openActing(
  { config, log: logger, metrics, tracer }: Pick<ServiceContext, 'config' | 'log' | 'metrics' | 'tracer'>,
  connectLog: Outside['connectLog'],
): Promise<Acting & { readonly close: () => Promise<void> }> {
  const { console: own, cells, http } = config;
  const log = await connectLog(consoleConfig(config, 'console'), 'console', logger, { metrics, tracer });
  const custody =
    own.custodianRoles.length > 0
      ? await connectLog(consoleConfig(config, 'custodian'), 'custodian', logger, { metrics, tracer })
      : null;
  const identity = openIdentity(config, metrics);
  return {
    options: {
      userDomainName: own.userDomainName,
      projectName: own.projectName ?? '',
      projectDomainName: own.projectDomainName,
      roles: own.roles,
      custodianRoles: own.custodianRoles,
      cells: cells.aggregates.map(({ aggregate }) => aggregate),
      idleMs: own.idleTimeout * 1000,
      maxSessions: own.maxSessions,
      allowedHosts: http.allowedHosts,
    },
    identity,
    log,
    custody,
    async close() {
      await identity.close();
      await log.close();
      await custody?.close();
    },
  };
}

/** The ledger as a service. */
export const ledgerService = ({ clock, connectLog, pace }: Outside = realOutside): ServiceDefinition => ({
  name: 'ledger',
  version,
  async start({ config, log: logger, metrics, http, instance, tracer, onScrape, stopping }) {
    const { engine, ledger, console: own } = config;
    // One service tells it for all.
    void logDurability(config.nats.monitoring, logger);
    const log = await connectLog(config, 'ledger', logger, { metrics, tracer });
    await log.verify({
      streams: [streamNames.log, streamNames.checkpoints, streamNames.services, streamNames.alarms],
      buckets: [bucketNames.checkpoints],
      taskConsumers: [],
      // An Alertmanager gets every alert repeatedly, so it needs no durables. They are created for all sinks alike.
      sinks: [...config.sinks.keys()],
      limits: storageLimits(config),
    });
    const by = { service: 'ledger', instance, version } as const;
    const aggregates = scopeOf(config);
    let running: RunningLedger | null = null;
    const sinks = () => running?.deadSinks() ?? [];
    const heartbeats = reportService({ log, http, config, by, aggregates, stopping, logger, clock, pace, sinks });
    const onProblem = logClock(logger);
    const maxSkewMs = engine.maxClockSkew * 1000;
    const clockCheck = await checkClock({ log, by, clock, metrics, maxSkewMs, onProblem });
    const acting = own.acting ? await openActing({ config, log: logger, metrics, tracer }, connectLog) : null;
    const regions = openRegions(config, clock);
    const started = await startLedger({
      log,
      options: {
        scope: aggregates,
        checkpointIntervalSeconds: ledger.checkpointInterval,
        checkpointEvents: ledger.checkpointEvents,
        maxClockSkewSeconds: engine.maxClockSkew,
        console: ledger.console,
        sinks: config.sinks,
        archive:
          ledger.archiveDir === null ? null : { dir: ledger.archiveDir, maxFileBytes: ledger.archiveMaxFileBytes },
      },
      by,
      logger,
      metrics,
      onScrape,
      http,
      tracer,
      stopping,
      clock,
      ownClock: clockCheck,
      acting,
      regions,
      onVerification: heartbeats.verify,
    });
    running = started;
    return {
      ...started,
      async stop() {
        clockCheck.stop();
        await heartbeats.stop();
        await started.stop();
        await acting?.close();
        await regions.close();
      },
    };
  },
});
