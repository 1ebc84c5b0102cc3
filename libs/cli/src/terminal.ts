import { styleText } from 'node:util';

/** Where a command writes, and how wide and colourful it may be. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly colour: boolean;
  /** Characters per line; 80 where there is no terminal. */
  readonly columns: number;
  /** Whether a person watches: then lines may be drawn over, and tables are cut to fit. */
  readonly live: boolean;
  /** Whether everything is asked for: tables show every column, uncut. */
  readonly wide?: boolean;
}

/** The process's own terminal. */
export function processTerminal(): Terminal {
  const live = process.stdout.isTTY === true && process.env.TERM !== 'dumb';
  // The reader of a pipe may have enough: kronos tap | head.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    colour: coloured(process.env, live),
    columns: process.stdout.columns || 80,
    live,
  };
}

/** Colours on a terminal, never with NO_COLOR; FORCE_COLOR decides before both, and `0` or `false` of it forbids them. */
export function coloured(env: Readonly<Record<string, string | undefined>>, live: boolean): boolean {
  const { FORCE_COLOR, NO_COLOR } = env;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return live && (NO_COLOR ?? '') === '';
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta' | 'blue';

/** Text in a style, where the terminal has styles. */
export const paint = (terminal: Terminal, style: Style, text: string): string =>
  terminal.colour ? styleText(style, text, { validateStream: false }) : text;

/** One cell of a table: its text, or its text and a style. */
export type Cell = string | { readonly text: string; readonly style: Style };

/**
 * A heading; `right` aligns numbers. Where the terminal is too narrow columns that are `minor` are left out, the last one
 * first, and then those that are `flex` are cut.
 */
export type Column = {
  readonly head: string;
  readonly right?: boolean;
  readonly flex?: boolean;
  readonly minor?: boolean;
  /** Shown with `-o wide` only. */
  readonly wide?: boolean;
};

/** The columns in which every table of moves names a VM and its two hosts. */
export const MOVE_COLUMNS: readonly Column[] = [
  { head: 'vm', flex: true },
  { head: 'from', flex: true },
  { head: 'to', flex: true },
];
/** Those of a table of a plan's steps. */
export const STEP_COLUMNS: readonly Column[] = [{ head: 'step', right: true }, ...MOVE_COLUMNS];

const textOf = (cell: Cell): string => (typeof cell === 'string' ? cell : cell.text);
const LEAST_FLEX = 8;
const GAP = 2;

const naturalWidth = (columns: readonly Column[], rows: readonly (readonly Cell[])[]): number =>
  columns.reduce(
    (sum, { head }, i) => sum + Math.max(head.length, ...rows.map((row) => textOf(row[i] ?? '').length)),
    GAP * (columns.length - 1),
  );

/**
 * A table with a heading, as wide as its cells. On a terminal the widest flexible columns are cut until it fits; into a
 * file or a pipe everything is written whole.
 */
export function table(terminal: Terminal, columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  const more = terminal.wide === true ? -1 : columns.findLastIndex((column) => column.wide === true);
  if (more >= 0)
    return table(
      terminal,
      columns.toSpliced(more, 1),
      rows.map((row) => row.toSpliced(more, 1)),
    );
  const minor = columns.findLastIndex((column) => column.minor === true);
  if (terminal.live && minor >= 0 && naturalWidth(columns, rows) > terminal.columns)
    return table(
      terminal,
      columns.toSpliced(minor, 1),
      rows.map((row) => row.toSpliced(minor, 1)),
    );
  const widths = columns.map(({ head }, i) => Math.max(head.length, ...rows.map((row) => textOf(row[i] ?? '').length)));
  const total = () => widths.reduce((sum, width) => sum + width, GAP * (columns.length - 1));
  while (terminal.live && total() > terminal.columns) {
    let widest = -1;
    for (const [i, { flex }] of columns.entries())
      if (flex === true && (widths[i] ?? 0) > LEAST_FLEX && (widths[i] ?? 0) > (widths[widest] ?? 0)) widest = i;
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  const line = (cells: readonly Cell[]): string =>
    columns
      .map(({ right }, i) => {
        const cell = cells[i] ?? '';
        const width = widths[i] ?? 0;
        const text = cut(textOf(cell), width);
        const blank = ' '.repeat(width - text.length);
        const shown = typeof cell === 'string' || text === '' ? text : paint(terminal, cell.style, text);
        return right === true ? blank + shown : shown + blank;
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  const head = line(columns.map(({ head: text }): Cell => ({ text, style: 'dim' })));
  return `${[head, ...rows.map(line)].join('\n')}\n`;
}

/** A text of limited length; `…` marks the cut. */
export const cut = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;

/** A number for people: limited decimals, without trailing 0. */
export const figure = (value: number | null, decimals = 3): string =>
  value === null ? '-' : String(Number(value.toFixed(decimals)));

export { count } from '@kronos/contracts/words';
