/** The report on a terminal. Pure. */
import { iso } from '@kronos/contracts';
import { type Column, table } from '../table.ts';
import { paint, type Terminal } from '../terminal.ts';
import type { AggregateFigures } from './figures.ts';
import { linesOf, modeOf, notesOf, policyHeads, policyRows } from './lines.ts';

const minute = (ms: number): string => `${iso(ms).slice(0, 16).replace('T', ' ')}Z`;

const indented = ([first = '', ...others]: readonly string[]): string[] => [`  ${first}`, ...others];

type Part = {
  readonly head: string;
  readonly lines: readonly { readonly label: string; readonly text: string }[];
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
};

/** The figures of an aggregate: lines with their labels, and a row for each policy where there is one. */
export function figureText(terminal: Terminal, { head, lines, heads, rows }: Part): string {
  const width = Math.max(...lines.map(({ label }) => label.length));
  const columns = indented(heads).map((text, i): Column => ({ head: text.toUpperCase(), right: i > 0 }));
  return [
    `${head}\n`,
    ...lines.map(({ label, text }) => `  ${paint(terminal, 'dim', label.padEnd(width))}  ${text}\n`),
    ...(rows.length === 0 ? [] : [table(terminal, columns, rows.map(indented))]),
  ].join('');
}

/** Parts below each other, and notes on all of them. */
export const withNotes = (terminal: Terminal, parts: readonly string[], notes: readonly string[]): string =>
  `${parts.join('\n')}\n${notes.map((note) => `${paint(terminal, 'dim', note)}\n`).join('')}`;

export function renderReport(terminal: Terminal, aggregates: readonly AggregateFigures[]): string {
  if (aggregates.length === 0) return 'The log holds no decision in this range.\n';
  const parts = aggregates.map((of) =>
    figureText(terminal, {
      head: `${paint(terminal, 'bold', of.aggregate)} ${minute(of.sinceMs)} to ${minute(of.untilMs)}, ${modeOf(of)}`,
      lines: linesOf(of),
      heads: policyHeads(of),
      rows: policyRows(of),
    }),
  );
  return withNotes(terminal, parts, notesOf(aggregates));
}
