import { styleText } from 'node:util';

/** Where a command writes, and how wide and colourful it may be. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly colour: boolean;
  /** Characters per line; 80 where there is no terminal. */
  readonly columns: number;
  /** Whether a person watches: then lines may be drawn over. */
  readonly live: boolean;
}

/** The process's own terminal. Colours only on a terminal, and never with NO_COLOR. */
export function processTerminal(): Terminal {
  const live = process.stdout.isTTY === true && process.env.TERM !== 'dumb';
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    colour: live && (process.env.NO_COLOR ?? '') === '',
    columns: process.stdout.columns || 80,
    live,
  };
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta' | 'blue';

/** Text in a style, where the terminal has styles. */
export const paint = (terminal: Terminal, style: Style, text: string): string =>
  terminal.colour ? styleText(style, text, { validateStream: false }) : text;

/** Columns padded to their widest cell; two spaces between. Cells hold no styles. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
