import type { Problem } from './errors.ts';

/** One `option = value` of the file. */
interface IniEntry {
  readonly section: string;
  readonly option: string;
  /** Continuation lines are joined with `\n`. */
  readonly value: string;
  readonly line: number;
}

interface IniSection {
  readonly name: string;
  readonly line: number;
}

export interface Ini {
  readonly sections: readonly IniSection[];
  readonly entries: readonly IniEntry[];
  readonly problems: readonly Problem[];
}

/**
 * Reads the INI dialect of oslo.config (`oslo_config/iniparser.py`): sections, `#` and `;` comments at the start of a
 * line, `key = value` or `key: value` (whichever of `=` and `:` comes first), values that go on over indented lines
 * until the next blank or unindented line, one pair of quotes around a value taken off.
 *
 * Stricter than oslo.config where its leniency hides mistakes: an option given twice is a problem, so is an indented
 * comment (oslo.config would make it part of the value above), and so is an option before the first section.
 * `$name` in a value is not substituted: a `$` is a `$`.
 *
 * No value is ever quoted in a problem: a line that cannot be read may hold a secret.
 */
export function parseIni(file: string, text: string): Ini {
  const sections: IniSection[] = [];
  const entries: IniEntry[] = [];
  const problems: Problem[] = [];
  const seen = new Map<string, number>();
  let section: string | null = null;
  let open: { option: string; line: number; values: string[] } | null = null;

  const problem = (line: number, option: string | null, what: string, remedy: string) =>
    problems.push({ file, line, option, problem: what, remedy });

  const close = () => {
    if (open === null) return;
    const { option, line, values } = open;
    open = null;
    if (section === null) {
      problem(line, shownName(option), 'is before the first section', 'Put it below a section such as [engine].');
      return;
    }
    const key = JSON.stringify([section, option]);
    const first = seen.get(key);
    if (first !== undefined) {
      const where = `lines ${first} and ${line}`;
      problem(
        line,
        `[${shownName(section)}] ${shownName(option)}`,
        `is given twice, in ${where}`,
        'Keep one of the two lines.',
      );
      return;
    }
    seen.set(key, line);
    entries.push({ section, option, value: values.join('\n'), line });
  };

  const lines = text.replace(/^\uFEFF/, '').split('\n');
  for (const [index, raw] of lines.entries()) {
    const number = index + 1;
    const line = raw.trimEnd();
    if (line === '') {
      close();
    } else if (/^[ \t]/.test(line)) {
      const value = line.trimStart();
      if (open === null) {
        problem(number, null, 'is indented, but there is no option to continue', 'Remove the indentation.');
      } else if (/^[#;]/.test(value)) {
        const what = `an indented comment inside the value of ${shownName(open.option)}`;
        problem(number, null, what, 'Start the comment in the first column, outside of the value.');
      } else {
        open.values.push(value);
      }
    } else if (/^[#;]/.test(line)) {
      close();
    } else if (line.startsWith('[')) {
      close();
      const name = line.endsWith(']') ? line.slice(1, -1).trim() : '';
      if (name === '') {
        section = null;
        problem(number, null, 'is not a section', 'Write the section as [name].');
      } else {
        section = name;
        sections.push({ name, line: number });
      }
    } else {
      close();
      const at = line.search(/[=:]/);
      const option = at < 0 ? '' : line.slice(0, at).trim();
      if (option === '') {
        problem(number, null, 'is not a section, an option or a comment', 'Write it as option = value.');
      } else {
        open = { option, line: number, values: [unquote(line.slice(at + 1).trim())] };
      }
    }
  }
  close();
  return { sections, entries, problems };
}

/**
 * A name as problems may show it: one that has the form of an option or a section (`aggregate:` with any name). Anything else may be a secret that
 * slipped to the left of a `=`.
 */
export const shownName = (name: string): string =>
  /^([A-Za-z]+([_-][A-Za-z]+)*|aggregate:.*)$/.test(name) ? name : '(not a name of an option)';

/** Takes one pair of quotes off; the quotes of `"a","b"` are two pairs and stay for the list. */
function unquote(value: string): string {
  const quote = value[0];
  if (value.length < 2 || (quote !== '"' && quote !== "'") || !value.endsWith(quote)) return value;
  const inner = value.slice(1, -1);
  return inner.includes(quote) ? value : inner;
}
