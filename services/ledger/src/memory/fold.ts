import type { LogGuard } from '@kronos/checkpoints';
import { type FoldedLog, foldVerified } from '@kronos/connect';
import type { StoredEvent } from '@kronos/contracts';
import { type Following, followCommands } from '@kronos/operator';
import { type EventHistory, history } from './history.ts';
import type { LedgerInput } from './input.ts';
import { type SkewWatch, skewWatch } from './skew.ts';

/** The consoles that follow the log. */
type Consoles = { publish(event: StoredEvent): void };

/** The log as the ledger folds it, with what it keeps beside the state. */
export type Folding = {
  readonly folded: FoldedLog;
  /** The first event after the checkpoint that the fold started from. */
  readonly from: number;
  readonly history: EventHistory;
  readonly following: Following;
  readonly skew: SkewWatch;
  /** The event that was folded last; null: none. */
  readonly last: () => StoredEvent | null;
  /** Events that are folded from now on go to the consoles that follow them. */
  publishTo(consoles: Consoles): void;
};

/** Folds the log from the newest checkpoint to its end, and follows it from there. */
export async function foldLedger(input: LedgerInput, guard: LogGuard): Promise<Folding> {
  const { log, options, clock, logger, http, metrics } = input;
  const seen = history();
  const following = followCommands();
  const skew = skewWatch(options.maxClockSkewSeconds);
  let from = 1;
  let watching = false;
  let last: StoredEvent | null = null;
  let consoles: Consoles | null = null;
  const folded = await foldVerified(log, {
    guard,
    clock,
    logger,
    http,
    metrics,
    onSkipped({ sequence, problem, otherVersion }) {
      if (!otherVersion) metrics.checkpointsSkipped.add(1, {});
      logger[otherVersion ? 'info' : 'warn']({ sequence, problem }, 'a checkpoint is skipped');
    },
    onStart(sequence) {
      from = sequence + 1;
      logger.info(
        { sequence },
        sequence === 0 ? 'folding the log from its first event' : 'folding the log from a checkpoint',
      );
    },
    evolve(folder, stored) {
      following.evolve(folder, stored);
      last = stored;
      seen.add(stored);
      consoles?.publish(stored);
      // Older events say nothing about clocks now: a restored log has the timestamps of its restore.
      const wrong = watching ? skew.see(stored, clock.now()) : null;
      if (wrong !== null)
        logger.warn(
          { writer: wrong.writer, seconds: wrong.seconds, sequence: stored.sequence },
          "a writer's clock and the NATS server's differ by more than max_clock_skew",
        );
      return folder;
    },
  });
  watching = true;
  return {
    folded,
    from,
    history: seen,
    following,
    skew,
    last: () => last,
    publishTo(to) {
      consoles = to;
    },
  };
}
