import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bugs, evidence } from './bugs.ts';
import { type Found, readTable, withTable } from './bugTable.ts';
import { cellRules } from './cellsChecker.ts';
import { rules } from './rules.ts';

const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');
const table = readTable(readme);

/** Rules that no row of the table breaks, and why. */
const UNBROKEN: Readonly<Record<string, string>> = {
  basis:
    'before the append of a decision the planner folds the log again: see "log read as far as it happens to be folded"',
  unreachable:
    'Nova lists no host of such a cell and takes no request for its VMs: pre-flight and snapshot would have to err together',
};

/** Likewise of moves between cells. */
const UNBROKEN_CELLS: Readonly<Record<string, string>> = {
  unasked: 'the start of every move is written by the same code: see "conflict taken for success"',
  unapproved: 'an approval is folded by the code of every plan: see "approval of an expired plan"',
  'started-twice': 'the start of every move is written by the same code: see "start without expectation"',
  twice:
    'a server with a move is left out of plans by the code of every plan: see "moves in flight forgotten by the filter"',
  both: 'Kronos and a person have to ask for one each at the same time, and the log keeps the first',
  final: 'the result of every move is written by the same code: see "result without expectation"',
  liveness: 'the work queue is that of every move: see "task acked before its result"',
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

/** The rules that bugs of one kind of run break, by the table. */
function broken(cells: boolean): ReadonlySet<string> {
  const names = new Set(bugs.filter((bug) => (bug.cells === true) === cells).map(({ name }) => name));
  return new Set(table.flatMap(({ bug, rules: its }) => (names.has(bug) ? its : [])));
}

it('every rule is broken by a planted bug, or the reason why not is stated', () => {
  const found = broken(false);
  expect(rules.filter((rule) => !found.has(rule))).toEqual(Object.keys(UNBROKEN));
});

it('every rule of moves between cells is broken by a planted bug, or the reason why not is stated', () => {
  const found = broken(true);
  expect(cellRules.filter((rule) => !found.has(rule))).toEqual(Object.keys(UNBROKEN_CELLS));
});

it('README.md explains every rule, and no other', () => {
  const [, section = ''] = readme.split('## What is checked');
  const rows = section.split('\n## ')[0]?.match(/^\| `.*?\|/gm) ?? [];
  const explained = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''));
  expect(explained.sort()).toEqual([...rules]);
});
