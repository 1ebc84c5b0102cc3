import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bugs } from './bugs.ts';
import { readTable, withTable } from './bugTable.ts';

const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');

it('a table that was written is read as it was', () => {
  const found = [
    { bug: 'one thing', seeds: 12, rule: 'post-twice' },
    { bug: 'another thing that is longer', seeds: 200, rule: null },
  ];
  const text = withTable(readme, found);
  expect(readTable(text)).toEqual(found);
  expect(withTable(text, readTable(text))).toBe(text);
});

it('a README without the place of the table is named', () => {
  expect(() => readTable('# nothing')).toThrow('README.md has no table');
});

it('README.md has no row for a bug that is not planted', () => {
  const names = new Set(bugs.map(({ name }) => name));
  expect(readTable(readme).filter(({ bug }) => !names.has(bug))).toEqual([]);
});
