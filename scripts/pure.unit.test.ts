import { describe, expect, it } from 'vitest';
import { impurities } from './pure.ts';

const PATH = 'libs/plain/src/judge.ts';

/** The findings about the first of these files. */
function said(files: Readonly<Record<string, string>>, exceptions: Readonly<Record<string, string>> = {}): string[] {
  const all: Readonly<Record<string, string>> = {
    'libs/other/package.json': '{"exports": {".": "./src/index.ts", "./testing": "./testing/index.ts"}}',
    ...files,
  };
  return impurities(Object.keys(files).slice(0, 1), (path) => all[path] ?? null, exceptions);
}

/** One file that claims to be pure. */
const judged = (text: string): string[] => said({ [PATH]: `/** Judges. Pure. */\n${text}` });

describe('a file that says that it is pure', () => {
  it.each([
    ['a clock', 'export const now = () => Date.now();', 'Date.now'],
    ['the time', 'export const now = () => new Date();', 'new Date()'],
    ['chance', 'export const one = () => Math.random() < 0.5;', 'Math.random'],
    ['the process', 'export const home = process.env.HOME;', 'process'],
    ['timers', 'export const later = (f: () => void) => setTimeout(f, 1);', 'setTimeout'],
    ['the network', 'export const load = async (url: string) => await fetch(url);', 'fetch'],
    ['output', 'export function tell(text: string) { console.log(text); }', 'console'],
    ['files', "import { readFileSync } from 'node:fs';\nexport const text = readFileSync('x');", 'node:fs'],
    ['a package', "import got from 'got';\nexport const load = () => got('x');", 'got'],
    ['a module that it loads', "export const load = () => import('./x.ts');", 'import()'],
    ['all of it', 'export const one = globalThis;', 'globalThis'],
    ['a method', 'export class A { now() { return Date.now(); } }', 'Date.now'],
    ['a default', 'export const at = (ms = Date.now()) => ms;', 'Date.now'],
    ['a cast', 'export const at = (Date.now() as number) satisfies number;', 'Date.now'],
  ])('has none of %s', (_, text, what) => {
    expect(judged(text)).toEqual([
      expect.stringContaining(`${PATH} says that it is pure and reaches ${what} in ${PATH}`),
    ]);
  });

  it.each([
    ['times that it is given', 'export const at = (text: string) => Date.parse(text) + new Date(text).getTime();'],
    [
      'types of impure modules',
      "import type { Stats } from 'node:fs';\nexport const size = ({ size }: Stats) => size;",
    ],
    ['names of its own', 'export const all = (process: { env: string }) => process.env;'],
    ['properties of such names', 'export const all = (one: { fetch: string; crypto: number }) => one.fetch;'],
    ['parsing', "import { z } from 'zod';\nexport const schema = z.string();"],
  ])('may have %s', (_, text) => {
    expect(judged(text)).toEqual([]);
  });

  it('reaches nothing impure through other files, and through the index of a package', () => {
    const own = "/** Pure. */\nimport { age } from './age.ts';\nexport const old = age;";
    const clock = 'export const now = () => Date.now();\nexport const later = (ms: number) => ms + 1;';
    const through = (age: string) =>
      said({
        [PATH]: own,
        'libs/plain/src/age.ts': age,
        'libs/other/src/index.ts': "export * from './clock.ts';\nexport { now as time } from './clock.ts';",
        'libs/other/src/clock.ts': clock,
      });
    expect(through("import { later } from '@kronos/other';\nexport const age = later;")).toEqual([]);
    expect(through("import { now } from '@kronos/other';\nexport const age = now;")).toEqual([
      `${PATH} says that it is pure and reaches Date.now in libs/other/src/clock.ts:1 through age, now`,
    ]);
    expect(through("import { time } from '@kronos/other';\nexport const age = time;")).toHaveLength(1);
    expect(through("import * as all from '@kronos/other';\nexport const age = all;")).toHaveLength(1);
    expect(through("import { gone } from './gone.ts';\nexport const age = gone;")).toEqual([
      expect.stringContaining('./gone.ts, which cannot be read'),
    ]);
  });
});

describe('a declaration that says that it is pure', () => {
  const file = (claim: string, rest: string) => said({ [PATH]: `import { z } from 'zod';\n\n${claim}\n${rest}` });
  const effect = 'export const show = () => console.log(z);';

  it('speaks for itself, and for what it calls', () => {
    expect(file('/** Judges. Pure. */', `export const judge = (a: number) => a;\n${effect}`)).toEqual([]);
    expect(file('/** Judges. Pure. */', `export const judge = () => show();\n${effect}`)).toEqual([
      expect.stringContaining(`${PATH}: judge says that it is pure and reaches console`),
    ]);
  });

  it('is the whole file where nothing follows at once', () => {
    expect(file('/** All of it. Pure. */\n', `export const judge = (a: number) => a;\n${effect}`)).toHaveLength(1);
  });
});

it('says nothing of files without a claim', () => {
  expect(said({ [PATH]: '/** Impure. */\nexport const now = () => Date.now();' })).toEqual([]);
});

it('takes every file of a package that is pure as a whole for a claim', () => {
  expect(said({ 'libs/rules/src/x.ts': 'export const now = () => Date.now();' })).toHaveLength(1);
});

it('allows exceptions by name, and refuses those that nothing needs', () => {
  const files = { [PATH]: '/** Pure. */\nexport const now = () => Date.now();' };
  expect(said(files, { [`${PATH}: Date.now`]: 'a test' })).toEqual([]);
  expect(said(files, { [`${PATH}: Date.now`]: 'a test', 'libs/x/src/y.ts: fetch': 'old' })).toEqual([
    'no exception is needed any more: libs/x/src/y.ts: fetch',
  ]);
});
