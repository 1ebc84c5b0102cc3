import { messageId } from '@kronos/contracts';
import { type Approval, approval } from '@kronos/rules';
import type { AggregateState, PlanFacts } from './state.ts';

export type WaitingPlan = Approval & { readonly plan: PlanFacts };

/** Until when a proposed plan can be approved or rejected. */
export const approvalOf = ({ decidedAtMs, approvalTtlSeconds }: PlanFacts, nowMs: number): Approval =>
  approval({ proposedAtMs: decidedAtMs, approvalTtlSeconds }, nowMs);

/** The plan that waits for approval at that time, or has expired since the last decision; null when there is none. */
export function waitingPlan(state: Pick<AggregateState, 'waiting' | 'plans'>, nowMs: number): WaitingPlan | null {
  const plan = state.waiting === null ? undefined : state.plans.get(state.waiting);
  return plan === undefined ? null : { plan, ...approvalOf(plan, nowMs) };
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

/** The id of the event that made the plan. */
export const causeOf = ({ id, cells, capacity }: PlanFacts): string =>
  messageId[cells === undefined && capacity === undefined ? 'decided' : 'proposed'](id);
