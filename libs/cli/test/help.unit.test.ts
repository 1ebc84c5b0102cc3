import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../src/program.ts';
import { kronos, testShell } from './world.ts';

const paths = (command: Command, path: readonly string[] = []): string[][] => [
  [...path],
  ...command.commands.flatMap((sub) => paths(sub, [...path, sub.name()])),
];
const services = ['scorer', 'planner', 'executor', 'ledger'];
const all = paths(createProgram(testShell().shell)).filter(
  ([first]) => first === undefined || !(services.includes(first) || first === '__complete'),
);

describe('help', () => {
  it.each(all.map((path) => [path.join(' ')]))('of kronos %s', async (path) => {
    const { status, out } = await kronos([...path.split(' ').filter((word) => word !== ''), '--help']);
    expect(status).toBe(0);
    expect(out.split('\n').filter((line) => line.length > 80 && !line.startsWith('  kronos '))).toEqual([]);
    await expect(out).toMatchFileSnapshot(`golden/help/${path.replaceAll(' ', '-') || 'kronos'}.golden.txt`);
  });

  it('is that of a command of a group, too', async () => {
    const { status, out } = await kronos(['help', 'explain', 'vm']);
    expect({ status, out }).toEqual({ status: 0, out: (await kronos(['explain', 'vm', '--help'])).out });
  });

  it('lists what is seldom needed with --all only', async () => {
    const seldom = [...services, 'log', 'archive', 'completion'];
    const listed = (text: string) => seldom.filter((name) => new RegExp(`^  ${name}\\b`, 'm').test(text));
    expect(listed((await kronos(['--help'])).out)).toEqual([]);
    for (const words of [
      ['--help', '--all'],
      ['--all', '--help'],
    ])
      expect(listed((await kronos(words)).out)).toEqual(seldom);
    expect((await kronos(['log', '--help'])).out).toContain('skip');
  });

  it('has an example for every command that is not a group', () => {
    const program = createProgram(testShell().shell);
    const without: readonly string[] = services;
    const find = (path: readonly string[]): Command | undefined =>
      path.reduce<Command | undefined>((at, name) => at?.commands.find((sub) => sub.name() === name), program);
    for (const path of all) {
      const command = find(path);
      if (command === undefined || command.commands.length > 0 || without.includes(path.join(' '))) continue;
      let text = '';
      command.configureOutput({ writeOut: (part) => (text += part) });
      command.outputHelp();
      expect(text, path.join(' ')).toContain('Examples:');
    }
  });
});

describe('what is not understood', () => {
  it.each([
    'nonsense',
    'pause --nonsense',
    'cancel',
    'plan',
    'plan --cluster /nonexistent.json -k 3',
    'plan --cluster x.json',
    'plan --cluster package.json -k 3',
    'plan --mode sideways',
    'plan --mode pack --snapshot x.json',
    'plan --cooldowns x.json --cluster x.json -k 3',
    'replay x --planner magic',
    'tap nonsense',
    'tap --since soon',
    'init --cloud prod --prometheus prometheus:9090',
    'record --anonymize',
    'record --to x --until 2h',
    'replay /nonexistent',
    'replay --since soon',
    'backtest --since 9x',
    'evidence verify /nonexistent.html',
    'quarantine add x --for ever',
    'approve --step two',
    'completion tcsh',
    'pause gpu',
    'status -o xml',
    'status --json -o yaml',
    '-c /nonexistent.conf pause',
    '-c a.conf pause -c b.conf',
    '-c a.conf completion bash',
    '--all pause',
    'pause -c /nonexistent.conf',
  ])('%s', async (line) => {
    const { status, out, err } = await kronos(line.split(' '));
    expect(status).toBeGreaterThan(0);
    expect(out).toBe('');
    await expect(`status ${status}\n${err}`).toMatchFileSnapshot(
      `golden/errors/${line.replaceAll(/[^\w.-]+/g, '_')}.golden.txt`,
    );
  });
});

describe('init', () => {
  it('without a cloud names those of clouds.yaml', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kronos-clouds-'));
    try {
      const file = join(directory, 'clouds.yaml');
      await writeFile(file, 'clouds: {prod: {}, lab: {}}');
      for (const [words, env] of [
        [['init'], { OS_CLIENT_CONFIG_FILE: file }],
        [['init', '--clouds-file', file], {}],
      ] as const) {
        const { status, out, err } = await kronos(words, { env });
        expect([status, out]).toEqual([2, '']);
        expect(err).toBe(`kronos: no cloud is set\nAdd --cloud NAME, or set OS_CLOUD. ${file} has: lab, prod.\n`);
      }
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

describe('completion', () => {
  const complete = (script: string, ...words: string[]): string[] => {
    const run = `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _kronos; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', run, 'bash', ...words], { encoding: 'utf8' });
    expect(stderr).toBe('');
    return stdout.split('\n').filter((line) => line !== '');
  };

  it('of bash knows commands, their options and choices', async () => {
    const { out } = await kronos(['completion', 'bash']);
    expect(complete(out, 'kronos', 'sta')).toEqual(['status']);
    expect(complete(out, 'kronos', 'quarantine', '')).toEqual(['list', 'add', 'release']);
    expect(complete(out, 'kronos', 'plan', '--mode', '')).toEqual(['spread', 'pack']);
    expect(complete(out, 'kronos', 'explain', 'vm', '--a')).toEqual(['--at', '--aggregate']);
    expect(complete(out, 'kronos', 'replay', '--policies', '')).toEqual([]);
  });

  it('of fish names every command and option', async () => {
    const { out } = await kronos(['completion', 'fish']);
    for (const path of all.filter((one) => one.length > 0)) expect(out).toContain(`' ${path.join(' ')}'`);
    expect(out).toContain(`complete -c kronos -n '__kronos_at \\'\\'' -f -a status -d 'Show health`);
    expect(out).toContain(`'__kronos_at \\' plan\\'' -l mode -x -a 'spread pack'`);
    expect(out).toContain(`'__kronos_at \\' tap\\'' -s c -l config -r -d`);
  });

  it('of zsh names every command with what it does', async () => {
    const { out } = await kronos(['completion', 'zsh']);
    for (const path of all.filter((one) => one.length > 0)) expect(out).toContain(`' ${path.join(' ')}'`);
    expect(out).toContain("'status:Show health");
  });
});
