import { type Moment, type MomentFacts, momentAt, PlanRuns, worstOf } from '@kronos/projections';
import { ratioOf } from '@kronos/rules';
import type { FoundDecision } from './find.ts';
import { decisionIn, type History, type StoredDecision } from './history.ts';

/** Events after a decision that are read for what followed. */
const MOST_EVENTS = 10_000;

/** A moment, with what is said beside its plans. */
export type FoundMoment = { readonly moment: Moment; readonly facts: MomentFacts };

type Found = Pick<FoundDecision, 'event' | 'sequence' | 'snapshotMs' | 'state' | 'snapshot' | 'decision'>;

/**
 * Finds the moment of a decision: from the plans that were open then to the first decision after the last of their moves; where nothing moved, to
 * the next plan.
 */
export async function findMoment(history: History, found: Found): Promise<FoundMoment> {
  const { event, sequence, snapshotMs, state, snapshot, decision } = found;
  const { aggregate, data } = event;
  const runs = new PlanRuns();
  const moment = (): Moment => {
    const seen = momentAt(runs.of(aggregate), { snapshotId: data.snapshotId, timeMs: snapshotMs });
    return { ...seen, lastEndMs: seen.lastEndMs ?? state.lastMoveEnd?.atMs ?? null };
  };
  // As measured; where no snapshot is kept, as the decision counts it: with the moves under way as done.
  const worst = worstOf(snapshot?.scores.policies ?? []) ?? worstOf(decision.before.policies);
  const later = (next: StoredDecision): MomentFacts['later'] => {
    const own = next.event.data.before.policies.find(({ policy }) => policy === worst?.policy);
    const ratio = own === undefined ? null : ratioOf(own);
    return ratio === null ? null : { atMs: next.snapshotMs, ratio };
  };
  const reason = data.plan === null ? data.reason.text : null;
  const from = Math.min(sequence, ...[...state.plans.values()].map((plan) => plan.sequence));
  for await (const stored of history.events(undefined, from)) {
    runs.add(stored);
    if (stored.sequence > sequence + MOST_EVENTS) break;
    const next = decisionIn({ aggregates: [aggregate] }, stored);
    if (next === null || next.sequence <= sequence) continue;
    const seen = moment();
    if (seen.endMs === null ? seen.running.length === 0 && seen.next !== null : next.snapshotMs > seen.endMs)
      return { moment: seen, facts: { worst, later: seen.endMs === null ? null : later(next), reason } };
  }
  return { moment: moment(), facts: { worst, later: null, reason } };
}
