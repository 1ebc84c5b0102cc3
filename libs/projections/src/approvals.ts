import type { AggregateState, PlanFacts } from './state.ts';

export type WaitingPlan = {
  readonly plan: PlanFacts;
  readonly expiresAtMs: number;
  /** False once it has expired: it can no longer be approved, and its expiry starts the aggregate cooldown. */
  readonly open: boolean;
};

/** The plan that waits for approval at that time, or has expired since the last decision; null when there is none. */
export function waitingPlan(state: Pick<AggregateState, 'waiting' | 'plans'>, nowMs: number): WaitingPlan | null {
  const plan = state.waiting === null ? undefined : state.plans.get(state.waiting);
  if (plan === undefined) return null;
  const expiresAtMs = plan.decidedAtMs + (plan.approvalTtlSeconds ?? 0) * 1000;
  return { plan, expiresAtMs, open: nowMs <= expiresAtMs };
}

/** Released plans whose dispatch is not on the log, oldest first: their tasks are to be published (again). */
export function undispatched(state: Pick<AggregateState, 'plans'>): PlanFacts[] {
  return [...state.plans.values()]
    .filter((plan) => plan.state === 'released' && plan.dispatched === null)
    .sort((a, b) => a.sequence - b.sequence);
}

/** Until when (ms since the epoch) the tasks of a released plan may start: release + the `plan_ttl` that was in force. */
export function notAfterMs(plan: PlanFacts): number | null {
  if (plan.release === null || plan.planTtlSeconds === null) return null;
  return plan.release.atMs + plan.planTtlSeconds * 1000;
}
