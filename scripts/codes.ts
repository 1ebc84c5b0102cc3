/** The page of every code: of errors, reasons, problems, notes and alarms, from the places that define them. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRequestRefusal } from '../libs/contracts/src/plans.ts';
import { drainReasons, releaseReasons, snapshotReasons, waitReasons } from '../libs/facts/src/serviceReasons.ts';
import { formerCodes } from '../libs/facts/src/sharedReasons.ts';
import { taskReasonCodes, taskReasons } from '../libs/facts/src/taskReasons.ts';
import { reasonMeanings } from '../libs/placement/src/reasons.ts';
import { causes } from '../libs/status/src/causes.ts';

const root = join(import.meta.dirname, '..');
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');

type Row = { readonly code: string; readonly meaning: string; readonly place: string };

/** Codes of errors that no class carries. */
const WITHOUT_CLASS: Readonly<Record<string, string>> = {
  KRONOS_CHECKPOINT_WRONG: 'A checkpoint contradicts the log: the service that finds it folds the whole log.',
  KRONOS_NOT_ASKED: 'Nova was not asked in this cycle.',
  KRONOS_UNEXPECTED: 'An error without a code of Kronos.',
};

/** A code in quotes, where it is a code and not the name of a stream or of a variable. */
const CODE = /\bcode(?:: string)?\s*(?:=|:|[!=]==)\s*'(KRONOS_[A-Z_]+)'|: '(KRONOS_UNEXPECTED)'/g;
const CLASS =
  /\/\*\*(?<doc>(?:(?!\*\/)[\s\S])*)\*\/\s*(?:export )?(?:abstract )?class (?<name>\w+)[^{]*\{\s*(?:override )?readonly code(?:: string)? = '(?<code>KRONOS_[A-Z_]+)'/g;

const sources = (): string[] =>
  globSync('{libs,services}/*/src/**/*.ts', { cwd: root })
    .filter((path) => !path.endsWith('.test.ts'))
    .sort();

/** Every code of an error that the sources name. */
export function errorCodes(): Set<string> {
  const found = sources().flatMap((path) => [...textOf(path).matchAll(CODE)].map(([, code, other]) => code ?? other));
  return new Set(found.filter((code) => code !== undefined));
}

const words = (comment: string): string =>
  comment
    .replaceAll(/^\s*\*/gm, '')
    .replaceAll(/\{@link (\w+)\}/g, '`$1`')
    .replaceAll(/\s+/g, ' ')
    .replaceAll('|', '\\|')
    .trim();

function errors(): Row[] {
  const classes = sources().flatMap((path) =>
    [...textOf(path).matchAll(CLASS)].map(({ groups: { doc = '', name = '', code = '' } = {} }): Row => {
      const [, lib = ''] = path.split('/');
      return { code, meaning: words(doc), place: `\`${name}\` of ${lib}` };
    }),
  );
  const others = Object.entries(WITHOUT_CLASS).map(([code, meaning]): Row => ({ code, meaning, place: '' }));
  return [...classes, ...others];
}

/** The rows of a table in a README: code and meaning. */
function tableOf(path: string, section: string, place: string): Row[] {
  const text = textOf(path).split(`## ${section}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...text.matchAll(/^\| `([a-z-]+)`\s*\| (.*?)\s*\|$/gm)].map(([, code = '', meaning = '']) => ({
    code,
    meaning: sentence(meaning),
    place,
  }));
}

const sentence = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1).replace(/\.?$/, '.')}`;

/** One row for each code, with every place that has it. Two meanings of one code stay two rows, which the test refuses. */
function merged(rows: readonly Row[]): Row[] {
  const places = new Map<string, Row & { readonly places: string[] }>();
  for (const row of rows) {
    const key = `${row.code} ${row.meaning}`;
    const first = places.get(key);
    if (first === undefined) places.set(key, { ...row, places: [row.place] });
    else first.places.push(row.place);
  }
  return [...places.values()].map(({ code, meaning, places: of }) => ({ code, meaning, place: of.join('; ') }));
}

const planner = (): Row[] =>
  Object.entries(reasonMeanings).map(([code, meaning]) => ({ code, meaning, place: 'planner' }));
const tasks = (): Row[] =>
  taskReasonCodes.map((code) => {
    const { meaning, party } = taskReasons[code];
    return { code, meaning, place: `task, at fault: ${party}` };
  });
const others = (reasons: Readonly<Record<string, string>>, place: string): Row[] =>
  Object.entries(reasons).map(([code, meaning]) => ({ code, meaning, place }));
const alarms = (): Row[] =>
  Object.entries(causes).map(([code, { remedy, severity, section }]) => ({
    code,
    meaning: `${remedy} See the [runbook](runbook.md#${section}).`,
    place: severity === 'alarm' ? 'alarm' : 'status',
  }));

const table = (rows: readonly Row[], second: string): string =>
  [
    `| code | ${second} | from |`,
    '|---|---|---|',
    ...rows
      .toSorted((a, b) => (a.code < b.code ? -1 : a.code > b.code ? 1 : a.place < b.place ? -1 : 1))
      .map(({ code, meaning, place }) => `| \`${code}\` | ${meaning} | ${place} |`),
  ].join('\n');

/** Every reason, by the places that give it. */
export const reasons = (): Row[] =>
  merged([
    ...planner(),
    ...tasks(),
    ...others(waitReasons, 'task: waits'),
    ...others(drainReasons, 'drain'),
    ...others(snapshotReasons, 'log of the planner'),
    ...others(snapshotReasons, 'answer to a request').filter(({ code }) => isRequestRefusal(code)),
    ...others(releaseReasons, 'log of the executor'),
    ...tableOf('libs/observation/README.md', 'Problems', 'snapshot: not planned'),
    ...tableOf('libs/observation/README.md', 'Notes', 'snapshot: note'),
  ]);

const formerRows = (): string =>
  [
    '| code | now |',
    '|---|---|',
    ...Object.entries(formerCodes).map(([former, now]) => `| \`${former}\` | \`${now}\` |`),
  ].join('\n');

/** The generated pages, by path in the repository. */
export const codeFiles = (): [path: string, text: string][] => [
  [
    'docs/codes.md',
    `# Codes

Every code of an error, a reason and an alarm. A code never changes its meaning. Generated from the sources (\`npm run generate\`).

## Reasons

Why a cycle ended, a policy takes no part, a VM stays, or a task did not move its VM; and what a snapshot says about an aggregate.

${table(reasons(), 'meaning')}

Tasks of earlier versions have codes on the log that were replaced:

${formerRows()}

## Causes of alarms

What \`kronos status\`, the console and notifications report.

${table(alarms(), 'remedy')}

## Errors

On the standard error of commands, and in logs as \`code\`.

${table(errors(), 'meaning')}
`,
  ],
];
