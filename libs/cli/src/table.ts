import type { Step } from '@kronos/contracts';
import { stepOfTask } from '@kronos/contracts/names';
import { wrapped } from '@kronos/contracts/words';
import { cutMiddle, cutToWidth, harmless, paint, type Style, type Terminal } from './terminal.ts';

/** One cell of a table: its text, or its text and a style. */
export type Cell = string | { readonly text: string; readonly style: Style };

/**
 * A heading; `right` aligns numbers. Where the terminal is too narrow, cells are cut to their `short` length, then columns that are
 * `below` stand below their rows, then those that are `minor` are left out, the last one first, and then those that are `flex` are cut. What
 * is `minor` and `below`, such as an id that a person copies, stands below its row where it would be left out.
 */
export type Column = {
  readonly head: string;
  readonly right?: boolean;
  readonly flex?: boolean;
  readonly minor?: boolean;
  /** Names of hosts: cut in the middle, and only as far as all of the table can still be told apart. */
  readonly host?: boolean;
  /** The first characters of a cell that suffice, such as 8 of a uuid. */
  readonly short?: number;
  /** Sentences, which stand below their rows where there is no room beside them. */
  readonly below?: boolean;
  /** Left out where every cell is empty. */
  readonly sparse?: boolean;
  /** Shown with `-o wide` only. */
  readonly wide?: boolean;
};

/** The columns in which every table of moves names a VM and its two hosts. */
export const MOVE_COLUMNS: readonly Column[] = [
  { head: 'vm', flex: true },
  { head: 'from', flex: true, host: true },
  { head: 'to', flex: true, host: true },
];
/** Those of a table of a plan's steps. */
export const STEP_COLUMNS: readonly Column[] = [{ head: 'step', right: true }, ...MOVE_COLUMNS];
/** A step in these columns. */
export const stepCells = ({
  step,
  serverName,
  from,
  to,
}: Pick<Step, 'step' | 'serverName' | 'from' | 'to'>): Cell[] => [String(step), serverName, from, to];
/** The steps that a step waits for. */
export const waitsFor = ({ dependsOn }: Pick<Step, 'dependsOn'>): string => dependsOn.map(stepOfTask).join(', ');

/** The text of a cell on one line, as wide as it is shown: texts of Nova and of people have line breaks. */
const textOf = (cell: Cell): string =>
  harmless((typeof cell === 'string' ? cell : cell.text).replaceAll(/\s*[\r\n]+\s*/g, ' '));
const LEAST_FLEX = 8;
const GAP = 2;

/** A text is readable in this width. */
const READABLE = 24;

/** The width at which every column is readable: names of hosts and what is not `flex` are whole. */
const readableWidth = (columns: readonly Column[], rows: readonly (readonly Cell[])[]): number =>
  columns.reduce(
    (sum, { head, flex, host, below }, i) => {
      const whole = Math.max(head.length, ...rows.map((row) => textOf(row[i] ?? '').length));
      return sum + (flex === true && host !== true && below !== true ? Math.min(whole, READABLE) : whole);
    },
    GAP * (columns.length - 1),
  );

const BELOW_INDENT = 4;

/** The columns that stand below their rows in a table that is too wide. */
function belowIn(terminal: Terminal, { columns, rows }: Table): readonly number[] {
  const chosen = (wanted: (column: Column) => boolean) => columns.flatMap((column, i) => (wanted(column) ? [i] : []));
  // The ids, and what is never left out.
  const beside = chosen(({ below, minor }) => (below === true) === (minor === true));
  const fits =
    readableWidth(
      beside.flatMap((i) => columns[i] ?? []),
      rows.map((row) => beside.map((i) => row[i] ?? '')),
    ) <= terminal.columns;
  return chosen(({ below, minor }) => below === true && (minor !== true || !fits));
}

/** The table without some columns, and these below each row. */
function withBelow(terminal: Terminal, { columns, rows }: Table, below: readonly number[]): string {
  const beside = <T>(of: readonly T[]): T[] => of.filter((_, i) => !below.includes(i));
  const [head = '', ...lines] = table(
    terminal,
    beside(columns),
    rows.map((row) => beside(columns.map((_, i) => row[i] ?? ''))),
  )
    .trimEnd()
    .split('\n');
  const text = lines.flatMap((line, n) => [
    line,
    ...below
      .map((i) => textOf(rows[n]?.[i] ?? ''))
      .filter((sentence) => sentence !== '')
      .flatMap((sentence) => wrapped(sentence, terminal.columns - BELOW_INDENT))
      .map((sentence) => `${' '.repeat(BELOW_INDENT)}${paint(terminal, 'dim', sentence)}`),
  ]);
  return `${[head, ...text].join('\n')}\n`;
}

