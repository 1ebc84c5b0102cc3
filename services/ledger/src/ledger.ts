import { type LogGuard, reportSeen } from '@kronos/checkpoints';
import { awaitTrustedLog, holdThroughReplacement } from '@kronos/connect';
import { parseSubject, type StoredEvent } from '@kronos/contracts';
import type { ReplayedEvent } from '@kronos/eventlog';
import { attributes, type RunningService, spans, withSpan } from '@kronos/telemetry';
import { type Archiver, archiveWitness, startArchiver } from './archive/archive.ts';
import { addChecks } from './checks.ts';
import { scrape, startMeasures } from './measures.ts';
import { createCheckpointer } from './memory/checkpointer.ts';
import { foldLedger } from './memory/fold.ts';
import { type EventHistory, RECENT_EVENTS } from './memory/history.ts';
import type { LedgerInput } from './memory/input.ts';
import type { Notifier } from './notifications/notify.ts';
import { type Served, type ServedInput, servePeople } from './serve.ts';
import { traceArrival } from './spans.ts';

export type RunningLedger = RunningService & Pick<Notifier, 'deadSinks'> & Pick<Served, 'warm'>;

/** Folds the log, keeps checkpoints of it, and shows it to people. */
export async function startLedger(input: ServedInput): Promise<RunningLedger> {
  const { log, logger } = input;
  const guard = await trustedLog(input);
  const folding = await foldLedger(input, guard);
  const { folded, from, skew } = folding;
  const { view, verification } = folded;
  input.onVerification?.(verification);
  const level = view.at().sequence;
  lookBack(input, folding.history, from, level).catch((error: unknown) =>
    logger.debug({ err: error }, 'older events are not in memory'),
  );
  const archiver = await archiverOf(input, guard);
  const checkpointer = createCheckpointer(input, folding);
  await checkpointer.reportFolded();
  checkpointer.watch();
  const endMeasures = startMeasures(input, view);

  let stopping = false;
  // The view knows no trace contexts, so the arrivals are read beside it, from here on.
  async function trace(): Promise<void> {
    try {
      for await (const event of log.replay({ from: level + 1, to: Number.MAX_SAFE_INTEGER })) arrived(input, event);
    } catch (error) {
      // It ends with the connection.
      if (!stopping) throw error;
    }
  }

  /** Ends as the view does. When the log was replaced nothing of the new one may get into the old one's archive. */
  async function followed(): Promise<void> {
    try {
      for await (const { event } of view.changes())
        if (event.type === 'installation.created') await checkpointer.reportFolded();
    } catch (error) {
      await archiver?.stop();
      throw error;
    }
  }

  addChecks(input, { view, skew, archiver });
  const { notifier, changes, aside, names, warm } = await servePeople(input, folding);
  input.onScrape(() => scrape(input, { view, skew, notifier }));

  logger.info({ sequence: level }, 'folded');
  return {
    done: holdThroughReplacement(
      Promise.all([trace(), archiver?.done, followed()]).then(() => undefined),
      { guard, folded, clock: input.clock, stopping: input.stopping },
    ),
    warm,
    deadSinks: () => notifier.deadSinks(),
    async stop() {
      guard.close();
      verification.close();
      changes.close();
      names.close();
      await aside.close();
      endMeasures();
      stopping = true;
      const written = checkpointer.pause();
      await notifier.stop();
      await written;
      await archiver?.stop();
      await checkpointer.write();
      await view.close();
      await log.close();
    },
  };
}

/** Waits until the log is the one that the archive and the services have seen before. */
async function trustedLog({ log, options, by, clock, logger, http, stopping }: LedgerInput): Promise<LogGuard> {
  const own = options.archive === null ? null : await archiveWitness(options.archive);
  if (own !== null) await reportSeen(log, own, 'archive', { by, nowMs: clock.now() });
  return await awaitTrustedLog({
    log,
    clock,
    snapshotsOf: options.scope,
    own: own === null ? [] : [own],
    needsLedger: false,
    logger,
    http,
    stopping,
  });
}

/** People also want to see events before the checkpoint. */
async function lookBack({ log }: LedgerInput, seen: EventHistory, from: number, level: number): Promise<void> {
  const older: StoredEvent[] = [];
  const first = Math.max(1, level - RECENT_EVENTS + 1);
  for await (const stored of log.replay({ from: first, to: from - 1 })) older.push(stored);
  seen.prepend(older);
}

async function archiverOf(input: LedgerInput, guard: LogGuard): Promise<Archiver | null> {
  const { log, options, clock, logger, metrics, tracer } = input;
  if (options.archive === null) return null;
  return await startArchiver({ log, clock }, guard.identity, options.archive, {
    onSetAside: (dir) =>
      logger.warn(
        { dir },
        'the archive belongs to an abandoned log, as an operator stated: it was set aside, and a new one started',
      ),
    around: (sequence, write) =>
      withSpan(tracer, spans.archive, { attributes: { [attributes.sequence]: sequence } }, write),
    onWritten: (sequence) => metrics.archiveSequence.set(sequence, {}),
    onTrouble: (error) => logger.error({ err: error }, 'the archive cannot be written: the ledger retries'),
  });
}

/** Reports an event that cannot be read, and ends the trace of the one who wrote it. */
function arrived({ metrics, logger, tracer }: LedgerInput, event: ReplayedEvent): void {
  if (event.event.type === 'unreadable') {
    metrics.foldUnreadable.add(1, { family: parseSubject(event.subject)?.family ?? 'controls' });
    logger.error(
      { sequence: event.sequence, subject: event.subject, problem: event.event.problem },
      'an event cannot be read: its aggregate is not planned until a version of Kronos that can is installed',
    );
  }
  traceArrival(tracer, event);
}
