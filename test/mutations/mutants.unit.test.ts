import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { common } from '../common.ts';
import { AREAS, LEAST } from './areas.ts';
import { mutantsOf, sample } from './mutants.ts';
import { readScores } from './scores.ts';

const changes = (source: string) => mutantsOf('a.ts', source).map(({ was, becomes }) => `${was} -> ${becomes}`);

test('operators, conditions, constants, statements and overriding fields change', () => {
  expect(changes('const a = b < c;')).toEqual(['< -> <=']);
  expect(changes('a ||= b;')).toEqual(['a ||= b; -> ;', '||= -> =']);
  expect(changes('const a = b ?? c;')).toEqual(['b ?? c -> ((b) && (c))']);
  expect(changes('const a = b ? c : d;')).toEqual(['b -> !(b)', 'b -> false']);
  expect(changes('const a = Math.max(b, 4);')).toEqual(['max -> min', '4 -> 5']);
  expect(changes('const a = { ...b, c: d };')).toEqual(['c: d -> ']);
  expect(changes('const a = [true];')).toEqual(['true -> false']);
});

test('types, imports, texts and the making of errors stay as they are', () => {
  expect(changes("import a from 'b';\ntype C = 1 | true;\nconst d: 2 = e as 2;")).toEqual([]);
  expect(changes("throw new Error('a' + 1);\nconst b = 'c' + d;\nconst e = `f` + g;")).toEqual([]);
});

test('a mutant names its place', () => {
  expect(mutantsOf('a.ts', 'let a;\nconst b = a - c;')).toEqual([
    { file: 'a.ts', line: 2, start: 19, end: 20, was: '-', becomes: '+' },
  ]);
});

test('a sample is the same for the same seed, and code elsewhere does not change it', () => {
  const source = Array.from({ length: 20 }, (_, i) => `const a${i} = b < ${i};`).join('\n');
  const mutants = mutantsOf('a.ts', source);
  const texts = (all: typeof mutants) => all.map(({ was, becomes }) => `${was} ${becomes}`);
  expect(sample(mutants, 10, 1)).toEqual(sample(mutants, 10, 1));
  expect(sample(mutants, 10, 2)).not.toEqual(sample(mutants, 10, 1));
  const moved = mutantsOf('a.ts', `const z = y;\n${source}`);
  expect(texts(sample(moved, 10, 1))).toEqual(texts(sample(mutants, 10, 1)));
});

test.each(Object.entries(readScores()))(
  'the recorded score of %s is of an area that exists, and high enough',
  (area, score) => {
    expect(Object.keys(AREAS)).toContain(area);
    expect(score.percent).toBe(Math.floor((100 * score.noticed) / score.sampled));
    expect(score.survivors).toHaveLength(score.sampled - score.noticed);
    expect(score.percent).toBeGreaterThanOrEqual(LEAST);
  },
);

test.each(Object.entries(AREAS))('the area %s names files and tests that exist', (_, { files, tests }) => {
  expect(files.filter((file) => !existsSync(join(common.root, file)))).toEqual([]);
  const found = globSync('{libs,services,test}/**/*.{unit,int}.test.ts', { cwd: common.root });
  expect(tests.flat().filter((filter) => !found.some((path) => path.includes(filter)))).toEqual([]);
});
