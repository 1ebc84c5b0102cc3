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
  /** The log was in doubt, and no longer is. */
  readonly onSettled?: () => void;
};

/**
 * The guard of a service: it resolves when the log is the one that was seen before. Until then the service is not ready
 * and says why.
 *
 * @throws what `openGuard` throws; the signal's reason
 */
export async function awaitTrustedLog({
  logger,
  http,
  stopping,
  onSettled,
  ...options
}: GuardInput): Promise<LogGuard> {
  const guard = await openGuard({
    ...options,
    onChange(problem) {
      if (problem === null) {
        logger.warn('the log is no longer in doubt: continuing');
        onSettled?.();
      } else
        logger.error({ code: 'KRONOS_LOG_NOT_STATED', problem }, 'the log is in doubt: nothing is planned or started');
    },
  });
  http.check('identity', () => healthCheck(guard.healthy()));
  await guard.settled(stopping);
  return guard;
}

/**
 * Why a process no longer trusts checkpoints, by its HTTP server: one that it started from was wrong. Until the process
 * is restarted it folds the log from its first event and is not ready, so that a person looks.
 */
const distrusted = new WeakMap<object, string>();

const CHECKPOINT_REMEDY =
  'This process has folded the log from its first event instead. Change the NATS credentials of the ledger, look at what was planned since this process started (kronos plans), then restart it';

/** The log as a service folds it. */
export type FoldedLog = {
  readonly view: LogView<LogState>;
  /** Of the checkpoint that the fold started from. */
  readonly verification: Verification;
  /** This process started from a wrong checkpoint before: the newest one on the stream may still be wrong. */
  readonly distrusted: boolean;
  /** Id of the installation that was in force at the last folded event; null: a log without one. */
  readonly installation: () => string | null;
};

/**
 * The log folded from the newest checkpoint, which is verified in the background. The metric
 * `kronos_checkpoint_verified_sequence` says how far.
 */
export async function foldVerified(
  log: EventLog,
  {
    guard,
    clock,
    logger,
    http,
    metrics,
    ...options
  }: FoldOptions & {
    readonly guard: Pick<LogGuard, 'identity'>;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly http: Pick<HttpServer, 'check'>;
    readonly metrics: Pick<Instruments, 'checkpointVerified'>;
  },
): Promise<FoldedLog> {
  let checkpoint: LogState | null = null;
  // The guard cannot tell later: it reads the log that is there now, and a log that replaced the folded one may be
  // named before the view notices.
  let installation: string | null = null;
  const view = await foldLog(log, {
    ...options,
    checkpoints: !distrusted.has(http),
    onCheckpoint(found) {
      checkpoint = found;
    },
    onStart(sequence) {
      installation = installationAt(guard.identity, sequence);
      options.onStart?.(sequence);
    },
    evolve(folder, stored) {
      if (stored.event.type === 'installation.created') installation = stored.event.data.installationId;
      return options.evolve === undefined ? folder.apply(stored) : options.evolve(folder, stored);
    },
  });
  const verification = verifyInBackground(log, checkpoint, clock);
  http.check('checkpoint', () => {
    metrics.checkpointVerified.set(verification.verified ? view.at().sequence : verification.verifiedTo, {});
    const wrong = distrusted.get(http);
    return healthCheck({ ok: wrong === undefined, detail: `${wrong}. ${CHECKPOINT_REMEDY}` });
  });
  void verification.done.then((problem) => {
    if (problem !== null) {
      distrusted.set(http, problem);
      logger.error(
        { code: 'KRONOS_CHECKPOINT_WRONG', problem },
        'a checkpoint contradicts the log: nothing is planned or started from it; the log is folded from its first event',
      );
    } else if (verification.verified && verification.checkpoint !== null)
      logger.info({ sequence: verification.checkpoint }, 'the checkpoint is verified');
  });
  return { view, verification, distrusted: distrusted.has(http), installation: () => installation };
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
    readonly folded: Pick<FoldedLog, 'view' | 'verification' | 'installation'>;
    readonly clock: { now(): number };
    readonly stopping: AbortSignal;
  },
): Promise<void> {
  const wrong = from.folded.verification.done.then((problem) => {
    if (problem === null) return new Promise<never>(() => undefined);
    from.guard.condemn(problem);
    throw new StartAgain(problem);
  });
  try {
    await Promise.race([work, wrong]);
  } catch (error) {
    if (!(error instanceof LogGap)) throw error;
    const { guard, folded, clock, stopping } = from;
    const { view } = folded;
    const { sequence } = view.at();
    guard.lost({
      source: 'this process',
      installationId: folded.installation(),
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
