/** Plans between cells that have not ended, and their tasks. Pure. */
import { count } from '@kronos/contracts';
import { type AggregateState, approvalOf, type PlanFacts, type TaskFacts } from '@kronos/projections';
import { cellStage } from '@kronos/status';
import { methodText } from '../plans/proposal.ts';
import { MOVE_COLUMNS, table } from '../table.ts';
import { paint, type Terminal } from '../terminal.ts';
import { when } from '../times.ts';

/** One plan between cells that has not ended. */
export type CellPlanStatus = {
  readonly aggregate: string;
  readonly planId: string;
  readonly to: string;
  readonly state: 'waitsForApproval' | 'expired' | 'released';
  readonly expiresAtMs: number | null;
  readonly moves: number;
  readonly completed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly tasks: readonly CellTaskStatus[];
};

type CellTaskStatus = {
  readonly taskId: string;
  readonly serverId: string;
  readonly serverName: string;
  readonly from: string;
  readonly to: string;
  readonly method: string;
  readonly stage: string;
  readonly sinceMs: number | null;
};

/** The plans between cells of these aggregates, with their tasks that have not ended. */
export function cellPlansOf(
  states: readonly Pick<AggregateState, 'aggregate' | 'plans' | 'tasks'>[],
  nowMs: number,
): CellPlanStatus[] {
  return states.flatMap(({ aggregate, plans, tasks }) =>
    [...plans.values()].flatMap((plan) => {
      if (plan.cells === undefined) return [];
      const own = plan.tasks.flatMap((id) => tasks.get(id) ?? []).filter((task) => task.end === null);
      return [
        {
          aggregate,
          planId: plan.id,
          to: plan.cells.to,
          ...waiting(plan, nowMs),
          moves: plan.release === null ? plan.proposed.length : plan.tasks.length,
          completed: plan.completed,
          failed: plan.failed,
          skipped: plan.skipped,
          tasks: own.map(taskStatus),
        },
      ];
    }),
  );
}

function waiting(plan: PlanFacts, nowMs: number): Pick<CellPlanStatus, 'state' | 'expiresAtMs'> {
  if (plan.release !== null) return { state: 'released', expiresAtMs: null };
  const { open, expiresAtMs } = approvalOf(plan, nowMs);
  return { state: open ? 'waitsForApproval' : 'expired', expiresAtMs };
}

function taskStatus(task: TaskFacts): CellTaskStatus {
  const { serverId, serverName, from } = task.step;
  const { text, sinceMs } = cellStage(task);
  const waits = task.step.cell?.confirm === 'manual' && task.slot?.cell?.verified && !task.slot.cell.settle;
  const stage = waits && task.settleAsked === undefined ? `${text}: kronos cells confirm|revert ${task.id}` : text;
  const to = task.slot?.cell?.verifying?.host ?? task.destination;
  return { taskId: task.id, serverId, serverName, from, to, method: methodText(task.step), stage, sinceMs };
}

const STATES = {
  waitsForApproval: 'waits for approval',
  expired: 'expired',
  released: 'released',
} as const;

export function cellPlansText(terminal: Terminal, plans: readonly CellPlanStatus[], nowMs: number): string {
  if (plans.length === 0) return 'No plan between cells waits or runs. kronos plans lists those that are over.\n';
  return plans
    .map((plan) => {
      const { planId, aggregate, to, state, expiresAtMs, moves, completed, failed, skipped, tasks } = plan;
      const until = expiresAtMs === null ? '' : ` until ${when(expiresAtMs, nowMs)}`;
      const ended = [
        ...(completed > 0 ? [`${completed} completed`] : []),
        ...(failed > 0 ? [paint(terminal, 'red', `${failed} failed`)] : []),
        ...(skipped > 0 ? [`${skipped} skipped`] : []),
      ];
      const head = `${paint(terminal, 'bold', planId)} (${aggregate} -> ${to}) ${STATES[state]}${until}: ${[count(moves, 'move'), ...ended].join(', ')}\n`;
      if (tasks.length === 0) return head;
      return `${head}${table(
        terminal,
        [
          { head: 'task' },
          ...MOVE_COLUMNS,
          { head: 'method', flex: true },
          { head: 'stage', flex: true },
          { head: 'since' },
        ],
        tasks.map((task) => [
          task.taskId,
          task.serverName,
          task.from,
          task.to,
          task.method,
          task.stage,
          task.sinceMs === null ? '' : when(task.sinceMs, nowMs),
        ]),
      )}`;
    })
    .join('\n');
}
