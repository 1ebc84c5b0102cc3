/** The table of test/simulation/README.md: what a hunt found. `npm run simulate:bugs -- --save` writes it. */

export interface Found {
  readonly bug: string;
  /** Seeds that were run; the last one found it. */
  readonly seeds: number;
  /** The rule that it broke; null: none. */
  readonly rule: string | null;
}

const BEGIN = '<!-- found: written by `npm run simulate:bugs -- --save` -->\n';
const END = '<!-- /found -->';

const partsOf = (text: string): readonly [before: string, table: string, after: string] => {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error(`test/simulation/README.md has no table between ${BEGIN.trim()} and ${END}`);
  const start = begin + BEGIN.length;
  return [text.slice(0, start), text.slice(start, end), text.slice(end)];
};

export function readTable(text: string): Found[] {
  const [, table] = partsOf(text);
  return [...table.matchAll(/^\| (?<bug>[^|]+?) +\| (?<seeds>\d+) +\| (?<rule>[^|]+?) +\|$/gm)].map(({ groups }) => {
    const rule = groups?.rule ?? '';
    return {
      bug: groups?.bug ?? '',
      seeds: Number(groups?.seeds),
      rule: rule === NOT_FOUND ? null : rule.replaceAll('`', ''),
    };
  });
}

const NOT_FOUND = 'not found';

/** The text with these rows as its table. */
export function withTable(text: string, found: readonly Found[]): string {
  const [before, , after] = partsOf(text);
  const cells = [
    ['bug', 'seeds', 'rule'],
    ...found.map(({ bug, seeds, rule }) => [bug, String(seeds), rule === null ? NOT_FOUND : `\`${rule}\``]),
  ];
  const widths = [0, 1, 2].map((i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |\n`;
  const [head = [], ...rows] = cells;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|\n`;
  return `${before}\n${line(head)}${rule}${rows.map(line).join('')}\n${after}`;
}
