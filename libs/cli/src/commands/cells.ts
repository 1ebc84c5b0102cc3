import { didYouMean } from '@kronos/config/nearest';
import { count, errorText, type Snapshot } from '@kronos/contracts';
import { control, requireCells } from '@kronos/operator';
import { type AggregateState, aggregateState, approvalOf, type PlanFacts, type TaskFacts } from '@kronos/projections';
import { newestSnapshots } from '@kronos/replay';
import { cellStage } from '@kronos/status';
import { parse as parseYaml } from 'yaml';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OperatorOptions, OutputOption } from '../grammar/shared.ts';
import { currentState, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { methodText } from '../plans/proposal.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { MOVE_COLUMNS, table } from '../table.ts';
import { paint, type Terminal } from '../terminal.ts';
import { parseDuration, when } from '../times.ts';
import { readText } from './inputs.ts';
import { askForPlan } from './proposals.ts';

export type CellsPlanOptions = OperatorOptions & {
  readonly from: readonly string[];
  readonly to: string;
  readonly flavorMap?: string;
  readonly server?: readonly string[];
  readonly project?: string;
  readonly limit?: number;
  readonly wait: string;
};
export type CellsStatusOptions = ConfigOption & OutputOption & AggregateOption;

/** kronos cells plan. */
export async function cellsPlan(shell: Shell, options: CellsPlanOptions): Promise<void> {
  const waitMs = parseDuration('--wait', options.wait);
  const flavorMap = options.flavorMap === undefined ? {} : readFlavorMap(options.flavorMap);
  await withSession(shell, options, async (session) => {
    const between = session.config.cells.aggregates.map(({ aggregate }) => aggregate);
    const aggregate = sourceOf(await newestSnapshots(session.log, session.scope), session.scope, options.from);
    requireCells(between, session.scope, aggregate, options.to);
    await askForPlan(shell, session, options, {
      aggregate,
      waitMs,
      ask: (asking) =>
        control(
          'cells.moveAsked',
          aggregate,
          {
            from: [...options.from],
            to: options.to,
            flavorMap,
            servers: options.server === undefined ? null : [...options.server],
            project: options.project ?? null,
            limit: options.limit ?? null,
          },
          asking,
        ),
    });
  });
}

/** kronos cells status. */
export async function cellsStatus(shell: Shell, options: CellsStatusOptions): Promise<void> {
  await withSession(shell, options, async ({ log, scope }) => {
    const state = await currentState(shell, log);
    const states = filterAggregates(scope, options.aggregate).map((name) => aggregateState(state, name));
    const found = cellPlansOf(states, shell.now());
    await answer(shell, options, found, (terminal) => renderStatus(terminal, found, shell.now()));
  });
}

/** The aggregate that the sources are, or are hosts of. @throws UsageError for names that are not there, and for several aggregates */
export function sourceOf(
  snapshots: readonly Pick<Snapshot, 'aggregate' | 'hosts'>[],
  scope: readonly string[],
  from: readonly string[],
): string {
  const found = from.map((name) => {
    const at = scope.includes(name)
      ? name
      : snapshots.find(({ hosts }) => hosts.some((host) => host.name === name))?.aggregate;
    if (at !== undefined) return at;
    const known = [...scope, ...snapshots.flatMap(({ hosts }) => hosts.map((host) => host.name))];
    throw new UsageError(
      `--from ${name} is neither an aggregate in scope nor a host in the newest snapshots`,
      `${didYouMean(name, known)}kronos aggregates and kronos hosts list them.`,
    );
  });
  const [only, ...others] = [...new Set(found)];
  if (only === undefined)
    throw new UsageError('--from names no aggregate and no host', 'Name an aggregate or hosts: --from old.');
  if (others.length > 0)
    throw new UsageError(
      `--from names hosts of several aggregates: ${[only, ...others].join(', ')}`,
      'A plan is about the hosts of one aggregate: run the command once for each.',
    );
  return only;
}

/** Old flavor -> new flavor, as YAML or JSON. @throws UsageError that names the file */
export function readFlavorMap(file: string): Record<string, string> {
  const text = readText('--flavor-map', file);
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (error) {
    throw new UsageError(`--flavor-map ${file} is not YAML: ${errorText(error)}`);
  }
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  const named = entries.flatMap(([from, to]): [string, string][] => (typeof to === 'string' ? [[from, to]] : []));
  if (named.length > 0 && named.length === entries.length) return Object.fromEntries(named);
  throw new UsageError(
    `--flavor-map ${file} is not a map of flavors`,
    'Write one line for each flavor: OLD-FLAVOR: NEW-FLAVOR.',
  );
}

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
export type CellTaskStatus = {
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

function renderStatus(terminal: Terminal, plans: readonly CellPlanStatus[], nowMs: number): string {
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
