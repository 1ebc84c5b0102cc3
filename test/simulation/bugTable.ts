/** The table of test/simulation/README.md: what a hunt found. `npm run simulate:bugs -- --save` writes it. */
import { bugs, evidence } from './bugs.ts';

export interface Found {
  readonly bug: string;
  /** The seed that found it; null: none did. */
  readonly seed: number | null;
  /** Number of seeds that were run. */
  readonly tried: number;
  /** Virtual time of the first breach, `H:MM` since the run began; null: none, or the run ended with an error. */
  readonly after: string | null;
  /** The rules that the run broke, the first breach first. A run that ended with an error breaks `error`. */
  readonly rules: readonly string[];
}

const BEGIN = '<!-- found: written by `npm run simulate:bugs -- --save` -->\n';
const END = '<!-- /found -->';
const NOT_FOUND = 'not found';

const partsOf = (text: string): readonly [before: string, table: string, after: string] => {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error(`test/simulation/README.md has no table between ${BEGIN.trim()} and ${END}`);
  const start = begin + BEGIN.length;
  return [text.slice(0, start), text.slice(start, end), text.slice(end)];
};

/** The rows of bugs that were hunted. */
export function readTable(text: string): Found[] {
  const [, table] = partsOf(text);
  return [
    ...table.matchAll(
      /^\| (?<bug>[^|]+?) +\| (?<seed>\d+|-) +\| (?<tried>\d+) +\| (?<after>\d+:\d\d|-) +\| (?<rules>[^|]+?) +\|$/gm,
    ),
  ].map(({ groups }) => ({
    bug: groups?.bug ?? '',
    seed: groups?.seed === '-' ? null : Number(groups?.seed),
    tried: Number(groups?.tried),
    after: groups?.after === '-' ? null : (groups?.after ?? null),
    rules: [...(groups?.rules ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''),
  }));
}

/** The text with a row for each planted bug as its table. */
export function withTable(text: string, found: readonly Found[]): string {
  const [before, , after] = partsOf(text);
  const known = new Map(found.map((each) => [each.bug, each]));
  const cells = [['bug', 'seed', 'seeds tried', 'after', 'rules']];
  for (const { name, unseen } of bugs) {
    if (unseen !== undefined)
      cells.push([name, '-', '-', '-', `not hunted: ${unseen.why}; ${evidence(unseen)} shows it`]);
    else {
      const { seed, tried, after, rules } = known.get(name) ?? { seed: null, tried: 0, after: null, rules: [] };
      const broken = rules.map((rule) => `\`${rule}\``).join(', ');
      cells.push([name, String(seed ?? '-'), String(tried), after ?? '-', seed === null ? NOT_FOUND : broken]);
    }
  }
  // The reasons are long: they do not make all rows wide.
  const widths = [0, 1, 2, 3].map((i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |\n`;
  const [head = [], ...rows] = cells;
  const rule = `|${[...widths, 3].map((width) => '-'.repeat(width + 2)).join('|')}|\n`;
  return `${before}\n${line(head)}${rule}${rows.map(line).join('')}\n${after}`;
}
