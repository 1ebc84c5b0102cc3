import { type Actor, ALL } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import {
  contradiction,
  describeContradiction,
  type Installation,
  inForce,
  type LogIdentity,
  STATEMENT_REMEDY,
  type Witness,
} from '@kronos/projections';
import { readIdentity, readWitnesses, stateInstallation } from './identity.ts';

/** The log is not the one that was seen before, and no operator has confirmed it. */
export class LogNotStated extends Error {
  readonly code = 'KRONOS_LOG_NOT_STATED';
  readonly remedy = STATEMENT_REMEDY;

  constructor(problem: string) {
    super(problem);
    this.name = 'LogNotStated';
  }
}

export type NameLogOptions = {
  /** Aggregates whose newest snapshots are compared with the log. */
  readonly aggregates: readonly string[];
  readonly by: Actor;
  readonly nowMs: number;
  /** A new one (a uuid); used when the log is named. */
  readonly installationId: string;
  /** A person states that the log is to be used as it is. */
  readonly newLog: boolean;
  readonly comment: string | null;
};

/** The result of naming the log. */
export type NamedLog = { readonly installation: Installation; readonly created: boolean };

/**
 * Gives the log its installation id, unless it has one: as its first event, or on a log that has events already as its
 * next one; it counts from there. With `newLog` a new one, whatever was seen.
 *
 * @throws LogNotStated when something has seen another log, or more of this one: nothing is appended then. AppendConflict
 */
export async function nameLog(
  log: Pick<EventLog, 'tail' | 'lastSequence' | 'lastSequenceOf' | 'append'>,
  { aggregates, newLog, ...about }: NameLogOptions,
): Promise<NamedLog> {
  // Read before the identity: a name that another process gives after this must conflict with ours.
  const expectedLastSequence = await log.lastSequenceOf('controls', ALL);
  const state = (statement: 'provisioned' | 'newLog') =>
    stateInstallation(log, statement, { ...about, expectedLastSequence });
  if (newLog) return { installation: await state('newLog'), created: true };
  const witnesses: Witness[] = await Array.fromAsync(readWitnesses(log, aggregates));
  const identity: LogIdentity = await readIdentity(log);
  for (const witness of witnesses) {
    const found = contradiction(identity, witness);
    if (found !== null) throw new LogNotStated(describeContradiction(identity, found));
  }
  const named = inForce(identity);
  if (named !== null) return { installation: named, created: false };
  return { installation: await state('provisioned'), created: true };
}
