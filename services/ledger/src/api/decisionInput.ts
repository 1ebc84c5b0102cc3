import type { StoredEvent } from '@kronos/contracts';
import { decideInput } from '@kronos/cycle';
import type { EventLog } from '@kronos/eventlog';
import { decisionIn, liveHistory, loadDecision } from '@kronos/replay';
import type { ApiAnswer } from './schemas.ts';

/** What a recorded decision was made of, for a browser that makes it again: the ledger only reads. */
export async function decisionInput(log: EventLog, stored: StoredEvent): Promise<ApiAnswer<'decision'>> {
  const recorded = decisionIn({}, stored);
  if (recorded === null) throw new Error(`event ${stored.sequence} is no decision`);
  const { sequence, event } = recorded;
  const { aggregate, data } = event;
  const { snapshotId, snapshotTime: time, outcome, reason, plannerVersion, digests } = data;
  const { snapshot, options, state, decision, missing } = await loadDecision(liveHistory(log, 'the log'), recorded);
  const known = snapshot !== null && options !== null;
  return {
    aggregate,
    decision: { sequence, time, snapshotId, outcome, reason, plannerVersion, digest: digests.decision },
    steps: decision.plan === null ? [] : decision.plan.steps.map(({ why: _, ...step }) => step),
    input: known ? { ...decideInput(state, snapshot, options) } : null,
    missing: known ? null : (missing ?? 'the log names no options before this decision'),
  };
}
