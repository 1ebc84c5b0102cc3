import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryHistory, operate } from '../testing/index.ts';
import { checkChain } from './chain.ts';
import { recordRange } from './record.ts';
import { readRecording } from './recording.ts';
import { verify } from './verify.ts';

const op = operate({ seed: 11, cycles: 12, commands: 0.2, aggregates: ['gpu', 'web eu/1'], hosts: 3, vmsPerHost: 3 });
let root = '';
let directory = '';
let files: string[] = [];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-chain-'));
  directory = join(root, 'case');
  const options = { range: {}, anonymize: false, madeBy: 'test', nowMs: 0 };
  await recordRange(memoryHistory(op.events, op.snapshots), directory, options);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
});
afterAll(() => rm(root, { recursive: true }));

const log = async () => (await readFile(join(directory, 'log.jsonl'), 'utf8')).trimEnd().split('\n');
const sequenceOf = (line = '{}'): number => JSON.parse(line).sequence;
/** Changes one file, gives what is found, and puts the file back. */
async function found(file: string, change: (text: string) => string): Promise<readonly string[]> {
  const path = join(directory, file);
  const text = await readFile(path, 'utf8');
  await writeFile(path, change(text));
  const { problems } = await checkChain(directory);
  await writeFile(path, text);
  return problems;
}
const withLog = (change: (lines: string[]) => string[]) =>
  found('log.jsonl', (text) => `${change(text.trimEnd().split('\n')).join('\n')}\n`);

describe('a recording that nobody touched', () => {
  it('has no problem, and names its first and last event', async () => {
    expect(await checkChain(directory)).toEqual({ problems: [], ordered: true });
    const [beginning, ...lines] = (await readFile(join(directory, 'manifest.jsonl'), 'utf8')).trimEnd().split('\n');
    expect(JSON.parse(beginning ?? '')).toEqual({ kronosRecording: 2, firstSequence: 1, previous: null });
    expect(JSON.parse(lines.find((line) => line.includes('log.jsonl')) ?? '')).toMatchObject({
      events: op.events.length,
      first: 1,
      last: op.events.at(-1)?.sequence,
    });
  });

  it('has none either when what people may edit was edited', async () => {
    expect(await found('cooldowns.json', () => '{}')).toEqual([]);
    expect(await found('README.txt', () => 'our trial')).toEqual([]);
  });
});

