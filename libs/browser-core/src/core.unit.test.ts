import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXAMPLES, typedTime } from '@kronos/contracts/typedTime';
import { decideInput } from '@kronos/cycle';
import { decide } from '@kronos/placement';
import { aggregateState, createFolder, momentAt, momentText, PlanRuns, timeTogether } from '@kronos/projections';
import { testLog } from '@kronos/projections/testing';
import { operation } from '@kronos/replay/testing';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type * as Core from './core.ts';
import { bundle, CannotBundle, coreScript, timesScript } from './index.ts';
import type * as Times from './times.ts';

let root: string;
let core: typeof Core;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-core-'));
  await writeFile(join(root, 'core.mjs'), coreScript());
  core = (await import(/* @vite-ignore */ join(root, 'core.mjs'))) as typeof Core;
});
afterAll(() => rm(root, { recursive: true }));

const madeOf = async (files: Readonly<Record<string, string>>): Promise<string> => {
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
  return bundle(join(root, 'entry.ts'), root);
};

describe('the decision core as a script for a browser', () => {
  it('imports nothing', () => {
    expect(coreScript()).not.toMatch(/^\s*import\b/m);
    expect(coreScript()).not.toContain('node:');
    expect(coreScript()).not.toMatch(/\bimport\(/);
  });

  it('decides byte for byte as the planner does, over a day of operation', () => {
    const folder = createFolder();
    const other = core.createFolder();
    let decided = 0;
    for (const { events, snapshots } of operation({
      seed: 5,
      cycles: 40,
      aggregates: ['gpu'],
      hosts: 6,
      vmsPerHost: 6,
      searchWorkLimit: 50_000,
      failures: 0.1,
      commands: 0.05,
    })) {
      for (const snapshot of snapshots) {
        const here = decide(decideInput(aggregateState(folder.snapshot(), 'gpu'), snapshot));
        const there = core.decide(core.decideInput(core.aggregateState(other.snapshot(), 'gpu'), snapshot));
        expect(core.canonicalJson(there)).toBe(core.canonicalJson(here));
        if (here.plan !== null) decided += 1;
      }
      for (const stored of events) {
        folder.apply(stored);
        other.apply(stored);
      }
    }
    expect(decided).toBeGreaterThan(0);
  });

  it('is the same text for the same code', () => expect(coreScript()).toBe(coreScript()));
});

test('typed times are read in a browser as on the command line', async () => {
  const there = await timesThere();
  const zone = { nowMs: Date.parse('2026-03-10T10:20:30Z'), utc: true };
  for (const text of [...there.OFTEN.map(([, often]) => often), '3am', 'yesterday 14:00', '2026-03-01 12:30', 'soon'])
    expect(there.typedTime(text, zone), text).toBe(typedTime(text, zone));
  expect(there.EXAMPLES).toBe(EXAMPLES);
  expect(timesScript()).not.toMatch(/\bimport\b/);
});

test('moves take as long together in a browser as for the ledger', async () => {
  const there = await timesThere();
  const took = { expectedMs: 60_000, interval: { lowMs: 30_000, highMs: 90_000 }, measured: true };
  for (const moves of [[], ['a'], ['a', 'b'], ['b', 'a', 'a']].map((hosts) => hosts.map((from) => ({ from }))))
    expect(there.timeTogether(moves, () => took)).toEqual(timeTogether(moves, () => took));
});

test('a moment of the past has the same sentence in a browser as on the command line', async () => {
  const there = await timesThere();
  const log = testLog();
  const plan = log.pass(60).released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
  log.pass(5).started({ task: `${plan}-s1` });
  const runs = new PlanRuns();
  for (const stored of log.events) runs.add(stored);
  const cycle = { snapshotId: 'another', timeMs: log.nowMs + 1000 };
  const policies = [
    { policy: 'memory', imbalance: 0.9, threshold: 0.1, detected: false },
    { policy: 'cpu', imbalance: 0.375, threshold: 0.25 },
  ];
  expect(there.worstOf(policies)).toEqual({ policy: 'cpu', ratio: 1.5 });
  const facts = { worst: there.worstOf(policies), later: null, reason: null };
  const wording = { clock: (ms: number) => `${ms} ms`, ratio: (ratio: number) => `${ratio}x` };
  const told = there.momentText(there.momentAt(runs.of('gpu'), cycle), facts, wording);
  expect(told).toBe(momentText(momentAt(runs.of('gpu'), cycle), facts, wording));
  expect(told).toContain('ran: 0 of 1 move was done, 1 under way.');
});

async function timesThere(): Promise<typeof Times> {
  await writeFile(join(root, 'times.mjs'), timesScript());
  return (await import(/* @vite-ignore */ join(root, 'times.mjs'))) as typeof Times;
}

describe('a script made of modules', () => {
  it('has what the entry passes on, under its name, and what that needs', async () => {
    const text = await madeOf({
      'entry.ts': "export { twice as double } from './a.ts';\n",
      'a.ts':
        "import { type Never, plus } from './b.ts';\n\n/** Twice. */\nexport const twice = (n: number): number => plus(n, n);\nexport const unused = missing;\n",
      'b.ts':
        'export type Never = never;\n\nexport function plus(a: number, b: number): number {\n  return a + b;\n}\n',
    });
    await writeFile(join(root, 'made.mjs'), text);
    const made = (await import(/* @vite-ignore */ join(root, 'made.mjs'))) as { double: (n: number) => number };
    expect(made.double(21)).toBe(42);
    expect(text).not.toContain('unused');
  });

  it('refuses what no browser has, when something needed imports it', async () => {
    const files = {
      'entry.ts': "export { hash } from './a.ts';\n",
      'a.ts': "import { createHash } from 'node:crypto';\nexport const hash = () => createHash('sha256');\n",
    };
    await expect(madeOf(files)).rejects.toThrow(CannotBundle);
    await expect(madeOf(files)).rejects.toThrow('node:crypto');
  });

  it('refuses modules that need each other', async () => {
    const files = {
      'entry.ts': "export { a } from './a.ts';\n",
      'a.ts': "import { b } from './b.ts';\nexport const a = () => b();\n",
      'b.ts': "import { a } from './a.ts';\nexport const b = () => a();\n",
    };
    await expect(madeOf(files)).rejects.toThrow('it needs itself');
  });
});
