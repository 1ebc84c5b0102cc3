import { reportSeen, writeCheckpoint } from '@kronos/checkpoints';
import { anchorOf } from '@kronos/projections';
import { attributes, spans, withSpan } from '@kronos/telemetry';
import type { Folding } from './fold.ts';
import type { LedgerInput } from './input.ts';

/** Interval between two looks whether a checkpoint is due. */
const LOOK_MS = 1000;

export type Checkpointer = {
  /** Tells the other services that this log is the one that the ledger folds and keeps an archive of, and how far. */
  reportFolded(): Promise<void>;
  /** From now on, writes a checkpoint whenever one is due. */
  watch(): void;
  /** Ends the watch, and waits for a checkpoint that is being written. */
  pause(): Promise<void>;
  /** Writes a checkpoint of the state as it is now, unless nothing was folded since the last one. Never throws. */
  write(): Promise<void>;
};

/** Writes checkpoints of the folded state: after a time, or after a number of events. */
export function createCheckpointer(input: LedgerInput, { folded, from, last }: Folding): Checkpointer {
  const { log, options, by, logger, metrics, tracer } = input;
  const { view, verification, distrusted } = folded;
  const clock = (): number => input.clock.now();
  // A wrong checkpoint is replaced as soon as the log goes on: another one of the same event would be a duplicate.
  let written = distrusted ? view.at().sequence : from - 1;
  let writtenAtMs = distrusted ? Number.NEGATIVE_INFINITY : clock();
  let writing: Promise<void> | null = null;
  let endLooks: (() => void) | null = null;

  const reportFolded = (): Promise<void> =>
    reportSeen(
      log,
      { installationId: folded.installation(), sequence: view.at().sequence, seenAtMs: last()?.storedAt ?? clock() },
      'log',
      { by, nowMs: clock() },
    );

  async function checkpoint(): Promise<void> {
    // A checkpoint that was folded on a wrong one would be wrong too.
    if (!verification.verified) return;
    const now = view.at().state;
    const newest = last();
    if (newest === null || now.sequence <= written || now.aggregates.size === 0) return;
    const anchor = anchorOf(newest);
    const named = folded.installation();
    await withSpan(tracer, spans.checkpoint, { attributes: { [attributes.sequence]: now.sequence } }, () =>
      writeCheckpoint(log, now, { anchor, by, nowMs: clock(), installationId: named }),
    );
    await reportFolded();
    written = now.sequence;
    for (const aggregate of now.aggregates.keys()) metrics.checkpointSequence.set(written, { aggregate });
    logger.debug({ sequence: written }, 'checkpoint written');
  }

  function write(): Promise<void> {
    writing ??= checkpoint()
      .catch((error: unknown) =>
        logger.warn({ err: error }, 'the checkpoint could not be written; the next one is tried'),
      )
      .finally(() => {
        writing = null;
        writtenAtMs = clock();
      });
    return writing;
  }

  function look(): void {
    const events = view.at().sequence - written;
    const due = clock() - writtenAtMs >= options.checkpointIntervalSeconds * 1000;
    if (events > 0 && (due || events >= options.checkpointEvents)) void write();
  }

  return {
    reportFolded,
    watch() {
      endLooks = input.clock.every(LOOK_MS, look);
    },
    async pause() {
      endLooks?.();
      await writing;
    },
    write,
  };
}
