import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePorts } from '@kronos/eventlog/testing';
import { expect } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The blocks of docs/tutorial.md in a language. */
const blocks = (language: string): string[] =>
  [...readFileSync(`${root}docs/tutorial.md`, 'utf8').matchAll(/^```(\w*)\n(.*?)^```$/gms)].flatMap(
    ([, of, block = '']) => (of === language ? [block] : []),
  );

/** The documented answers of the commands, independent of the aggregate that decided last. */
export const shownOutput = (): string[] => blocks('text');

/** The commands of the page, in their order. */
export const tutorialCommands = (): string[] => blocks('').flatMap((block) => block.trim().split('\n'));

type Outcome = { readonly command: string; readonly text: string; readonly status: number };

/** The answers of the commands of docs/tutorial.md, and everything on standard error. */
export type Followed = {
  readonly outcomes: readonly Outcome[];
  readonly stderr: string;
};

/**
 * Runs the commands of docs/tutorial.md word for word, in a directory of its own. The project is there already, and the names
 * of the page stand for those of the stage.
 */
export async function followTutorial(stage: {
  readonly work: string;
  readonly cloud: string;
  readonly cloudsFile: string;
  readonly prometheusUrl: string;
}): Promise<Followed> {
  const commands = tutorialCommands();
  expect(commands).toHaveLength(9);
  const [clone, names = '', ...rest] = commands;
  expect(clone).toMatch(/^git clone .* && npm ci$/);
  const given: Readonly<Record<string, string>> = {
    'http://PROMETHEUS:9090': stage.prometheusUrl,
    NAME: stage.cloud,
  };
  const script = [
    `cd ${root}`,
    names.replace('$PWD/kronos.conf', '$WORK/kronos.conf'),
    'cd "$WORK"',
    ...rest.map((command) => {
      const own = Object.entries(given).reduce((text, [from, to]) => text.replace(from, to), command);
      // Each command prints its exit status.
      return `${own}\necho "status $?"`;
    }),
    'kill %1 && wait',
  ].join('\n');
  mkdirSync(stage.work);
  const [nats = 0, ...ports] = await freePorts(5);
  const http = ['SCORER', 'PLANNER', 'EXECUTOR', 'LEDGER'].map((name, i) => [`OS_HTTP__${name}_PORT`, `${ports[i]}`]);
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', script], {
    env: {
      ...process.env,
      ...Object.fromEntries(http),
      OS_NATS__SERVERS: `nats://127.0.0.1:${nats}`,
      WORK: stage.work,
      OS_CLIENT_CONFIG_FILE: stage.cloudsFile,
    },
    maxBuffer: 64 * 1024 ** 2,
  });
  const parts = stdout.split(/^status /m);
  const outcomes = rest.map((command, i) => ({
    command,
    text: (parts[i] ?? '').replace(/^\d+\n/, ''),
    status: Number(/^\d+/.exec(parts[i + 1] ?? '')?.[0] ?? Number.NaN),
  }));
  return { outcomes, stderr };
}