describe('of the log of a recording', () => {
  it('any event that is dropped is named by its place', async () => {
    const lines = await log();
    for (const i of lines.keys()) {
      const problems = await withLog((all) => all.toSpliced(i, 1));
      const next = lines[i + 1];
      if (next === undefined)
        expect(problems[0]).toMatch(`holds ${lines.length - 1} events up to ${sequenceOf(lines[i - 1])}`);
      else
        expect(problems[0]).toMatch(
          `log.jsonl:${i + 1}: event ${sequenceOf(next)} followed event ${sequenceOf(lines[i])} when it was recorded`,
        );
    }
  });

  it('the last five events that are dropped are missed', async () => {
    const lines = await log();
    expect(await withLog((all) => all.slice(0, -5))).toEqual([
      `log.jsonl: holds ${lines.length - 5} events up to ${sequenceOf(lines.at(-6))}; ${lines.length} events up to ${sequenceOf(lines.at(-1))} were recorded`,
    ]);
  });

  it('any two events that are swapped are named by their places', async () => {
    const lines = await log();
    await fc.assert(
      fc.asyncProperty(fc.nat(lines.length - 1), fc.nat(lines.length - 1), async (i, j) => {
        fc.pre(i !== j);
        const [a, b] = [Math.min(i, j), Math.max(i, j)];
        const problems = await withLog((all) => all.with(a, all[b] ?? '').with(b, all[a] ?? ''));
        expect(problems[0]).toMatch(`log.jsonl:${a + 1}: event ${sequenceOf(lines[b])} followed`);
      }),
      { numRuns: 30 },
    );
  });

  it('any edited event is named by its place', async () => {
    const lines = await log();
    for (const [i, line] of lines.entries()) {
      const edited = line.replace(
        /("time":"\d+-\d+-\d+T)(\d\d)/,
        (_, before, hour) => `${before}${hour === '11' ? '12' : '11'}`,
      );
      expect(edited).not.toBe(line);
      expect(await withLog((all) => all.with(i, edited))).toEqual([
        `log.jsonl:${i + 1}: event ${sequenceOf(line)} was changed`,
      ]);
    }
  });

  it('an event that is added is named by its place', async () => {
    const lines = await log();
    const problems = await withLog((all) => all.toSpliced(7, 0, all[3] ?? ''));
    expect(problems[0]).toMatch(`log.jsonl:8: event ${sequenceOf(lines[3])} followed`);
  });
});

describe('of the files of a recording', () => {
  it('any that is missing is named', async () => {
    for (const file of files.filter((name) => !/README|cooldowns/.test(name))) {
      await rename(join(directory, file), join(root, 'away'));
      expect((await checkChain(directory)).problems[0]).toMatch(`${file}: is missing`);
      await rename(join(root, 'away'), join(directory, file));
    }
  });

  it('any that is edited is named', async () => {
    for (const file of files.filter((name) => !/README|cooldowns|log.jsonl|manifest/.test(name)))
      expect(await found(file, (text) => text.replace(/[0-9](?=\D*$)/, (d) => `${(Number(d) + 1) % 10}`))).toEqual([
        `${file}: was changed after it was recorded`,
      ]);
  });

  it('one that is added is named, and two that are swapped', async () => {
    const [a = '', b = ''] = files.filter((name) => name.startsWith('snapshots/gpu'));
    const added = join(directory, `${a}.json`);
    await cp(join(directory, a), added);
    expect((await checkChain(directory)).problems).toEqual([`${a}.json: was added: manifest.jsonl does not name it`]);
    await rm(added);
    await rename(join(directory, a), join(root, 'away'));
    await rename(join(directory, b), join(directory, a));
    await rename(join(root, 'away'), join(directory, b));
    expect((await checkChain(directory)).problems).toEqual(
      [a, b].map((file) => `${file}: was changed after it was recorded`),
    );
    await rename(join(directory, a), join(root, 'away'));
    await rename(join(directory, b), join(directory, a));
    await rename(join(root, 'away'), join(directory, b));
  });

  it('the manifest shows any line of its own that is dropped, swapped or edited', async () => {
    const lines = (await readFile(join(directory, 'manifest.jsonl'), 'utf8')).trimEnd().split('\n');
    const attempt = async (i: number, changed: string[]) => {
      const problems = await found('manifest.jsonl', () => `${changed.join('\n')}\n`);
      const said = problems.filter((problem) => problem.startsWith('manifest.jsonl'));
      expect(said[0], `${i}`).toMatch(/manifest.jsonl:\d+: |its end is missing/);
    };
    for (const [i, line] of lines.entries()) {
      await attempt(i, lines.toSpliced(i, 1));
      if (i > 0) await attempt(i, lines.with(i, lines[i - 1] ?? '').with(i - 1, line));
    }
    // The digest of its file shows an edit of the last line, the line below an edit of any other.
    for (const [i, line] of lines.entries())
      expect(
        await found('manifest.jsonl', () => `${lines.with(i, line.replace(/\d/, '7x')).join('\n')}\n`),
      ).not.toEqual([]);
  });
});

it('decisions that have lost their snapshots are found by the chain and by running them', async () => {
  const [file = ''] = files.filter((name) => name.startsWith('snapshots/gpu'));
  await rename(join(directory, file), join(root, 'away'));
  const { history, problems } = await readRecording(directory);
  expect(problems).toEqual([`${file}: is missing`]);
  const cycles = await Array.fromAsync(verify(history, await history.kept()));
  expect(cycles.filter((cycle) => cycle.verdict === 'notReplayed')).toHaveLength(1);
  await rename(join(root, 'away'), join(directory, file));
});
