import type { LogGuard } from '@kronos/checkpoints';
import type { LogView } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import type { Instruments } from '@kronos/telemetry';
import { type ClockCheck, checkClock, logClock } from './clockCheck.ts';
import { awaitTrustedLog, foldVerified, holdThroughReplacement } from './guarded.ts';
import { type ReportInput, reportService } from './heartbeat.ts';
import { healthCheck } from './nats.ts';

export type JoinInput = Omit<ReportInput, 'sinks'> & {
  readonly metrics: Pick<Instruments, 'checkpointVerified' | 'clockSkew'>;
  /** Aggregates whose snapshots are compared with what was seen; none where the NATS user may not read them. */
  readonly snapshotsOf: readonly string[];
  /** The log or the own clock was in doubt, and no longer is. */
  readonly onSettled?: () => void;
};

export type JoinedLog = {
  readonly view: LogView<LogState>;
  readonly guard: LogGuard;
  readonly clockCheck: ClockCheck;
  /** See {@link holdThroughReplacement}. */
  readonly hold: (work: Promise<void>) => Promise<void>;
  /** Stops the watchers of the log and the clock. The view stays open until running work has ended. */
  readonly unwatch: () => void;
  /** Sends the last heartbeat, and closes the view and the log. Call it when running work has ended. */
  readonly close: () => Promise<void>;
};

/**
 * The log for a service that decides or acts on it. From this call on, the service sends heartbeats. Resolves when the log is the one that
 * was seen before, is folded from a checkpoint (which is verified in the background), and the clock was compared with the server's. Adds
 * the readiness checks `nats` and `log`.
 *
 * @throws what `awaitTrustedLog`, `foldVerified` and `checkClock` throw
 */
export async function joinLog(input: JoinInput): Promise<JoinedLog> {
  const { log, config, by, clock, logger, http, metrics, stopping, snapshotsOf, onSettled } = input;
  const heartbeats = reportService(input);
  const guard = await awaitTrustedLog({
    log,
    clock,
    snapshotsOf,
    needsLedger: config.ledger.archiveDir !== null,
    logger,
    http,
    stopping,
    ...(onSettled === undefined ? {} : { onSettled }),
  });
  const folded = await foldVerified(log, {
    guard,
    clock,
    logger,
    http,
    metrics,
    onSkipped: ({ otherVersion, ...skipped }) =>
      logger[otherVersion ? 'info' : 'warn'](skipped, 'a checkpoint is skipped'),
  });
  const { view, verification } = folded;
  heartbeats.verify(verification);
  const clockCheck = await checkClock({
    log,
    view,
    by,
    clock,
    metrics,
    maxSkewMs: config.engine.maxClockSkew * 1000,
    onProblem(problem) {
      logClock(logger)(problem);
      if (problem === null) onSettled?.();
    },
  });
  http.check('nats', () => healthCheck(log.healthy()));
  http.check('log', () => healthCheck(view.healthy()));
  return {
    view,
    guard,
    clockCheck,
    hold: (work) => holdThroughReplacement(work, { guard, folded, clock, stopping }),
    unwatch() {
      clockCheck.stop();
      guard.close();
      verification.close();
    },
    async close() {
      await heartbeats.stop();
      await view.close();
      await log.close();
    },
  };
}
