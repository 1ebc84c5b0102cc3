import { didYouMean } from '@kronos/config/nearest';
import {
  type CellDecision,
  cellDecisionSchema,
  type PlanProposed,
  type Reason,
  type Snapshot,
  type Step,
  streamNames,
} from '@kronos/contracts';
import { aggregateOfTask, control } from '@kronos/operator';
import { type AggregateState, aggregateState, approvalOf, type PlanFacts, type TaskFacts } from '@kronos/projections';
import { collect, liveHistory, newestSnapshots } from '@kronos/replay';
import { parse as parseYaml } from 'yaml';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OperatorOptions, OutputOption } from '../grammar/shared.ts';
import { currentState, type Session, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { type Cell, count, paint, type Terminal, table } from '../terminal.ts';
import { parseDuration, span, when } from '../times.ts';
import { readText } from './inputs.ts';
import { eachTask, give } from './operator.ts';
import { reasonLine } from './plan.ts';

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
  const waitMs = parseDuration('--wait', options.wait) * 1000;
  const flavorMap = options.flavorMap === undefined ? {} : readFlavorMap(options.flavorMap);
  await withSession(shell, options, async (session) => {
    requireCells(session, options.to);
    const aggregate = sourceOf(await newestSnapshots(session.log, session.scope), session.scope, options.from);
    if (aggregate === options.to)
      throw new UsageError(`${JSON.stringify(aggregate)} is the source and the target`, 'Name another --to.');
    requireCells(session, aggregate);
    const since = (await session.log.lastSequence(streamNames.log)) + 1;
    const told = await give(shell, session, options, (_, asking) =>
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
    );
    const [proposed] = await collect(
      session.log.tail({ families: ['plans'], aggregates: [aggregate], since }),
      (message) =>
        message.type === 'plan.proposed' && message.data.commandId === told.commandId ? message.data : null,
      1,
      AbortSignal.timeout(waitMs),
    );
    if (proposed === undefined) {
      shell.terminal.err(
        `${aggregate}: no plan within ${span(waitMs)}. Are the scorer and the planner running? Run kronos status.\n`,
      );
      process.exitCode = 1;
      return;
    }
    const whole = { ...proposed, ...(await wholeDecision(session, proposed)) };
    await answer(shell, options, whole, (terminal) => renderProposal(terminal, aggregate, whole));
    if (whole.outcome !== 'planned') process.exitCode = 1;
  });
}

/** kronos cells confirm, revert. */
export async function settle(
  shell: Shell,
  name: 'confirm' | 'revert',
  tasks: readonly string[],
  options: OperatorOptions,
): Promise<void> {
  const type = name === 'confirm' ? 'migration.confirmAsked' : 'migration.revertAsked';
  await eachTask(
    shell,
    tasks,
    options,
    ({ scope }) =>
      (state, asking, taskId) =>
        control(type, aggregateOfTask(state, scope, taskId), { taskId }, asking),
  );
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

/** @throws UsageError where `[cells] aggregates` does not name the aggregate */
function requireCells({ config, scope }: Session, aggregate: string): void {
  const named = config.cells.aggregates.map((one) => one.aggregate);
  if (named.includes(aggregate)) return;
  if (named.length === 0)
    throw new UsageError(
      'moves between cells are off',
      'Set [cells] aggregates in kronos.conf of the scorers, the executors and this command, e.g. cell1:old, cell2:new.',
    );
  throw new UsageError(
    `[cells] aggregates does not name ${JSON.stringify(aggregate)}`,
    `${didYouMean(aggregate, [...named, ...scope])}It names ${named.join(', ')}.`,
  );
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
  if (only === undefined) throw new UsageError('which servers leave?', 'Name an aggregate or hosts: --from old.');
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
    throw new UsageError(`--flavor-map ${file} is no YAML: ${error instanceof Error ? error.message : ''}`);
  }
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  const named = entries.flatMap(([from, to]): [string, string][] => (typeof to === 'string' ? [[from, to]] : []));
  if (named.length > 0 && named.length === entries.length) return Object.fromEntries(named);
  throw new UsageError(
    `--flavor-map ${file} is no map of flavors`,
    'Write one line for each flavor: OLD-FLAVOR: NEW-FLAVOR.',
  );
}

/** The decision in full: where its event had no room for it, from its details. */
async function wholeDecision({ log }: Session, { details }: PlanProposed['data']): Promise<Partial<CellDecision>> {
  if (details === null) return {};
  const body = await liveHistory(log, '').details(details);
  return cellDecisionSchema.parse(JSON.parse(new TextDecoder().decode(body)));
}

