import { styleText } from 'node:util';

/** Where a command writes, and how wide and colourful it may be. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Moves the cursor or erases. Texts never do that: see `harmless`. */
  readonly steer: (stream: 'out' | 'err', sequence: Steering) => void;
  readonly colour: boolean;
  /** Characters per line; 80 where there is no terminal. */
  readonly columns: number;
  /** Lines of the screen; absent: unknown. */
  readonly rows?: number | undefined;
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
    out: (text) => void process.stdout.write(harmless(text)),
    err: (text) => void process.stderr.write(harmless(text)),
    steer: (stream, sequence) => void (stream === 'out' ? process.stdout : process.stderr).write(sequence),
    colour: coloured(process.env, { live }),
    columns: process.stdout.columns || 80,
    rows: process.stdout.rows,
    live,
  };
}

/** Up by some lines, over the whole line, over all that is below, and back to the start of an erased line. */
type Steering = `\u001b[${number}A` | '\u001b[2K' | '\u001b[0J' | '\r\u001b[2K';

/**
 * What a terminal would obey in place of showing it: control characters but line feeds and tabs, and those that change the direction of
 * writing. The first group is the styles of `paint`, which are no harm.
 */
const OBEYED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /(\u001b\[(?:[12]|22|3[1-69])m)|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text whose names and messages, which others chose, cannot steer the terminal: such characters are shown as JSON writes them. Pure. */
export const harmless = (text: string): string =>
  text.replaceAll(
    OBEYED,
    (found, style?: string) => style ?? `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Colours on a terminal, never with NO_COLOR; FORCE_COLOR decides before both, and `0` or `false` of it forbids them. */
export function coloured(
  env: Readonly<Record<string, string | undefined>>,
  { live }: { readonly live: boolean },
): boolean {
  const { FORCE_COLOR, NO_COLOR } = env;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return live && (NO_COLOR ?? '') === '';
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta' | 'blue';

/** Text in a style, where the terminal has styles. */
export const paint = (terminal: Terminal, style: Style, text: string): string =>
  terminal.colour ? styleText(style, text, { validateStream: false }) : text;

/** A text of limited length; `…` marks the cut. */
export const cutToWidth = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;

/** A name of limited length, cut in the middle: hosts differ at their ends. */
export function cutMiddle(text: string, width: number): string {
  if (text.length <= width) return text;
  const end = Math.max(0, Math.ceil((width - 1) * 0.6));
  return `${text.slice(0, Math.max(0, width - 1 - end))}…${end === 0 ? '' : text.slice(-end)}`;
}
