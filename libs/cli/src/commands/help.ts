import type { Terminal } from '../terminal.ts';

/** Examples below a command's help: what to type, and what for. */
export function examples(...lines: readonly (readonly [command: string, what: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length));
  return `\nExamples:\n${lines.map(([command, what]) => `  ${command.padEnd(width)}  ${what}`).join('\n')}`;
}

export const printJson = (terminal: Terminal, value: unknown): void =>
  terminal.out(`${JSON.stringify(value, null, 2)}\n`);
