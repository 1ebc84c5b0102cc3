import {
  type FoldOptions,
  foldLog,
  type GuardOptions,
  type LogGuard,
  openGuard,
  type Verification,
  verifyInBackground,
} from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import { type EventLog, LogGap, type LogView } from '@kronos/eventlog';
import { installationAt, type LogState } from '@kronos/projections';
import { type HttpServer, type Instruments, type Logger, StartAgain } from '@kronos/telemetry';
import { healthCheck } from './nats.ts';

export type GuardInput = Omit<GuardOptions, 'onChange' | 'log'> & {
  readonly log: EventLog;
  readonly logger: Logger;
  readonly http: Pick<HttpServer, 'check'>;
  readonly stopping: AbortSignal;
};

/**
 * The guard of a service: it resolves when the log is the one that was seen before. Until then the service is not ready
 * and says why.
 *
 * @throws what `openGuard` throws; the signal's reason
 */
export async function awaitTrustedLog({ logger, http, stopping, ...options }: GuardInput): Promise<LogGuard> {
  const guard = await openGuard({
    ...options,
    onChange(problem) {
      if (problem === null) logger.warn('the log is no longer in doubt: going on');
      else
        logger.error({ code: 'KRONOS_LOG_NOT_STATED', problem }, 'the log is in doubt: nothing is planned or started');
    },
  });
  http.check('identity', () => healthCheck(guard.healthy()));
  await guard.settled(stopping);
  return guard;
}

/** Processes, by their HTTP servers, that found a checkpoint to be wrong: from then on they fold the log from its first event. */
const distrustful = new WeakSet<object>();

/**
 * The log folded from the newest checkpoint, which is verified in the background. The metric
 * `kronos_checkpoint_verified_sequence` says how far.
 */
export async function foldVerified(
  log: EventLog,
  {
    clock,
    logger,
    http,
    metrics,
    ...options
  }: FoldOptions & {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly http: Pick<HttpServer, 'check'>;
    readonly metrics: Pick<Instruments, 'checkpointVerified'>;
  },
): Promise<{ readonly view: LogView<LogState>; readonly verification: Verification }> {
  let checkpoint: LogState | null = null;
  const view = await foldLog(log, {
    ...options,
    checkpoints: !distrustful.has(http),
    onCheckpoint(found) {
      checkpoint = found;
    },
  });
  const verification = verifyInBackground(log, checkpoint, clock);
  let wrong: string | null = null;
  http.check('checkpoint', () => {
    metrics.checkpointVerified.set(verification.verified ? view.at().sequence : verification.verifiedTo, {});
    return healthCheck({ ok: wrong === null, detail: wrong ?? '' });
  });
  void verification.done.then((problem) => {
    wrong = problem;
    if (problem !== null) {
      distrustful.add(http);
      logger.error(
        { code: 'KRONOS_CHECKPOINT_WRONG', problem },
        'a checkpoint is not what the log says: nothing more is planned or started from it; the log is folded from its first event',
      );
    } else if (verification.verified && verification.checkpoint !== null)
      logger.info({ sequence: verification.checkpoint }, 'the checkpoint is verified');
  });
  return { view, verification };
}

/**
 * Settles as the work of a service does. When the log was replaced under it, or has lost events, the service waits, not
 * ready, until the log is the one that it has seen or a person has stated which it is; then it is to start again.
 *
 * @throws StartAgain, and what the work throws
 */
export async function holdThroughReplacement(
  work: Promise<void>,
  from: {
    readonly guard: LogGuard;
    readonly view: Pick<LogView<unknown>, 'at' | 'lagMs'>;
    readonly clock: { now(): number };
    readonly stopping: AbortSignal;
    readonly verification: Verification;
  },
): Promise<void> {
  const wrong = from.verification.done.then((problem) => {
    if (problem === null) return new Promise<never>(() => undefined);
    from.guard.condemn(problem);
    throw new StartAgain(problem);
  });
  try {
    await Promise.race([work, wrong]);
  } catch (error) {
    if (!(error instanceof LogGap)) throw error;
    const { guard, view, clock, stopping } = from;
    const { sequence } = view.at();
    guard.lost({
      source: 'this process',
      installationId: installationAt(guard.identity, sequence),
      sequence,
      // The last time that it was known to be level with the log that it had.
      seenAtMs: clock.now() - view.lagMs,
    });
    try {
      await guard.settled(stopping);
    } catch {
      return;
    }
    throw new StartAgain(error.message, { cause: error });
  }
}