const methodText = ({ cell }: Pick<Step, 'cell'>): string => {
  if (cell === undefined) return '';
  return cell.method === 'migrate' ? 'cold migration' : `resize ${cell.oldFlavor ?? '?'} -> ${cell.newFlavor ?? '?'}`;
};

const RELEASES = {
  proposed: 'waits for approval',
  dryRun: 'dry run: nothing will move while [engine] dry_run is true',
  none: 'not released',
} as const;

/** What the plan is, for people: first the servers that stay, by reason. */
function renderProposal(terminal: Terminal, aggregate: string, plan: PlanProposed['data']): string {
  const { planId, outcome, reason, steps, refused, left, warnings, release, to } = plan;
  const lines: string[] = [];
  for (const [, servers] of Map.groupBy(refused, (one) => reasonLine(factless(one.reason))))
    for (const { serverName, serverId, host, reason } of servers)
      lines.push(paint(terminal, 'yellow', `${serverName} (${serverId}) stays on ${host}: ${reasonLine(reason)}`));
  for (const warning of warnings) lines.push(paint(terminal, 'yellow', warning.text));
  if (refused.length + warnings.length > 0) lines.push('');
  if (outcome !== 'planned') {
    lines.push(`${aggregate} -> ${to}: ${paint(terminal, 'red', 'no plan')}: ${reasonLine(reason)}`);
    return `${lines.join('\n')}\n`;
  }
  const down = steps.reduce((sum, { cell }) => sum + (cell?.downtimeSeconds ?? 0), 0);
  const longest = Math.max(...steps.map(({ cell }) => cell?.downtimeSeconds ?? 0));
  const head = [
    `${paint(terminal, 'bold', planId)}: ${count(steps.length, 'VM')} from ${aggregate} to ${to}, ${RELEASES[release]}`,
    `expected downtime: at most ${span(longest * 1000)} of a VM, ${span(down * 1000)} of all together`,
    ...(release === 'none' ? [reason.text] : []),
    ...(left === 0 ? [] : [`${count(left, 'more VM')} could move: beyond the limit of this plan`]),
  ];
  const rows = steps.map((step): Cell[] => [
    String(step.step),
    step.serverName,
    step.from,
    // Nova chooses the host of a resize.
    step.cell?.method === 'resize' ? `${step.to} or another of ${to}` : step.to,
    methodText(step),
    span((step.cell?.downtimeSeconds ?? 0) * 1000),
  ]);
  const shown = table(
    terminal,
    [
      { head: 'step', right: true },
      { head: 'vm', flex: true },
      { head: 'from', flex: true },
      { head: 'to', flex: true },
      { head: 'method', flex: true },
      { head: 'downtime', right: true },
    ],
    rows,
  );
  const next = release === 'proposed' ? `\nkronos approve ${planId} releases it.\n` : '';
  return `${[...lines, ...head].join('\n')}\n\n${shown}${next}`;
}

const factless = ({ code, text }: Reason): Reason => ({ code, text });

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
  const [stage, sinceMs] = stageOf(task);
  const to = task.slot?.cell?.verifying?.host ?? task.destination;
  return { taskId: task.id, serverId, serverName, from, to, method: methodText(task.step), stage, sinceMs };
}

/** How far the move is, and since when (ms since the epoch). */
function stageOf({ id, slot, status, step, settleAsked }: TaskFacts): [string, number | null] {
  if (slot === null) return [status === 'retryPending' ? 'waits for its next attempt' : 'waits', null];
  const { verifying, verified, settle } = slot.cell ?? {};
  if (settle)
    return [settle.act === 'confirm' ? 'is being confirmed' : `is being reverted: ${settle.reason.text}`, settle.atMs];
  if (settleAsked !== undefined) return [`${settleAsked.act} requested by ${settleAsked.by}`, settleAsked.atMs];
  if (verified)
    return [
      step.cell?.confirm === 'manual' ? `verified: kronos cells confirm|revert ${id}` : 'verified',
      verified.atMs,
    ];
  if (verifying) return ['in VERIFY_RESIZE, being checked', verifying.atMs];
  return ['moves', slot.startedAtMs];
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
          { head: 'vm', flex: true },
          { head: 'from', flex: true },
          { head: 'to', flex: true },
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
