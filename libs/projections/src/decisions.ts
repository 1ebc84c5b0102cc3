/** Decisions of the planner, and their effect on plans. */
import { type LogEventOf, snapshotTimeMs, timeMs } from '@kronos/contracts';
import { afterDecision, afterMeasurement, type Judged } from '@kronos/rules';
import { approvalOf } from './approvals.ts';
import { forgetHostFailures } from './breaker.ts';
import { loadsSeen } from './calibration.ts';
import { expireCellPlans } from './cells.ts';
import { forgetReleases } from './cooldown.ts';
import { courseSeen } from './course.ts';
import type { StateDraft, WritableFacts } from './draft.ts';
import { drainsSeen } from './drains.ts';
import type { Effects } from './effects.ts';
import { forgetOwnMoves } from './ownMoves.ts';
import { closePlan, newPlan, putPlan, refuse, releasePlan, startable, waitsSeconds, withoutWhy } from './plans.ts';
import { absenceNoted, forgetQuarantines } from './quarantine.ts';
import { forgetRefusals, refusalsSeen } from './refusals.ts';
import { unreadable } from './unreadable.ts';

function decided(draft: StateDraft, event: LogEventOf<'cycle.decided'>): void {
  const { aggregate, data: d } = event;
  const snapshotMs = snapshotTimeMs(d.snapshotTime, draft.storedAtMs);
  const before = draft.of(aggregate)?.decided ?? null;
  // Only a later snapshot is ever decided: anything else is a second event for the same act.
  if (before !== null && (snapshotMs <= before.snapshotMs || before.recent.includes(d.snapshotId))) return;
  const problem = wrongRelease(draft, event);
  if (problem !== null) {
    unreadable(draft, { aggregate, claimedType: event.type, claimedVersion: event.version, problem, remedy: 'skip' });
    return;
  }
  const f = draft.facts(aggregate);
  endWaiting(draft, f, snapshotMs, d.plan !== null);
  expireCellPlans(draft, f, snapshotMs);
  if (d.absence !== undefined) absenceNoted(draft, f, d.absence, snapshotMs);
  if (before !== null && forgetHour(snapshotMs) > forgetHour(before.snapshotMs))
    forget(draft, f, snapshotMs, d.outcome !== 'gated');
  f.decided = {
    sequence: draft.sequence,
    snapshotId: d.snapshotId,
    recent: [...(before?.recent ?? []), d.snapshotId].slice(-DECIDED_KEPT),
    snapshotMs,
    cycle: d.cycle,
    outcome: d.outcome,
    release: d.release,
    reason: d.reason,
    before: d.before,
  };
  f.loweredWork = loweredAfter(f, d, draft.atMs);
  courseSeen(f, d, snapshotMs);
  drainsSeen(draft, d, snapshotMs);
  refusalsSeen(draft, d.novaRefusals);
  f.waits = afterDecision(f.waits, judgedBy(d, snapshotMs));
  f.surprises = surprisesAfter(f, d, draft.atMs);
  f.sustained = sustainedOf(d);
  if (d.plan !== null && (d.release === 'released' || d.release === 'proposed')) begin(draft, f, d.plan, d.release);
  loadsSeen(draft, f, d, snapshotMs);
}

function loweredAfter(
  { loweredWork }: WritableFacts,
  { searchWorkLimit: limit }: LogEventOf<'cycle.decided'>['data'],
  atMs: number,
): WritableFacts['loweredWork'] {
  if (limit === undefined) return null;
  return loweredWork?.limit === limit ? loweredWork : { limit, sinceMs: atMs };
}

/** The cycles in a row for which each policy was above its threshold; none where it is below. */
function sustainedOf({ before }: LogEventOf<'cycle.decided'>['data']): Record<string, number> {
  const sustained: Record<string, number> = {};
  for (const p of before.policies) if (p.sustainedCycles > 0) sustained[p.policy] = p.sustainedCycles;
  return sustained;
}

/**
 * Moves of a plan that waits for a person are not expected yet. After moves, rates over minutes follow slowly: the cycles that are gated until
 * then would show that as noise.
 */
function surprisesAfter(
  f: WritableFacts,
  decided: LogEventOf<'cycle.decided'>['data'],
  atMs: number,
): WritableFacts['surprises'] {
  const { outcome, before, plan, release } = decided;
  if (outcome === 'gated') return f.surprises;
  const whole = release === 'released' && plan !== null && startable(plan.steps, atMs) === plan.steps;
  const after = whole ? plan.after.policies : null;
  return afterMeasurement(f.surprises, before.policies, after);
}

