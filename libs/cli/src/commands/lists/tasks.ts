import { DAY_MS, type Phase } from '@kronos/contracts';
import { aggregateState, type TaskFacts } from '@kronos/projections';
import { type History, plansOf } from '@kronos/replay';
import { currentState, withSession } from '../../open.ts';
import { answer } from '../../output.ts';
import { filterAggregates } from '../../scope.ts';
import type { Shell } from '../../shell.ts';
import { type Cell, table } from '../../table.ts';
import type { Style, Terminal } from '../../terminal.ts';
import { when } from '../../times.ts';
import { isHost, isVm, type TasksOptions } from './filters.ts';

const taskStyles: Readonly<Partial<Record<TaskRow['status'], Style>>> = {
  started: 'cyan',
  completed: 'green',
  failed: 'red',
  retryPending: 'yellow',
};

/** kronos tasks. */
export async function listTasks(shell: Shell, options: TasksOptions): Promise<void> {
  await withSession(shell, options, async ({ log, history, scope }) => {
    const state = await currentState(shell, log);
    const aggregates = filterAggregates(scope, options.aggregate);
    const known = aggregates.flatMap((aggregate) =>
      [...aggregateState(state, aggregate).tasks.values()].map((task) => taskRow(aggregate, task)),
    );
    const rows = [...(options.ended === true ? await endedRows(history, aggregates, known, shell.now()) : []), ...known]
      .filter((row) => options.ended === true || row.endedAtMs === null)
      .filter((row) => isHost(options, row.from, row.to))
      .filter((row) => isVm(options, { id: row.serverId, name: row.serverName }));
    await answer(shell, options, rows, (terminal) => tasksTable(terminal, rows, options.ended === true, shell.now()));
  });
}

/** Tasks of a day whose plans have left the state, by the log. */
async function endedRows(
  history: History,
  aggregates: readonly string[],
  known: readonly TaskRow[],
  nowMs: number,
): Promise<TaskRow[]> {
  const here = new Set(known.map(({ id }) => id));
  const plans = await plansOf(history.events(), { aggregates, sinceMs: nowMs - DAY_MS });
  return plans
    .flatMap((plan) => plan.steps.map((step) => ({ plan, step })))
    .flatMap(({ plan, step }): TaskRow[] =>
      step.ended === null || here.has(step.taskId)
        ? []
        : [
            {
              aggregate: plan.aggregate,
              id: step.taskId,
              planId: plan.id,
              serverName: step.serverName,
              serverId: step.serverId,
              from: step.from,
              to: step.destination ?? step.to,
              phase: step.phase,
              status: step.state === 'cancelled' ? 'cancelled' : step.ended,
              attempt: step.attempt ?? 1,
              startedAtMs: null,
              endedAtMs: step.endedAtMs,
              problem: step.state === 'completed' || step.note === '' ? null : step.note,
            },
          ],
    )
    .sort((a, b) => (a.endedAtMs ?? 0) - (b.endedAtMs ?? 0));
}

type TaskRow = {
  readonly aggregate: string;
  readonly id: string;
  readonly planId: string;
  readonly serverName: string;
  readonly serverId: string;
  readonly from: string;
  readonly to: string;
  readonly phase: Phase;
  readonly status: TaskFacts['status'] | 'cancelled';
  readonly attempt: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly problem: string | null;
};

const taskRow = (aggregate: string, task: TaskFacts): TaskRow => ({
  aggregate,
  id: task.id,
  planId: task.planId,
  serverName: task.step.serverName,
  serverId: task.step.serverId,
  from: task.step.from,
  to: task.destination,
  phase: task.step.phase,
  status: task.status,
  attempt: task.attempt,
  startedAtMs: task.slot?.startedAtMs ?? null,
  endedAtMs: task.end?.atMs ?? null,
  problem: task.lastFailure?.reason.text ?? null,
});

function tasksTable(terminal: Terminal, rows: readonly TaskRow[], ended: boolean, nowMs: number): string {
  if (rows.length === 0)
    return ended
      ? 'No task is in flight, and none has ended within a day.\n'
      : 'No task is in flight. kronos tasks --ended lists those of the last day.\n';
  const times = (row: TaskRow): string =>
    row.endedAtMs !== null
      ? `ended ${when(row.endedAtMs, nowMs)}`
      : row.startedAtMs !== null
        ? `since ${when(row.startedAtMs, nowMs)}`
        : '';
  return table(
    terminal,
    [
      { head: 'task', minor: true, below: true },
      { head: 'vm', flex: true },
      { head: 'uuid', wide: true },
      { head: 'from', flex: true, host: true },
      { head: 'to', flex: true, host: true },
      { head: 'status' },
      { head: 'attempt', right: true, minor: true },
      { head: 'when', minor: true },
      { head: 'problem', flex: true, sparse: true, below: true },
    ],
    rows.map((row): Cell[] => {
      const style = taskStyles[row.status];
      return [
        row.id,
        row.serverName,
        row.serverId,
        row.from,
        row.to,
        style === undefined ? row.status : { text: row.status, style },
        String(row.attempt),
        times(row),
        row.problem ?? '',
      ];
    }),
  );
}
