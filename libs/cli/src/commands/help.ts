import type { Terminal } from '../terminal.ts';

/** Examples below a command's help: what to type, and what for. */
export function examples(...lines: readonly (readonly [command: string, what: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length));
  return `\nExamples:\n${lines.map(([command, what]) => `  ${command.padEnd(width)}  ${what}`).join('\n')}`;
}

/** Prints a value as JSON, times (`atMs`, `untilMs`: ms since the epoch) as ISO-8601 (`at`, `until`). */
export const printJson = (terminal: Terminal, value: unknown): void =>
  terminal.out(`${JSON.stringify(withTimes(value), null, 2)}\n`);

function withTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withTimes);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) =>
      TIME.test(key) && (typeof inner === 'number' || inner === null)
        ? [key.slice(0, -2), inner === null ? null : new Date(inner).toISOString()]
        : [key, withTimes(inner)],
    ),
  );
}

/** Names of points in time; durations (`totalMs`, `runningMs`) stay numbers. */
const TIME = /^(at|time|since|until|snapshotTime|decidedAt|releasedAt|endedAt|expiresAt|dispatchedAt|startedAt)Ms$/;
