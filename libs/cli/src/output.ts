import type { OutputOption } from './grammar/shared.ts';
import type { Shell } from './shell.ts';
import type { Terminal } from './terminal.ts';

export type Format = 'table' | 'wide' | 'json' | 'yaml';

export const formatOf = ({ output, json }: OutputOption): Format => (json === true ? 'json' : (output ?? 'table'));

/** Whether the answer is for a program: then nothing else may be printed. */
export const isStructured = (options: OutputOption): boolean => ['json', 'yaml'].includes(formatOf(options));

/**
 * Prints the answer of a command in the form that was asked for.
 *
 * @param text the answer for people
 */
export const answer = (
  shell: Shell,
  options: OutputOption,
  value: unknown,
  text: (terminal: Terminal) => string,
): Promise<void> => answerInParts(shell, options, value, ({ terminal }) => terminal.out(text(terminal)));

/** The same, for an answer that is written part by part. */
export async function answerInParts(
  shell: Shell,
  options: OutputOption,
  value: unknown,
  write: (shell: Shell) => void,
): Promise<void> {
  const { terminal } = shell;
  const format = formatOf(options);
  if (format === 'json') terminal.out(`${JSON.stringify(withTimes(value), null, 2)}\n`);
  else if (format === 'yaml') terminal.out((await import('yaml')).stringify(plain(withTimes(value))));
  else write(format === 'wide' ? { ...shell, terminal: { ...terminal, live: false, wide: true } } : shell);
}

/** A value as JSON has it: no fields that are undefined. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Times (`atMs`, `untilMs`: ms since the epoch) as ISO-8601 (`at`, `until`). */
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