/** The imbalance by a decision: whether there is one, and until when the decision waits. */
function judgedBy({ outcome, reason, before, warnings }: LogEventOf<'cycle.decided'>['data'], atMs: number): Judged {
  const waits = [reason, ...warnings].find(({ code }) => code === 'expected-to-pass' || code === 'expected-to-return');
  const { until, secondsWithPlan } = waits?.detail ?? {};
  return {
    atMs,
    waits:
      waits === undefined
        ? null
        : {
            // An earlier version waited without an end.
            untilMs: typeof until === 'string' ? timeMs(until) : atMs,
            plannedMs: typeof secondsWithPlan === 'number' ? 1000 * secondsWithPlan : 0,
          },
    above: outcome === 'gated' ? null : before.policies.some(({ detected }) => detected),
  };
}

/** Why a decision may not start its plan as stated; null where it may. Nothing bypasses a window, dry_run or approval. */
function wrongRelease(draft: StateDraft, event: LogEventOf<'cycle.decided'>): string | null {
  const { release, plan } = event.data;
  if (release !== 'released' && release !== 'proposed') return null;
  const asked = plan?.steps.find(({ phase }) => phase === 'cell' || phase === 'capacity');
  if (asked !== undefined)
    return `the plan is ${release}, and has moves ${asked.phase === 'cell' ? 'between cells' : 'that make room'}, which no cycle may plan`;
  if (plan?.window?.open === false) return `the plan is ${release}, and its window is closed`;
  const options = draft.of(event.aggregate)?.configured?.options;
  // Without options nothing of the plan can start: the log does not say until when it may.
  if (options === undefined) return null;
  if (options.dryRun) return `the plan is ${release}, and the options on the log say dry_run`;
  return release === 'released' && options.approval === 'manual'
    ? 'the plan is released, and the options on the log demand approval'
    : null;
}

/** The plan that waited for approval has expired by this snapshot, or makes room for a newer plan. */
function endWaiting(draft: StateDraft, f: WritableFacts, snapshotMs: number, planned: boolean): void {
  const waiting = f.waiting === null ? undefined : f.plans.get(f.waiting);
  if (waiting === undefined) return;
  const { open, expiresAtMs } = approvalOf(waiting, snapshotMs);
  if (!open) refuse(draft, f, waiting, { how: 'expired', atMs: expiresAtMs });
  else if (planned) closePlan(draft, f, waiting, { outcome: 'superseded', endedAtMs: draft.atMs });
}

/** Begins a plan: released at once, or proposed. Steps whose window closed while it was decided are dropped. */
function begin(
  draft: StateDraft,
  f: WritableFacts,
  { id, steps, loads }: NonNullable<LogEventOf<'cycle.decided'>['data']['plan']>,
  how: 'released' | 'proposed',
): void {
  const { sequence, atMs } = draft;
  const proposed = startable(steps, atMs).map(withoutWhy);
  if (proposed.length === 0) return;
  const options = f.configured?.options;
  const plan = newPlan({
    id,
    sequence,
    decidedAtMs: atMs,
    approvalTtlSeconds: options === undefined ? null : waitsSeconds(options.approvalTtlSeconds, proposed, atMs),
    planTtlSeconds: options?.planTtlSeconds ?? null,
    proposed,
    ...(loads === undefined ? {} : { loads }),
  });
  if (how === 'proposed') {
    f.waiting = plan.id;
    putPlan(draft, f, plan);
  } else releasePlan(draft, f, plan, { steps: proposed, approval: null });
}

/**
 * Drops what can matter no more, by constants, once an hour of decided snapshots: every reader of the log drops the same
 * at the same event.
 */
function forget(draft: StateDraft, f: WritableFacts, snapshotMs: number, looked: boolean): void {
  forgetReleases(draft, f, snapshotMs);
  forgetHostFailures(draft, f, snapshotMs);
  forgetRefusals(draft, f, snapshotMs);
  forgetOwnMoves(draft, f, snapshotMs);
  forgetQuarantines(draft, f, snapshotMs, { looked });
}

/**
 * Ids of decided snapshots that are remembered. One is taken again only within its cycle, or while its command waits for an
 * answer: few snapshots come between.
 */
const DECIDED_KEPT = 32;

/** The hour of a decided snapshot: at the first decision of each one, facts are forgotten. */
export const forgetHour = (snapshotMs: number): number => Math.floor(snapshotMs / 3_600_000);

export const decisionEffects = {
  'cycle.decided': decided,
} satisfies Partial<Effects>;