type Table = { readonly columns: readonly Column[]; readonly rows: readonly (readonly Cell[])[] };

const without = (terminal: Terminal, { columns, rows }: Table, at: number): string =>
  table(
    terminal,
    columns.toSpliced(at, 1),
    rows.map((row) => row.toSpliced(at, 1)),
  );

/** The table with the shorter forms of its cells. */
function shortened(columns: readonly Column[], rows: readonly (readonly Cell[])[]): [Column[], Cell[][]] {
  const cells = rows.map((row) =>
    row.map((cell, i): Cell => {
      const text = textOf(cell).slice(0, columns[i]?.short ?? Number.POSITIVE_INFINITY);
      return typeof cell === 'string' ? text : { ...cell, text };
    }),
  );
  return [columns.map(({ short: _, ...column }) => column), cells];
}

/** The least width at which the hosts of all columns together can still be told apart. */
function leastHostWidth(columns: readonly Column[], rows: readonly (readonly Cell[])[]): number {
  const hosts = new Set(
    columns.flatMap(({ host }, i) => (host === true ? rows.map((row) => textOf(row[i] ?? '')) : [])),
  );
  const longest = Math.max(0, ...[...hosts].map((name) => name.length));
  let width = LEAST_FLEX;
  while (width < longest && new Set([...hosts].map((name) => cutMiddle(name, width))).size < hosts.size) width += 1;
  return width;
}

/** The widths of the columns: on a terminal the widest flexible ones are cut until the table fits, or can be cut no further. */
function widthsOf(terminal: Terminal, columns: readonly Column[], rows: readonly (readonly Cell[])[]): number[] {
  const widths = columns.map(({ head }, i) => Math.max(head.length, ...rows.map((row) => textOf(row[i] ?? '').length)));
  const total = () => widths.reduce((sum, width) => sum + width, GAP * (columns.length - 1));
  if (!terminal.live || total() <= terminal.columns) return widths;
  const hostWidth = leastHostWidth(columns, rows);
  while (total() > terminal.columns) {
    let widest = -1;
    for (const [i, { flex, host }] of columns.entries()) {
      const least = host === true ? hostWidth : LEAST_FLEX;
      if (flex === true && (widths[i] ?? 0) > least && (widths[i] ?? 0) > (widths[widest] ?? 0)) widest = i;
    }
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

/**
 * A table with a heading, as wide as its cells. On a terminal the widest flexible columns are cut until it fits; into a
 * file or a pipe everything is written whole.
 */
export function table(terminal: Terminal, columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  const more = terminal.wide === true ? -1 : columns.findLastIndex((column) => column.wide === true);
  if (more >= 0) return without(terminal, { columns, rows }, more);
  const empty = columns.findIndex(
    ({ sparse }, i) => sparse === true && rows.every((row) => textOf(row[i] ?? '') === ''),
  );
  if (empty >= 0) return without(terminal, { columns, rows }, empty);
  const narrow = terminal.live && readableWidth(columns, rows) > terminal.columns;
  if (narrow && columns.some(({ short }) => short !== undefined)) return table(terminal, ...shortened(columns, rows));
  const below = narrow ? belowIn(terminal, { columns, rows }) : [];
  if (below.length > 0) return withBelow(terminal, { columns, rows }, below);
  const minor = columns.findLastIndex((column) => column.minor === true && column.below !== true);
  if (narrow && minor >= 0) return without(terminal, { columns, rows }, minor);
  const widths = widthsOf(terminal, columns, rows);
  const line = (cells: readonly Cell[]): string =>
    columns
      .map(({ right, host }, i) => {
        const cell = cells[i] ?? '';
        const width = widths[i] ?? 0;
        const text = host === true ? cutMiddle(textOf(cell), width) : cutToWidth(textOf(cell), width);
        const blank = ' '.repeat(width - text.length);
        const shown = typeof cell === 'string' || text === '' ? text : paint(terminal, cell.style, text);
        return right === true ? blank + shown : shown + blank;
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  const head = line(columns.map(({ head: text }): Cell => ({ text, style: 'dim' })));
  return `${[head, ...rows.map(line)].join('\n')}\n`;
}
