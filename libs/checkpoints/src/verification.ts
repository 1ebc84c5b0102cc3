import type { Clock } from '@kronos/clock';
import { canonicalJson, errorText } from '@kronos/contracts';
import { Closed, type EventLog, LogGap, StreamUnavailable } from '@kronos/eventlog';
import { createFolder, type LogState, toParts } from '@kronos/projections';

/** Events folded at a stretch, and the pause after them: everything else that the process does comes first. */
const BATCH = 200;
const PAUSE_MS = 5;
/** Pause after a replay that the server broke off: verification starts again. */
const RETRY_MS = 1_000;

/** The progress of comparing a checkpoint, from which a fold started, with the log itself. */
export interface Verification {
  /** Sequence of the checkpoint; null: the fold started from the first event, and there is nothing to verify. */
  readonly checkpoint: number | null;
  /** The log was folded again up to here. */
  readonly verifiedTo: number;
  /** Resolves with null when the checkpoint matches the log (or verifying was ended), else with what differs. */
  readonly done: Promise<string | null>;
  /** The checkpoint matches the log. */
  readonly verified: boolean;
  close(): void;
}

/**
 * Folds the log from its first event up to a checkpoint, at low priority, and compares the two. A checkpoint is a cache
 * and proves nothing: everyone with the ledger's credentials can write anything into it.
 */
export function verifyInBackground(
  log: Pick<EventLog, 'replay'>,
  checkpoint: LogState | null,
  clock: Pick<Clock, 'sleep'>,
): Verification {
  const ending = new AbortController();
  const pause = (): Promise<void> => clock.sleep(PAUSE_MS, ending.signal);
  let verifiedTo = 0;
  let verified = checkpoint === null;

  async function compare(wanted: LogState): Promise<string | null> {
    const folder = createFolder();
    for await (const stored of log.replay({ to: wanted.sequence })) {
      folder.apply(stored);
      if (stored.sequence % BATCH !== 0) continue;
      verifiedTo = stored.sequence;
      await pause();
      if (ending.signal.aborted) return null;
    }
    const folded = new Map(toParts(folder.snapshot(), '').map((part) => [part.aggregate, part.state]));
    const stored = toParts(wanted, '');
    for (const { aggregate, state } of stored) {
      const own = folded.get(aggregate);
      folded.delete(aggregate);
      if (own === undefined) return `the log says nothing of ${aggregate}, and the checkpoint does`;
      if (canonicalJson(own) !== canonicalJson(state)) return `its state of ${aggregate} differs from the log`;
      await pause();
    }
    const [missing] = folded.keys();
    if (missing !== undefined) return `it lacks ${missing}`;
    verifiedTo = wanted.sequence;
    verified = true;
    return null;
  }

  async function verify(wanted: LogState): Promise<string | null> {
    for (;;)
      try {
        const difference = await compare(wanted);
        return difference === null ? null : `the checkpoint at event ${wanted.sequence} is wrong: ${difference}`;
      } catch (error) {
        // The reader of the view meets a replaced log too, and waits until a person states which log it is.
        if (error instanceof Closed || error instanceof LogGap || ending.signal.aborted) return null;
        if (!(error instanceof StreamUnavailable))
          return `the checkpoint at event ${wanted.sequence} cannot be verified: ${errorText(error)}`;
        // A server that does not answer says nothing about the checkpoint.
        await clock.sleep(RETRY_MS, ending.signal);
        if (ending.signal.aborted) return null;
      }
  }

  const done = checkpoint === null ? Promise.resolve(null) : verify(checkpoint);
  return {
    checkpoint: checkpoint?.sequence ?? null,
    get verifiedTo() {
      return verifiedTo;
    },
    done,
    get verified() {
      return verified;
    },
    close: () => ending.abort(),
  };
}
