import { readIdentity, writeCheckpoint } from '@kronos/checkpoints';
import type { EventLog } from '@kronos/eventlog';
import { type AggregateFacts, inForce, type LogState } from '@kronos/projections';
import { foldAll } from '@kronos/projections/testing';

/** The state of an aggregate without its pause and the quarantines of operators. */
function forgetful(state: LogState, aggregate: string): LogState {
  const facts = state.aggregates.get(aggregate);
  if (facts === undefined) throw new Error(`nothing was decided in ${aggregate}`);
  const forged: AggregateFacts = { ...facts, paused: null, operatorQuarantines: new Map() };
  return { ...state, aggregates: new Map([...state.aggregates]).set(aggregate, forged) };
}

/**
 * Stores a checkpoint of the end of the log that forgets what operators said of an aggregate, as somebody with the
 * credentials of the ledger may.
 *
 * @param log a connection with these credentials
 * @returns the state that it holds
 */
export async function forgeCheckpoint(log: EventLog, aggregate: string): Promise<LogState> {
  const { state, anchor } = await foldAll(log.replay());
  const forged = forgetful(state, aggregate);
  const mallory = { service: 'ledger', instance: 'mallory', version: '0.1.0' } as const;
  const { id } = inForce(await readIdentity(log)) ?? { id: null };
  await writeCheckpoint(log, forged, { anchor, by: mallory, nowMs: Date.now(), installationId: id });
  return forged;
}
