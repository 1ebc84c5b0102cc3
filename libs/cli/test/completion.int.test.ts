import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@kronos/clock/testing';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { kronos } from './world.ts';

/** A shell at a terminal, with the completion loaded as the help of `kronos completion` says. */
const shells = {
  bash: {
    start: 'bash --noprofile --norc -i',
    setUp: (file: string) => `bind 'set bell-style none'; bind 'set page-completions off'; source ${file}`,
  },
  zsh: {
    start: 'zsh -f -i',
    setUp: (file: string) =>
      `autoload -U compinit; compinit -u -D; setopt nobeep; unsetopt zle_bracketed_paste; source ${file}`,
  },
} as const;
type Name = keyof typeof shells;

const runs = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;
/** `script` of util-linux gives a shell a terminal. */
const terminal = runs('script', '-qec', 'true', '/dev/null');

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'kronos-completion-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Types into the shell and waits for what it shows then. */
async function typed(name: Name, keys: string, shown: RegExp): Promise<string> {
  const { out } = await kronos(['completion', name]);
  const file = join(directory, `kronos.${name}`);
  writeFileSync(file, out);
  const child = spawn('script', ['-qfec', shells[name].start, '/dev/null'], {
    env: { ...process.env, TERM: 'dumb', PS1: '> ', COLUMNS: '100', HOME: directory, HISTFILE: '/dev/null' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  let screen = '';
  const shows = (what: RegExp) =>
    until(
      () => what.test(screen),
      undefined,
      () => `${name} to show ${what}: ${screen}`,
    );
  child.stdout.on('data', (data: Buffer) => {
    screen += data.toString();
  });
  try {
    child.stdin.write(`${shells[name].setUp(file)}; echo rea""dy\n`);
    await shows(/ready\r?\n/);
    screen = '';
    child.stdin.write(keys);
    await shows(shown);
    return screen;
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
}

for (const name of ['bash', 'zsh'] as const) {
  const there = terminal && runs(name, '-c', 'true');
  if (!there)
    console.warn(`The completion for ${name} was NOT tried: there is no ${terminal ? name : 'script command'}.`);
  describe.skipIf(!there)(`the completion in a real ${name}`, () => {
    it('finishes a command', async () => {
      await typed(name, 'kronos sta\t', /kronos status /);
    });

    it('lists the subcommands', async () => {
      await typed(name, 'kronos quarantine \t\t', /add[\s\S]*list[\s\S]*release|list[\s\S]*add[\s\S]*release/);
    });

    it('finishes an option, and its choices', async () => {
      await typed(name, 'kronos plan --mo\t', /kronos plan --mode /);
      await typed(name, 'kronos plan --mode sp\t', /kronos plan --mode spread /);
    });

    it('gives file names for the value of an option that is a file', async () => {
      writeFileSync(join(directory, 'other-policies.yaml'), '');
      await typed(name, `kronos replay --policies ${directory}/oth\t`, /other-policies\.yaml/);
    });
  });
}
