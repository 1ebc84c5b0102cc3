import { systemClock } from '@kronos/clock';
import { scopeOf, storageLimits } from '@kronos/config';
import { checkClock, connectLog, logClock, reportService } from '@kronos/connect';
import { bucketNames, streamNames } from '@kronos/contracts';
import { commandLine, runService, kronosVersion as version } from '@kronos/telemetry';
import { startLedger } from './ledger.ts';

const { file } = commandLine('ledger');

process.exit(
  await runService(
    {
      name: 'ledger',
      version,
      async start({ config, log: logger, metrics, http, instance, tracer, onScrape, stopping }) {
        const { engine, ledger } = config;
        const log = await connectLog(config, 'ledger', logger, { metrics, tracer });
        await log.verify({
          streams: [streamNames.log, streamNames.checkpoints, streamNames.services],
          buckets: [bucketNames.checkpoints],
          taskConsumers: [],
          limits: storageLimits(config),
        });
        const by = { service: 'ledger', instance, version } as const;
        const aggregates = scopeOf(config);
        const heartbeats = reportService({ log, http, config, by, aggregates, stopping, logger, clock: systemClock });
        const clockCheck = await checkClock({
          log,
          by,
          clock: systemClock,
          maxSkewMs: engine.maxClockSkew * 1000,
          onProblem: (problem) => logClock(logger, problem),
        });
        const running = await startLedger({
          log,
          options: {
            scope: aggregates,
            checkpointIntervalSeconds: ledger.checkpointInterval,
            checkpointEvents: ledger.checkpointEvents,
            maxClockSkewSeconds: engine.maxClockSkew,
            console: ledger.console,
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
          clock: systemClock,
          clockProblem: clockCheck.problem,
        });
        return {
          ...running,
          async stop() {
            clockCheck.stop();
            await heartbeats.stop();
            await running.stop();
          },
        };
      },
    },
    { file, env: process.env },
  ),
);
