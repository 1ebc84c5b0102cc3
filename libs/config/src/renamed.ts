/** Options that have another name now: the former one is accepted with a warning. docs/compatibility.md states for how long. Pure. */
import type { Problem } from './errors.ts';
import type { Ini } from './ini.ts';
import type { sinkOptions } from './options/sink.ts';
import type { OptionPath } from './options.ts';
import { ENVIRONMENT, environmentName } from './source.ts';

export interface Renamed {
  /** `section.option`; `notify.option` for those of the sections `[notify:NAME]`. The section itself is still there. */
  readonly from: string;
  readonly to: OptionPath | `notify.${keyof typeof sinkOptions & string}`;
  /** The version of Kronos that renamed it: `1.4.0`. */
  readonly since: `${number}.${number}.${number}`;
}

/** Every former name that is still accepted. The changelog of the version that renamed an option names both. */
export const renamedOptions: readonly Renamed[] = [];

/** The first version that refuses the former name: the one that renamed the option accepts it, with all of its patches. */
export function refusedFrom({ since }: Pick<Renamed, 'since'>): string {
  const [major, minor] = since.split('.').map(Number);
  return `${major}.${(minor ?? 0) + 1}.0`;
}

/** The section of the table for a section of the file: `[aggregate:NAME]` has options of `[engine]`. */
const tableSection = (section: string): string =>
  section.startsWith('aggregate:') ? 'engine' : section.startsWith('notify:') ? 'notify' : section;

const split = (path: string): readonly [section: string, option: string] => {
  const dot = path.indexOf('.');
  return [path.slice(0, dot), path.slice(dot + 1)];
};

interface Modern {
  readonly ini: Ini;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** One for each former name. */
  readonly warnings: readonly Problem[];
  /** Those of the file's text too. */
  readonly problems: Problem[];
}

/** The file and the environment with today's names. */
export function withModernNames(
  { file, ini, env }: { readonly file: string; readonly ini: Ini; readonly env: Modern['env'] },
  table: readonly Renamed[] = renamedOptions,
): Modern {
  const warnings: Problem[] = [];
  const problems = [...ini.problems];
  const accept = (place: Pick<Problem, 'file' | 'line' | 'option'>, name: string, renamed: Renamed, other: boolean) => {
    if (other) {
      problems.push({ ...place, problem: `is the former name of ${name}, which is set too`, remedy: `Keep ${name}.` });
      return false;
    }
    warnings.push({
      ...place,
      problem: `is the former name of ${name}, since Kronos ${renamed.since}`,
      remedy: `Write ${name}: Kronos ${refusedFrom(renamed)} refuses the former name.`,
    });
    return true;
  };

  const keyOf = (section: string, option: string): string => JSON.stringify([section, option]);
  const given = new Set(ini.entries.map(({ section, option }) => keyOf(section, option)));
  const entries = ini.entries.flatMap((entry) => {
    const own = tableSection(entry.section);
    const renamed = table.find(({ from }) => from === `${own}.${entry.option}`);
    if (renamed === undefined) return [entry];
    const [to, option] = split(renamed.to);
    // An aggregate sets options of [engine] only: what has left it is unknown there.
    if (own !== entry.section && to !== own) return [entry];
    const section = own === entry.section ? to : entry.section;
    const place = { file, line: entry.line, option: `[${entry.section}] ${entry.option}` };
    const key = keyOf(section, option);
    const accepted = accept(place, `[${section}] ${option}`, renamed, given.has(key));
    given.add(key);
    return accepted ? [{ ...entry, section, option }] : [];
  });

  const modern = { ...env };
  // The environment sets no options of a sink.
  for (const renamed of table.filter(({ from }) => !from.startsWith('notify.'))) {
    const former = environmentName(...split(renamed.from));
    const raw = env[former];
    if (raw === undefined) continue;
    const name = environmentName(...split(renamed.to));
    if (accept({ file: ENVIRONMENT, line: null, option: former }, name, renamed, modern[name] !== undefined))
      modern[name] = raw;
    delete modern[former];
  }
  return { ini: { ...ini, entries }, env: modern, warnings, problems };
}
