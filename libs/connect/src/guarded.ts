import { type GuardOptions, type LogGuard, openGuard } from '@kronos/checkpoints';
import { type EventLog, LogGap, type LogView } from '@kronos/eventlog';
import { installationAt } from '@kronos/projections';
import { type HttpServer, type Logger, StartAgain } from '@kronos/telemetry';
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
  },
): Promise<void> {
  try {
    await work;
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
