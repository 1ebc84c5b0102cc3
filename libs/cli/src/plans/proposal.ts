/** Plans that people asked for: between cells, and to make room. Pure. */
import { clause, count, makesRoom, type PlanProposed, type Reason, type Step } from '@kronos/contracts';
import { meaningOf } from '@kronos/placement';
import { type Cell, STEP_COLUMNS, stepCells, table, waitsFor } from '../table.ts';
import { paint, type Terminal } from '../terminal.ts';
import { span } from '../times.ts';
import { reasonLine } from './decision.ts';

/** A plan that a person asked for, between cells or to make room, or the answer that there is none. */
export type AskedPlan = Pick<PlanProposed, 'aggregate' | 'data'>;

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

/** The plan, for people. */
export const proposalText = (terminal: Terminal, plan: AskedPlan, state: string): string =>
  (makesRoom(plan) ? roomText : betweenCellsText)(terminal, plan, state);

/** First the servers that stay, by reason. */
function betweenCellsText(terminal: Terminal, { aggregate, data }: AskedPlan, state: string): string {
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

function roomText(terminal: Terminal, { aggregate, data }: AskedPlan, state: string): string {
  const { planId, outcome, reason, steps, refusals, warnings, capacity, release } = data;
  const lines = warnings.map(({ text }) => paint(terminal, 'yellow', text));
  if (outcome !== 'planned') {
    lines.push(`${aggregate}: ${paint(terminal, 'red', 'no plan')}: ${clause(reason.text)}`);
    if (capacity !== undefined && capacity.now < capacity.wanted)
      lines.push(`${capacity.now} of ${capacity.wanted} fit now, ${capacity.after} after moves.`);
    else if (capacity !== undefined)
      lines.push(`${capacity.wanted} are wanted, and there is room for ${capacity.now}.`);
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
