import type { LogGuard } from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import type { Config } from '@kronos/config';
import type { Actor } from '@kronos/contracts';
import type { EventLog, LogView } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import type { HttpServer, Instruments, Logger } from '@kronos/telemetry';
import { type ClockCheck, checkClock, logClock } from './clockCheck.ts';
import { awaitTrustedLog, foldVerified, holdThroughReplacement } from './guarded.ts';
import type { Heartbeats } from './heartbeat.ts';

export type JoinInput = {
  readonly log: EventLog;
  readonly config: Config;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly http: Pick<HttpServer, 'check'>;
  readonly metrics: Pick<Instruments, 'checkpointVerified' | 'clockSkew'>;
  readonly stopping: AbortSignal;
  readonly heartbeats: Pick<Heartbeats, 'verify'>;
  /** Aggregates whose snapshots are compared with what was seen; none where the NATS user may not read them. */
  readonly snapshotsOf: readonly string[];
};

export type JoinedLog = {
  readonly view: LogView<LogState>;
  readonly guard: LogGuard;
  readonly clockCheck: ClockCheck;
  /** See {@link holdThroughReplacement}. */
  readonly hold: (work: Promise<void>) => Promise<void>;
  /** Stops the watchers of the log and the clock. The view stays open until running work has ended. */
  readonly unwatch: () => void;
};

/**
 * The log for a service that decides or acts on it. It resolves when the log is the one that was seen before, is folded from
 * a checkpoint (which is verified in the background), and the clock was compared with the server's.
 *
 * @throws what `awaitTrustedLog`, `foldVerified` and `checkClock` throw
 */
export async function joinLog(input: JoinInput): Promise<JoinedLog> {
  const { log, config, by, clock, logger, http, metrics, stopping, heartbeats, snapshotsOf } = input;
  const guard = await awaitTrustedLog({
    log,
    clock,
    snapshotsOf,
    needsLedger: config.ledger.archiveDir !== null,
    logger,
    http,
    stopping,
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
    onProblem: logClock(logger),
  });
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
  };
}
