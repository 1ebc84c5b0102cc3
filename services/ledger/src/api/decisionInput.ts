import type { StoredEvent } from '@kronos/contracts';
import { decideInput } from '@kronos/cycle';
import type { EventLog } from '@kronos/eventlog';
import { decisionIn, liveHistory, loadDecision, type StoredDecision } from '@kronos/replay';
import type { ApiAnswer } from './schemas.ts';

/** The decision that an event records. */
export function recordedIn(stored: StoredEvent): StoredDecision {
  const recorded = decisionIn({}, stored);
  if (recorded === null) throw new Error(`event ${stored.sequence} is no decision`);
  return recorded;
}

/** Loads the input of a recorded decision; `input` null: a part is no longer kept, and `missing` names it. */
export async function loadInput(log: EventLog, recorded: StoredDecision) {
  const { snapshot, options, state, decision, missing } = await loadDecision(liveHistory(log, 'the log'), recorded);
  return snapshot === null || options === null
    ? { decision, input: null, missing: missing ?? 'the log names no options before this decision' }
    : { decision, input: decideInput(state, snapshot, options), missing: null };
}

/** The input of a recorded decision, for a browser that makes it again: the ledger itself decides nothing. */
export async function decisionInput(log: EventLog, stored: StoredEvent): Promise<ApiAnswer<'decision'>> {
  const recorded = recordedIn(stored);
  const { sequence, event } = recorded;
  const { aggregate, data } = event;
  const { snapshotId, snapshotTime: time, outcome, reason, plannerVersion, digests } = data;
  const { decision, input, missing } = await loadInput(log, recorded);
  return {
    aggregate,
    decision: { sequence, time, snapshotId, outcome, reason, plannerVersion, digest: digests.decision },
    steps: decision.plan === null ? [] : decision.plan.steps.map(({ why: _, ...step }) => step),
    input: input === null ? null : { ...input },
    missing,
  };
}
