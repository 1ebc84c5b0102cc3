import { systemClock } from '@kronos/clock';
import { scopeOf, storageLimits } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import { bucketNames, streamNames } from '@kronos/contracts';
import { commandLine, runService, kronosVersion as version } from '@kronos/telemetry';
import { startLedger } from './ledger.ts';

const { file } = commandLine('ledger');

process.exit(
  await runService(
    {
      name: 'ledger',
      version,
      async start({ config, log: logger, metrics, http, instance, tracer, onScrape }) {
        const { engine, ledger } = config;
        const log = await connectLog(config, 'ledger', logger, { metrics, tracer });
        await log.verify({
          streams: [streamNames.log, streamNames.checkpoints],
          buckets: [bucketNames.checkpoints],
          taskConsumers: [],
          limits: storageLimits(config),
        });
        return await startLedger({
          log,
          options: {
            scope: scopeOf(config),
            checkpointIntervalSeconds: ledger.checkpointInterval,
            checkpointEvents: ledger.checkpointEvents,
            maxClockSkewSeconds: engine.maxClockSkew,
            console: ledger.console,
            archive:
              ledger.archiveDir === null ? null : { dir: ledger.archiveDir, maxFileBytes: ledger.archiveMaxFileBytes },
          },
          by: { service: 'ledger', instance, version },
          logger,
          metrics,
          onScrape,
          http,
          tracer,
          clock: systemClock,
        });
      },
    },
    { file, env: process.env },
  ),
);
