import { iso } from '@kronos/contracts';
import { type AggregateState, waitingPlan } from '@kronos/projections';
import type { ApiAnswer } from './schemas.ts';

/** The step of the plan that waits for approval and would move the VM; null: none does. Pure. */
export function waitingStep(state: AggregateState, serverId: string, nowMs: number): ApiAnswer<'vmWhy'>['waits'] {
  const waiting = waitingPlan(state, nowMs);
  if (waiting === null || !waiting.open) return null;
  const { id, sequence, decidedAtMs, proposed } = waiting.plan;
  const step = proposed.find((one) => one.serverId === serverId);
  if (step === undefined) return null;
  const { from, to } = step;
  return { planId: id, sequence, decidedAt: iso(decidedAtMs), step: step.step, of: proposed.length, from, to };
}
