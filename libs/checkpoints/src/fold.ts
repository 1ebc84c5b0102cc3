import type { StoredEvent } from '@kronos/contracts';
import { Closed, type EventLog, EventLogError, type LogPosition, type LogView } from '@kronos/eventlog';
import { type AggregateState, aggregateState, type Folder, folding, type LogState } from '@kronos/projections';
import { newestCheckpoint, type SkippedCheckpoint } from './checkpoint.ts';

export type FoldOptions = {
  /** A checkpoint was not used, and why; the fold is the same without it, only slower. */
  readonly onSkipped?: (skipped: SkippedCheckpoint) => void;
  /** The checkpoint that the fold starts from, for its verification; null: it starts from the first event. */
  readonly onCheckpoint?: (checkpoint: LogState | null) => void;
  /** False: start from the first event. Default: from the newest checkpoint that can be trusted. */
  readonly checkpoints?: boolean;
  /** Called with the sequence after which the fold starts; 0: with the first event. */
  readonly onStart?: (sequence: number) => void;
  /** Folds one event; default: `folder.apply(stored)`. */
  readonly evolve?: (folder: Folder, stored: StoredEvent) => Folder;
};

/**
 * The log folded up to its end, and on as it grows: from the newest checkpoint that can be trusted, else from the first
 * event. The state is the same either way.
 *
 * @throws what `view` throws
 */
export async function foldLog(
  log: Pick<EventLog, 'view' | 'tail' | 'objects' | 'replay' | 'lastSequence'>,
  options: FoldOptions = {},
): Promise<LogView<LogState>> {
  const checkpoint =
    options.checkpoints === false ? null : await startingPoint(log, options.onSkipped ?? (() => undefined));
  options.onCheckpoint?.(checkpoint);
  options.onStart?.(checkpoint?.sequence ?? 0);
  return await log.view({
    ...folding(checkpoint ?? undefined),
    ...(options.evolve === undefined ? {} : { evolve: options.evolve }),
    ...(checkpoint === null ? {} : { from: checkpoint.sequence + 1 }),
  });
}

/** The same position as one aggregate sees it. */
export const aggregateAt = (at: LogPosition<LogState>, aggregate: string): LogPosition<AggregateState> => ({
  ...at,
  state: aggregateState(at.state, aggregate),
});

/** The fold of the log, as one aggregate sees it. */
export interface AggregateFold {
  /** As folded so far. */
  at(aggregate: string): LogPosition<AggregateState>;
  /** Folded to the end of the log. */
  refresh(aggregate: string): Promise<LogPosition<AggregateState>>;
}

/** The fold by aggregate; a position is made once for each sequence of the log. */
export function aggregateFold(view: Pick<LogView<LogState>, 'at' | 'refresh'>): AggregateFold {
  const made = new Map<string, LogPosition<AggregateState>>();
  const seen = (position: LogPosition<LogState>, aggregate: string): LogPosition<AggregateState> => {
    const known = made.get(aggregate);
    if (known?.sequence === position.sequence) return known;
    const at = aggregateAt(position, aggregate);
    made.set(aggregate, at);
    return at;
  };
  return {
    at: (aggregate) => seen(view.at(), aggregate),
    refresh: async (aggregate) => seen(await view.refresh(), aggregate),
  };
}

/** Checkpoints only save time: where they cannot be read at all, the fold starts from the first event. */
export async function startingPoint(
  log: Pick<EventLog, 'tail' | 'objects' | 'replay' | 'lastSequence'>,
  onSkipped: (skipped: SkippedCheckpoint) => void,
  upTo?: number,
): Promise<LogState | null> {
  try {
    return await newestCheckpoint(log, onSkipped, upTo);
  } catch (error) {
    if (!(error instanceof EventLogError) || error instanceof Closed) throw error;
    onSkipped({ sequence: 0, problem: `checkpoints cannot be read: ${error.message}`, otherVersion: false });
    return null;
  }
}
