import { scopeOf, storageLimits } from '@kronos/config';
import {
  checkClock,
  consoleConfig,
  logClock,
  type Outside,
  openIdentity,
  realOutside,
  reportService,
} from '@kronos/connect';
import { bucketNames, streamNames } from '@kronos/contracts';
import { type ServiceDefinition, kronosVersion as version } from '@kronos/telemetry';
import { type RunningLedger, startLedger } from './ledger.ts';

/** The ledger as a service. */
export const ledgerService = ({ clock, connectLog, pace }: Outside = realOutside): ServiceDefinition => ({
  name: 'ledger',
  version,
  async start({ config, log: logger, metrics, http, instance, tracer, onScrape, stopping }) {
    const { engine, ledger, console: own, http: server } = config;
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
    // People's commands go over a connection of their own, whose user may write them.
    const commands = own.acting
      ? await connectLog(consoleConfig(config, 'console'), 'console', logger, { metrics, tracer })
      : null;
    const skips =
      own.acting && own.custodianRoles.length > 0
        ? await connectLog(consoleConfig(config, 'custodian'), 'custodian', logger, { metrics, tracer })
        : null;
    const identity = own.acting ? openIdentity(config, metrics) : null;
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
      acting:
        commands === null || identity === null
          ? null
          : {
              options: {
                userDomainName: own.userDomainName,
                projectName: own.projectName ?? '',
                projectDomainName: own.projectDomainName,
                roles: own.roles,
                custodianRoles: own.custodianRoles,
                cells: config.cells.aggregates.map(({ aggregate }) => aggregate),
                idleMs: own.idleTimeout * 1000,
                maxSessions: own.maxSessions,
                allowedHosts: server.allowedHosts,
              },
              identity,
              log: commands,
              custody: skips,
            },
      onVerification: heartbeats.verify,
    });
    running = started;
    return {
      ...started,
      async stop() {
        clockCheck.stop();
        await heartbeats.stop();
        await started.stop();
        await identity?.close();
        await commands?.close();
        await skips?.close();
      },
    };
  },
});
