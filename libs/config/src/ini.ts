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
  const reader = new IniReader(file);
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  for (const [index, raw] of lines.entries()) reader.read(raw.trimEnd(), index + 1);
  reader.close();
  return reader;
}

class IniReader implements Ini {
  readonly sections: IniSection[] = [];
  readonly entries: IniEntry[] = [];
  readonly problems: Problem[] = [];
  readonly #file: string;
  /** The line of each option that was read. */
  readonly #seen = new Map<string, number>();
  #section: string | null = null;
  /** The option whose value may go on over the next line. */
  #open: { option: string; line: number; values: string[] } | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads one line, without the white space at its end. */
  read(line: string, number: number): void {
    if (/^[ \t]/.test(line)) {
      this.#continue(line.trimStart(), number);
      return;
    }
    this.close();
    if (line.startsWith('[')) this.#startSection(line, number);
    else if (line !== '' && !/^[#;]/.test(line)) this.#startOption(line, number);
  }

  /** Ends the value of the open option. */
  close(): void {
    if (this.#open === null) return;
    const { option, line, values } = this.#open;
    const section = this.#section;
    this.#open = null;
    if (section === null) {
      this.#problem(line, shownName(option), 'is before the first section', 'Put it below a section such as [engine].');
      return;
    }
    const key = JSON.stringify([section, option]);
    const first = this.#seen.get(key);
    if (first !== undefined) {
      const name = `[${shownName(section)}] ${shownName(option)}`;
      this.#problem(line, name, `is given twice, in lines ${first} and ${line}`, 'Keep one of the two lines.');
      return;
    }
    this.#seen.set(key, line);
    this.entries.push({ section, option, value: values.join('\n'), line });
  }

  #continue(value: string, number: number): void {
    if (this.#open === null) {
      this.#problem(number, null, 'is indented, but there is no option to continue', 'Remove the indentation.');
    } else if (/^[#;]/.test(value)) {
      const what = `an indented comment inside the value of ${shownName(this.#open.option)}`;
      this.#problem(number, null, what, 'Start the comment in the first column, outside of the value.');
    } else {
      this.#open.values.push(value);
    }
  }

  #startSection(line: string, number: number): void {
    const name = line.endsWith(']') ? line.slice(1, -1).trim() : '';
    this.#section = name === '' ? null : name;
    if (name === '') this.#problem(number, null, 'is not a section', 'Write the section as [name].');
    else this.sections.push({ name, line: number });
  }

  #startOption(line: string, number: number): void {
    const at = line.search(/[=:]/);
    const option = at < 0 ? '' : line.slice(0, at).trim();
    if (option === '')
      this.#problem(number, null, 'is not a section, an option or a comment', 'Write it as option = value.');
    else this.#open = { option, line: number, values: [unquote(line.slice(at + 1).trim())] };
  }

  #problem(line: number, option: string | null, problem: string, remedy: string): void {
    this.problems.push({ file: this.#file, line, option, problem, remedy });
  }
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
