/** Plans that people ask for: moves between cells, and moves that make room for new VMs. */
import { capacityPlanId, cellsPlanId, type LogEventOf, messageId, taskId } from '@kronos/contracts';
import { waitingPlan } from './approvals.ts';
import { expireCellPlans, proposedCellPlans } from './cells.ts';
import { firstTime } from './controls.ts';
import type { StateDraft, WritableFacts } from './draft.ts';
import type { Effects } from './effects.ts';
import { newPlan, putPlan, refuse, startable, waitsSeconds, withoutWhy } from './plans.ts';
import { type LogState, MAX_CELL_PLANS } from './state.ts';

type Proposed = LogEventOf<'plan.proposed'>;

/** Proposes the plan. One that is not whole, or one too many, is without effect. */
function proposed(draft: StateDraft, event: Proposed): void {
  const f = draft.facts(event.aggregate);
  const { planId, commandId, to, release, planTtlSeconds } = event.data;
  if (!firstTime(draft, f, messageId.proposed(planId))) return;
  const kind = kindOf(event);
  const { sequence, atMs } = draft;
  const steps = startable(event.data.steps, atMs);
  if (release !== 'proposed' || steps.length === 0 || kind === null) return;
  if (!hasPlace(draft, f, kind)) return;
  const approvalTtlSeconds = waitsSeconds(event.data.approvalTtlSeconds, steps, atMs);
  const asked = kind === 'cells' ? { cells: { to, commandId } } : { capacity: { commandId } };
  const proposed = steps.map(withoutWhy);
  if (kind === 'capacity') f.waiting = planId;
  putPlan(
    draft,
    f,
    newPlan({ id: planId, sequence, decidedAtMs: atMs, approvalTtlSeconds, planTtlSeconds, proposed, ...asked }),
  );
}

/**
 * Whether one more plan of the kind may wait for an approval. Plans between cells wait beside others. One that makes room moves servers within
 * the aggregate, where one plan waits at a time.
 */
function hasPlace(draft: StateDraft, f: WritableFacts, kind: 'cells' | 'capacity'): boolean {
  const { atMs } = draft;
  if (kind === 'cells') {
    expireCellPlans(draft, f, atMs);
    return proposedCellPlans(f).length < MAX_CELL_PLANS;
  }
  const waiting = waitingPlan(f, atMs);
  if (waiting === null) return true;
  if (waiting.open) return false;
  refuse(draft, f, waiting.plan, { how: 'expired', atMs: waiting.expiresAtMs });
  return true;
}

/** Whether a request for a plan has its answer. */
export const wasProposed = (state: LogState, aggregate: string, planId: string): boolean =>
  state.aggregates.get(aggregate)?.seen.has(messageId.proposed(planId)) === true;

/** The purpose of the plan; null where its ids are not those of the command, or its steps not those of such a plan. */
function kindOf({ aggregate, data }: Proposed): 'cells' | 'capacity' | null {
  const { planId, commandId, steps, to } = data;
  const ids = new Set(steps.map((step) => step.taskId));
  const servers = new Set(steps.map(({ serverId }) => serverId));
  const numbers = new Set(steps.map(({ step }) => step));
  const whole =
    servers.size === steps.length &&
    numbers.size === steps.length &&
    steps.every((step) => step.taskId === taskId(planId, step.step) && !step.parking);
  if (!whole) return null;
  if (planId === cellsPlanId(aggregate, commandId))
    return steps.every(
      ({ phase, cell, dependsOn }) => phase === 'cell' && cell?.target === to && dependsOn.length === 0,
    )
      ? 'cells'
      : null;
  if (planId !== capacityPlanId(aggregate, commandId) || to !== aggregate) return null;
  return steps.every(
    ({ phase, cell, dependsOn }) => phase === 'capacity' && cell === undefined && dependsOn.every((id) => ids.has(id)),
  )
    ? 'capacity'
    : null;
}

export const proposalEffects = {
  'plan.proposed': proposed,
} satisfies Partial<Effects>;
