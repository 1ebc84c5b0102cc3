import { iso } from '@kronos/contracts/time';
import type { OutputOption } from './grammar/shared.ts';
import type { Shell } from './shell.ts';
import type { Terminal } from './terminal.ts';

export type OutputFormat = 'table' | 'wide' | 'json' | 'yaml';

export const formatOf = ({ output, json }: OutputOption): OutputFormat =>
  json === true ? 'json' : (output ?? 'table');

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
  else write(textShell(shell, options));
}

/** The shell for an answer to people: with `-o wide` nothing is cut. */
export const textShell = (shell: Shell, options: OutputOption): Shell =>
  formatOf(options) === 'wide' ? { ...shell, terminal: { ...shell.terminal, live: false, wide: true } } : shell;

/** An answer for a program whose list is too long to be held: some fields, the list element by element, other fields. */
export type AnswerStream = {
  readonly add: (element: unknown) => void;
  readonly end: (last: object) => void;
};

/**
 * Begins such an answer; null when the answer is for people. Nothing is printed before the first element or the end: what
 * makes the list may fail at its start.
 *
 * @param first at least one field
 * @param list the name of the list
 */
export async function answerStream(
  { terminal }: Shell,
  options: OutputOption,
  first: object,
  list: string,
): Promise<AnswerStream | null> {
  const format = formatOf(options);
  if (format !== 'json' && format !== 'yaml') return null;
  const yaml = format === 'yaml' ? (await import('yaml')).stringify : null;
  const fields = (value: object): string =>
    yaml === null ? JSON.stringify(withTimes(value), null, 2).slice(2, -2) : yaml(plain(withTimes(value)));
  const indented = (text: string, by: string): string => text.replaceAll(/\n(?=.)/g, `\n${by}`);
  let elements = 0;
  const head = yaml === null ? `{\n${fields(first)},\n  "${list}": [` : `${fields(first)}${list}:`;
  return {
    add(element) {
      const before = elements === 0 ? head : yaml === null ? ',' : '';
      elements += 1;
      if (yaml === null)
        terminal.out(`${before}\n    ${indented(JSON.stringify(withTimes(element), null, 2), '    ')}`);
      else terminal.out(`${before}${elements === 1 ? '\n' : ''}  ${indented(yaml([plain(withTimes(element))]), '  ')}`);
    },
    end(last) {
      const none = elements === 0;
      if (yaml === null) terminal.out(`${none ? `${head}]` : '\n  ]'},\n${fields(last)}\n}\n`);
      else terminal.out(`${none ? `${head} []\n` : ''}${fields(last)}`);
    },
  };
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
        ? [key.slice(0, -2), inner === null ? null : iso(inner)]
        : [key, withTimes(inner)],
    ),
  );
}

/** Names of points in time; durations (`totalMs`, `runningMs`) stay numbers. */
const TIME = /^(at|time|since|until|snapshotTime|decidedAt|releasedAt|endedAt|expiresAt|dispatchedAt|startedAt)Ms$/;
