import { aggregateAt } from '@kronos/checkpoints';
import type { LogPosition, LogView } from '@kronos/eventlog';
import { type AggregateState, type LogState, pacesOfAll } from '@kronos/projections';

/** The part of the log's fold that a task needs. */
export interface LogReader {
  /** As folded so far. */
  at(aggregate: string): LogPosition<AggregateState>;
  /** Folded to the end of the log. */
  refresh(aggregate: string): Promise<LogPosition<AggregateState>>;
  /** Paces of moves in any aggregate, as folded so far. */
  paces(): readonly number[];
}

/** Reads the log as one aggregate sees it. */
export function logReader(view: LogView<LogState>): LogReader {
  const at = memoised(view);
  return {
    at,
    async refresh(aggregate) {
      await view.refresh();
      return at(aggregate);
    },
    paces: () => pacesOfAll(view.at().state),
  };
}

/** The position of the fold as an aggregate sees it, made once per sequence of the log. */
function memoised(view: LogView<LogState>): (aggregate: string) => LogPosition<AggregateState> {
  const made = new Map<string, LogPosition<AggregateState>>();
  return (aggregate) => {
    const now = view.at();
    const known = made.get(aggregate);
    if (known?.sequence === now.sequence) return known;
    const at = aggregateAt(now, aggregate);
    made.set(aggregate, at);
    return at;
  };
}
