/** Moves between cells: the plans that wait for an approval, and how far their tasks are. */
import type { LogEventOf } from '@kronos/contracts';
import { approvalOf } from './approvals.ts';
import { asked } from './controls.ts';
import type { StateDraft, WritableFacts } from './draft.ts';
import type { Effects } from './effects.ts';
import { inFlight } from './inFlight.ts';
import { refuse } from './plans.ts';
import type { AggregateState, CellSlot, PlanFacts, TaskFacts } from './state.ts';
import { putTask, startedAttempt } from './tasks.ts';

/** Plans between cells that can still be approved or have expired since the last decision. */
export const proposedCellPlans = ({ plans }: Pick<WritableFacts, 'plans'>): PlanFacts[] =>
  [...plans.values()].filter((plan) => plan.cells !== undefined && plan.state === 'proposed');

/** Plans between cells that wait for approval at that time, oldest first. */
export const openCellPlans = (
  state: Pick<WritableFacts, 'plans'>,
  nowMs: number,
): { readonly plan: PlanFacts; readonly expiresAtMs: number }[] =>
  proposedCellPlans(state).flatMap((plan) => {
    const { open, expiresAtMs } = approvalOf(plan, nowMs);
    return open ? [{ plan, expiresAtMs }] : [];
  });

/** Ends the proposals that have expired by that time. */
export function expireCellPlans(draft: StateDraft, f: WritableFacts, atMs: number): void {
  for (const plan of proposedCellPlans(f)) {
    const { open, expiresAtMs } = approvalOf(plan, atMs);
    if (!open) refuse(draft, f, plan, { how: 'expired', atMs: expiresAtMs });
  }
}

type Moved = LogEventOf<
  'migration.verifying' | 'migration.verified' | 'migration.confirmRequested' | 'migration.revertRequested'
>;

/** Folds the progress of a move. Each fact counts the first time. */
function cellMoved(draft: StateDraft, event: Moved): void {
  const attempt = startedAttempt(draft, event);
  const cell = attempt?.slot.cell;
  if (attempt === null || cell === undefined) return;
  const { task, slot } = attempt;
  const next = moved(cell, event, draft);
  if (next !== cell) putTask(draft, draft.facts(event.aggregate), { ...task, slot: { ...slot, cell: next } });
}

function moved(cell: CellSlot, event: Moved, { sequence, atMs }: StateDraft): CellSlot {
  switch (event.type) {
    case 'migration.verifying':
      return cell.verifying === null ? { ...cell, verifying: { atMs, host: event.data.host } } : cell;
    case 'migration.verified':
      return cell.verified === null ? { ...cell, verified: { atMs } } : cell;
    case 'migration.confirmRequested':
    case 'migration.revertRequested': {
      if (cell.settle !== null) return cell;
      const act = event.type === 'migration.confirmRequested' ? 'confirm' : 'revert';
      const { cause, reason } = event.data;
      return { ...cell, settle: { sequence, atMs, act, cause, reason } };
    }
  }
}

/** Limit of VERIFY_RESIZE beyond the checks of a server: it holds claims on two hosts, and its old disk. */
const LATE_RESIZE_MS = 3_600_000;

/** Moves between cells whose server is in VERIFY_RESIZE for longer than it should, and since when (ms since the epoch). */
export function lateResizes(
  state: Pick<AggregateState, 'plans' | 'tasks'>,
  nowMs: number,
): { readonly task: TaskFacts; readonly host: string; readonly sinceMs: number }[] {
  return inFlight(state).flatMap((task) => {
    const verifying = task.slot?.cell?.verifying ?? null;
    if (verifying === null) return [];
    const dueMs = verifying.atMs + (task.step.cell?.verifySeconds ?? 0) * 1000 + LATE_RESIZE_MS;
    return nowMs > dueMs ? [{ task, host: verifying.host, sinceMs: verifying.atMs }] : [];
  });
}

/** A person wants a started move confirmed or reverted. The first command counts. */
function settleAsked(draft: StateDraft, event: LogEventOf<'migration.confirmAsked' | 'migration.revertAsked'>): void {
  for (const aggregate of draft.addressed(event.aggregate)) {
    const task = draft.of(aggregate)?.tasks.get(event.data.taskId);
    if (task?.slot?.cell === undefined || task.end !== null || task.settleAsked !== undefined) continue;
    const act = event.type === 'migration.confirmAsked' ? 'confirm' : 'revert';
    putTask(draft, draft.facts(aggregate), { ...task, settleAsked: { ...asked(draft, event), act } });
  }
}

export const cellEffects = {
  'migration.verifying': cellMoved,
  'migration.verified': cellMoved,
  'migration.confirmRequested': cellMoved,
  'migration.revertRequested': cellMoved,
  'migration.confirmAsked': settleAsked,
  'migration.revertAsked': settleAsked,
} satisfies Partial<Effects>;
