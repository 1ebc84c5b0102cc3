import type { EngineOptions } from '@kronos/contracts';
import { aggregateState, type LogState } from '@kronos/projections';

/** The options in force for an aggregate, as its planner wrote them; null before it has. */
export const optionsInForce = (state: LogState, aggregate: string): EngineOptions | null =>
  aggregateState(state, aggregate).configured?.options ?? null;
