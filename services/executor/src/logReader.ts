import { type AggregateFold, aggregateFold } from '@kronos/checkpoints';
import type { LogView } from '@kronos/eventlog';
import { type LogState, pacesOfAll } from '@kronos/projections';

/** The part of the log's fold that a task needs. */
export interface LogReader extends AggregateFold {
  /** Paces of moves in any aggregate, as folded so far. */
  paces(): readonly number[];
}

export const logReader = (view: LogView<LogState>): LogReader => ({
  ...aggregateFold(view),
  paces: () => pacesOfAll(view.at().state),
});
