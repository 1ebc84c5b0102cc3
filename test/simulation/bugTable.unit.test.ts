import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bugs, evidence } from './bugs.ts';
import { type Found, readTable, withTable } from './bugTable.ts';
import { rules } from './rules.ts';

const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');
const table = readTable(readme);

/** Rules that no row of the table breaks, and why. */
const UNBROKEN: Readonly<Record<string, string>> = {
  basis:
    'before the append of a decision the planner folds the log again: see "decision on the log as it happens to be folded"',
  unreachable:
    'Nova lists no host of such a cell and takes no request for its VMs: pre-flight and snapshot would have to err together',
};

it('a table is read back as it was written', () => {
  const hunted = bugs.filter(({ unseen }) => unseen === undefined);
  const found: Found[] = hunted.map(({ name }, index) =>
    index % 3 === 0
      ? { bug: name, seed: null, tried: 200, after: null, rules: [] }
      : {
          bug: name,
          seed: index,
          tried: index,
          after: `${index}:05`,
          rules: index % 3 === 1 ? ['early'] : ['replay', 'state'],
        },
  );
  const text = withTable(readme, found);
  expect(readTable(text)).toEqual(found);
  expect(withTable(text, readTable(text))).toBe(text);
});

it('a README without the place of the table is named', () => {
  expect(() => readTable('# nothing')).toThrow('README.md has no table');
});

it('README.md shows the table as it is written, with a row for every planted bug', () => {
  expect(withTable(readme, table)).toBe(readme);
  const hunted = bugs.filter(({ unseen }) => unseen === undefined);
  expect(table.map(({ bug }) => bug)).toEqual(hunted.map(({ name }) => name));
});

it('every planted bug was found within 200 seeds, or the reason why not is stated', () => {
  expect(table.filter(({ seed }) => seed === null || seed > 200).map(({ bug }) => bug)).toEqual([]);
});

const unseen = bugs.flatMap((bug) => (bug.unseen === undefined ? [] : [[bug.name, bug.unseen] as const]));
it.each(unseen)('"%s" is shown by what its reason names', (name, reason) => {
  const { shownBy } = reason;
  expect(reason.why).not.toBe('');
  if ('bug' in shownBy) {
    const other = bugs.find((bug) => bug.name === shownBy.bug);
    const mine = bugs.find((bug) => bug.name === name);
    expect(other).toMatchObject({ file: mine?.file, find: mine?.find, replace: mine?.replace });
    expect(other?.also, evidence(reason)).toBeDefined();
    expect(other?.unseen).toBeUndefined();
  } else expect(readFileSync(join(import.meta.dirname, '../..', shownBy.file), 'utf8')).toContain(`'${shownBy.test}'`);
});

it('every rule is broken by a planted bug, or the reason why not is stated', () => {
  const broken = new Set(table.flatMap((row) => row.rules));
  expect(rules.filter((rule) => !broken.has(rule))).toEqual(Object.keys(UNBROKEN));
});

it('README.md explains every rule, and no other', () => {
  const [, section = ''] = readme.split('## What is checked');
  const rows = section.split('\n## ')[0]?.match(/^\| `.*?\|/gm) ?? [];
  const explained = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''));
  expect(explained.sort()).toEqual([...rules]);
});
