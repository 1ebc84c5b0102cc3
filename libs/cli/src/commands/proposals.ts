import {
  type Control,
  clause,
  count,
  makesRoom,
  type PlanProposed,
  type Reason,
  type Step,
  streamNames,
} from '@kronos/contracts';
import type { Asking } from '@kronos/operator';
import { meaningOf } from '@kronos/placement';
import { collect, recordedProposal } from '@kronos/replay';
import type { OperatorOptions } from '../grammar/shared.ts';
import type { OpenLog } from '../open.ts';
import { answer } from '../output.ts';
import type { Shell } from '../shell.ts';
import { type Cell, STEP_COLUMNS, stepCells, table, waitsFor } from '../table.ts';
import { paint, type Terminal } from '../terminal.ts';
import { span } from '../times.ts';
import { give, tellLate } from './operator.ts';
import { reasonLine } from './plan.ts';

/** A plan that a person asked for, between cells or to make room, or the answer that there is none. */
type Asked = Pick<PlanProposed, 'aggregate' | 'data'>;

type Request = {
  readonly aggregate: string;
  /** How long the planner's answer is waited for. */
  readonly waitMs: number;
  readonly ask: (asking: Asking) => Control;
};

/** Asks for a plan, waits for the planner's answer and prints it. Status 1 when there is no plan. */
export async function propose(
  shell: Shell,
  session: OpenLog,
  options: OperatorOptions,
  { aggregate, waitMs, ask }: Request,
): Promise<void> {
  const since = (await session.log.lastSequence(streamNames.log)) + 1;
  const told = await give(shell, session, options, (_, asking) => ask(asking));
  const [proposed] = await collect(
    session.log.tail({ families: ['plans'], aggregates: [aggregate], since }),
    (message) => (message.type === 'plan.proposed' && message.data.commandId === told.commandId ? message : null),
    1,
    AbortSignal.timeout(waitMs),
  );
  if (proposed === undefined) {
    tellLate(shell, aggregate, 'plan', waitMs);
    process.exitCode = 1;
    return;
  }
  const { details } = proposed.data;
  const body = details === null ? null : await session.history.details(details);
  const whole = { ...proposed.data, ...recordedProposal(proposed.data, body) };
  await answer(shell, options, whole, (terminal) => renderProposal(terminal, { aggregate, data: whole }));
  if (whole.outcome !== 'planned') process.exitCode = 1;
}

export const methodText = ({ cell }: Pick<Step, 'cell'>): string => {
  if (cell === undefined) return '';
  return cell.method === 'migrate' ? 'cold migration' : `resize ${cell.oldFlavor ?? '?'} -> ${cell.newFlavor ?? '?'}`;
};

/** How a plan starts, for the person who asked for it. */
export const RELEASES = {
  proposed: 'waits for approval',
  dryRun: 'dry run: nothing will move while [engine] dry_run is true',
  none: 'not released',
} as const;

function renderProposal(terminal: Terminal, plan: Asked): string {
  const { planId, release } = plan.data;
  const next = release === 'proposed' ? `\nkronos approve ${planId} releases it.\n` : '';
  return `${proposalText(terminal, plan, RELEASES[release])}${next}`;
}

/** The plan, for people. */
export const proposalText = (terminal: Terminal, plan: Asked, state: string): string =>
  (makesRoom(plan) ? roomText : betweenCellsText)(terminal, plan, state);

/** First the servers that stay, by reason. */
function betweenCellsText(terminal: Terminal, { aggregate, data }: Asked, state: string): string {
  const { planId, outcome, reason, steps, refused, left, warnings, release, to } = data;
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
    `${paint(terminal, 'bold', planId)}: ${count(steps.length, 'VM')} from ${aggregate} to ${to}, ${state}`,
    `expected downtime: at most ${span(longest * 1000)} of a VM, ${span(down * 1000)} of all together`,
    ...(release === 'none' ? [reason.text] : []),
    ...(left === 0 ? [] : [`${count(left, 'more VM')} could move: beyond the limit of this plan`]),
  ];
  const rows = steps.map((step): Cell[] => [
    // Nova chooses the host of a resize.
    ...stepCells(step.cell?.method === 'resize' ? { ...step, to: `${step.to} or another of ${to}` } : step),
    methodText(step),
    span((step.cell?.downtimeSeconds ?? 0) * 1000),
  ]);
  const shown = table(
    terminal,
    [...STEP_COLUMNS, { head: 'method', flex: true }, { head: 'downtime', right: true }],
    rows,
  );
  return `${[...lines, ...head].join('\n')}\n\n${shown}`;
}

function roomText(terminal: Terminal, { aggregate, data }: Asked, state: string): string {
  const { planId, outcome, reason, steps, refusals, warnings, capacity, release } = data;
  const lines = warnings.map(({ text }) => paint(terminal, 'yellow', text));
  if (outcome !== 'planned') {
    lines.push(`${aggregate}: ${paint(terminal, 'red', 'no plan')}: ${clause(reason.text)}`);
    if (capacity !== undefined)
      lines.push(`${capacity.now} of ${capacity.wanted} fit now, ${capacity.after} after moves.`);
    const stay = Object.entries(refusals).map(([code, n]) => `${count(n, 'VM')}: ${meaningOf(code)}`);
    if (stay.length > 0) lines.push('VMs that may not move now:', ...stay.map((line) => `  ${line}`));
    return `${lines.join('\n')}\n`;
  }
  lines.push(
    `${paint(terminal, 'bold', planId)}: ${count(steps.length, 'move')} in ${aggregate}, ${state}`,
    `${capacity?.now ?? '?'} of ${capacity?.wanted ?? '?'} fit now, ${capacity?.after ?? '?'} after the moves${capacity?.proven === true ? '; no plan has fewer' : ''}`,
  );
  if (release === 'none') lines.push(reason.text);
  const shown = table(
    terminal,
    [...STEP_COLUMNS, { head: 'after' }],
    steps.map((step): Cell[] => [...stepCells(step), waitsFor(step)]),
  );
  return `${lines.join('\n')}\n\n${shown}`;
}

const factless = ({ code, text }: Reason): Reason => ({ code, text });
