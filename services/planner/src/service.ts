import { engineOptions, scopeOf, storageLimits } from '@kronos/config';
import { healthCheck, joinLog, type Outside, realOutside } from '@kronos/connect';
import { bucketNames, partCodes, streamNames } from '@kronos/contracts';
import { type Decider, decider } from '@kronos/cycle';
import type { EventLog, LogView } from '@kronos/eventlog';
import {
  checkOf,
  type Instruments,
  type Logger,
  type ServiceDefinition,
  kronosVersion as version,
} from '@kronos/telemetry';
import { createPlanner } from './loop.ts';
import { plannerMeters } from './meters.ts';

const noneOf = (problems: readonly string[]) => healthCheck({ ok: problems.length === 0, detail: problems.join('; ') });

type LogMeasured = {
  readonly log: Pick<EventLog, 'usage'>;
  readonly view: Pick<LogView<unknown>, 'at'>;
  readonly metrics: Instruments;
  readonly logger: Logger;
};

/** Figures of the log and of its fold, as a scrape finds them. */
function measureLog({ log, view, metrics, logger }: LogMeasured): void {
  metrics.foldSequence.set(view.at().sequence, {});
  const measure = async (): Promise<void> => {
    const usage = await log.usage(streamNames.log);
    metrics.foldLag.set(Math.max(0, usage.lastSequence - view.at().sequence), {});
    metrics.logBytes.set(usage.bytes, {});
    metrics.logMaxBytes.set(usage.maxBytes, {});
  };
  // Figures from the server are in the next scrape; while it does not answer the last figures stand.
  measure().catch((error: unknown) => logger.debug({ err: error }, 'the size of the log could not be read'));
}

/**
 * The planner as a service.
 *
 * @param deciderOf makes the decider for `[engine] search_threads`
 */
export const plannerService = (
  { clock, connectLog, pace }: Outside = realOutside,
  deciderOf: (threads: number) => Decider = decider,
): ServiceDefinition => ({
  name: 'planner',
  version,
  async start({ config, log: logger, metrics, http, instance, tracer, onScrape, stopping }) {
    const aggregates = scopeOf(config);
    const log = await connectLog(config, 'planner', logger, { metrics, tracer });
    await log.verify({
      streams: [streamNames.log, streamNames.snapshots, streamNames.migrations, streamNames.services],
      buckets: [bucketNames.snapshots, bucketNames.details],
      taskConsumers: aggregates,
      limits: storageLimits(config),
      ackWaitSeconds: config.nats.ackWait,
    });
    const by = { service: 'planner', instance, version } as const;
    let lookAgain = (): void => undefined;
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
      snapshotsOf: aggregates,
      onSettled: () => lookAgain(),
    });
    const { view, guard, clockCheck } = folded;
    const planner = createPlanner({
      log,
      view,
      guard,
      aggregates,
      optionsOf: (aggregate) => engineOptions(config, aggregate),
      decider: deciderOf(config.engine.searchThreads),
      by,
      logger,
      tracer,
      meters: plannerMeters(metrics),
      clock,
      clockProblem: clockCheck.problem,
    });
    ({ lookAgain } = planner);
    http.check('clock', () => {
      const own = clockCheck.check();
      return own.ok ? checkOf(planner.misdated().filter(({ code }) => code !== partCodes.storedLate)) : own;
    });
    http.check('options', () => noneOf(planner.yielding()));
    http.check('decisions', () => {
      const late = planner.misdated().filter(({ code }) => code === partCodes.storedLate);
      return checkOf([...planner.slow(), ...late]);
    });
    onScrape(() => measureLog({ log, view, metrics, logger }));
    return {
      done: folded.hold(planner.run()),
      async stop() {
        folded.unwatch();
        await planner.stop();
        await folded.close();
      },
    };
  },
});
