/** The report on a terminal. Pure. */
import { iso } from '@kronos/contracts';
import { type Column, paint, type Terminal, table } from '../terminal.ts';
import type { AggregateFigures } from './figures.ts';
import { linesOf, modeOf, notesOf, policyHeads, policyRows } from './lines.ts';

const minute = (ms: number): string => `${iso(ms).slice(0, 16).replace('T', ' ')}Z`;

const indented = ([first = '', ...others]: readonly string[]): string[] => [`  ${first}`, ...others];

const columns = (of: AggregateFigures): Column[] =>
  indented(policyHeads(of)).map((head, i) => ({ head: head.toUpperCase(), right: i > 0 }));

export function renderReport(terminal: Terminal, aggregates: readonly AggregateFigures[]): string {
  if (aggregates.length === 0) return 'The log holds no decision in this range.\n';
  const parts = aggregates.map((of) => {
    const lines = linesOf(of);
    const width = Math.max(...lines.map(({ label }) => label.length));
    return [
      `${paint(terminal, 'bold', of.aggregate)} ${minute(of.sinceMs)} to ${minute(of.untilMs)}, ${modeOf(of)}\n`,
      ...lines.map(({ label, text }) => `  ${paint(terminal, 'dim', label.padEnd(width))}  ${text}\n`),
      ...(of.policies.length === 0 ? [] : [table(terminal, columns(of), policyRows(of).map(indented))]),
    ].join('');
  });
  return `${parts.join('\n')}\n${notesOf(aggregates)
    .map((note) => `${paint(terminal, 'dim', note)}\n`)
    .join('')}`;
}
