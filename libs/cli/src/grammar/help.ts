import { wrapped } from '@kronos/contracts/words';

const WIDTH = 80;
const INDENT = 2;

/** Examples below a command's help: what to type, and what for, beside it or where that is too wide above it. */
export function examples(...lines: readonly (readonly [command: string, what: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length));
  const widest = Math.max(...lines.map(([, what]) => what.length));
  const text =
    INDENT + width + INDENT + widest <= WIDTH
      ? lines.map(([command, what]) => `  ${command.padEnd(width)}  ${what}`)
      : lines.map(([command, what]) => `  # ${what}\n  ${command}`);
  return `\nExamples:\n${text.join('\n')}`;
}

/** A help text in lines that fit. Line breaks are kept; a line that is indented was laid out already. */
export const prose = (text: string): string =>
  text
    .split('\n')
    .flatMap((line) => (line.startsWith(' ') ? [line] : wrapped(line, WIDTH)))
    .join('\n');
