import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { harmless, processTerminal, type Terminal } from './terminal.ts';

/** Everything that a command takes from outside. */
export interface Shell {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** A new id for a command. */
  readonly newId: () => string;
  /** The author of the command: `user@host`. */
  readonly person: string;
  /** Aborted when the person wants an end (Ctrl-C); asked for by commands that run on. */
  readonly interrupted: () => AbortSignal;
  /** Asks the person a question and gives the answer; null where nobody can answer. */
  readonly ask: ((question: string) => Promise<string>) | null;
}

/** Exit status of a command that a person ended, as shells give it. */
export const INTERRUPTED = 130;

/** Whether the person says yes; an empty answer is no. */
export const agrees = async (ask: NonNullable<Shell['ask']>, question: string): Promise<boolean> =>
  /^y(es)?$/i.test((await ask(`${question} [y/N] `)).trim());

/** The process's own shell. */
export const processShell = (): Shell => ({
  terminal: processTerminal(),
  env: process.env,
  now: Date.now,
  newId: randomUUID,
  person: `${userName(process.env)}@${hostname()}`,
  interrupted: () => {
    const stop = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
    return stop.signal;
  },
  ask: process.stdin.isTTY === true && process.stderr.isTTY === true ? askPerson : null,
});

async function askPerson(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(harmless(question));
  } finally {
    lines.close();
  }
}

/** The person at the keyboard, not the user that sudo made of them. A process without an account has only its number. */
function userName(env: Shell['env']): string {
  const { SUDO_USER } = env;
  if (SUDO_USER !== undefined && SUDO_USER !== '') return SUDO_USER;
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? '?'}`;
  }
}
