import {
  type EngineOptions,
  isRequestRefusal,
  partCodes,
  type Reason,
  requestRemedies,
  type SnapshotTaken,
  storedLateText,
  timeMs,
} from '@kronos/contracts';
import { asksForPlan } from '@kronos/cycle';
import type { ReasonOf, SnapshotReasonCode } from '@kronos/facts';
import type { AggregateState } from '@kronos/projections';

/** Whether a snapshot is to be decided; if not, why. `alarm`: the operator has to mend something. */
export type Eligibility = { ok: true } | { ok: false; alarm: boolean; reason: ReasonOf<SnapshotReasonCode> };

const no = (code: SnapshotReasonCode, text: string, alarm = false): Eligibility => ({
  ok: false,
  alarm,
  reason: { code, text },
});

function cycleDecided(snapshotId: string, takenMs: number, { decided }: AggregateState): Eligibility | null {
  if (decided !== null && takenMs <= decided.snapshotMs)
    return no('already-decided', `${snapshotId} is not later than ${decided.snapshotId}, the last one decided`);
  // A scorer that has not seen it takes a snapshot again that another one took.
  if (decided?.recent.includes(snapshotId) === true)
    return no('already-decided', `another snapshot ${snapshotId} was decided`);
  return null;
}

/** The planner's own clock, what is wrong with it (null: nothing), and why its log is in doubt (null: it is not). */
export type Own = { readonly nowMs: number; readonly problem: string | null; readonly logProblem: string | null };

/** A snapshot's message, and the server's stamp of it in ms since the epoch. */
type Delivered = { readonly message: SnapshotTaken; readonly storedAt: number };

/** A time ahead of the server's stamp proves a wrong clock; one behind it may also be that of a snapshot that took long to store. */
function misdating(aheadMs: number, mostMs: number): Eligibility | null {
  if (-aheadMs > mostMs) return no(partCodes.storedLate, storedLateText(-aheadMs), true);
  if (aheadMs <= mostMs) return null;
  const text = `the scorer's clock is ${(aheadMs / 1000).toFixed(1)} s ahead of the NATS server's, more than max_clock_skew`;
  return no('clock-skew', text, true);
}

/**
 * A snapshot is decided if its id was not decided before, it is later than the last decided one and at most two intervals old, and its time
 * differs from the server's stamp by at most `maxClockSkewSeconds`. A snapshot of a request for a plan may be older than the last decided
 * one. A planner with a wrong clock, or whose log is in doubt, decides nothing.
 */
export function eligibility(
  { message: taken, storedAt }: Delivered,
  state: AggregateState,
  options: Pick<EngineOptions, 'maxClockSkewSeconds'>,
  own: Own,
): Eligibility {
  const { snapshotId, purpose, intervalSeconds } = taken.data;
  if (purpose === 'record') return no('record-only', `${snapshotId} was taken to be kept, not to be planned`);
  if (own.logProblem !== null) return no('other-log', own.logProblem);
  const takenMs = timeMs(taken.time);
  // A request for a plan has an answer of its own, whatever was decided in the meantime.
  const decided = asksForPlan(taken.data) ? null : cycleDecided(snapshotId, takenMs, state);
  if (decided !== null) return decided;
  const misdated = misdating(takenMs - storedAt, options.maxClockSkewSeconds * 1000);
  if (misdated !== null) return misdated;
  if (own.problem !== null) return no('clock', own.problem, true);
  const ageSeconds = (own.nowMs - takenMs) / 1000;
  if (ageSeconds > 2 * intervalSeconds)
    return no('too-old', `${snapshotId} is ${Math.round(ageSeconds)} s old, more than two intervals`);
  return { ok: true };
}

/** The answer to a request whose snapshot can no longer be decided; null: it can, or it may yet be. */
export function requestRefusal(may: Eligibility): Reason | null {
  if (may.ok || !isRequestRefusal(may.reason.code)) return null;
  const { code, text } = may.reason;
  return { code, text: `${text}: ${requestRemedies[code]}` };
}
