/** The sections `[aggregate:NAME]`: options of `[engine]` that differ for one aggregate. */
import { UNASSIGNED } from '@kronos/contracts/names';
import type { Problem } from './errors.ts';
import { readGiven } from './given.ts';
import { type Ini, shownName } from './ini.ts';
import { nearest } from './nearest.ts';
import { type Config, camel, commonToAggregates, sections } from './options.ts';
import { scopeOf } from './scope.ts';
import type { Source } from './source.ts';

const PREFIX = 'aggregate:';

/** `gpu` of the section `aggregate:gpu`; null for another section. */
export const aggregateOfSection = (section: string): string | null =>
  section.startsWith(PREFIX) ? section.slice(PREFIX.length) : null;

/** `aggregate:gpu.cooldown`: where the sources keep an option of an aggregate. */
export const aggregateKey = (aggregate: string, option: string): string => `${PREFIX}${aggregate}.${option}`;

interface Aggregates {
  readonly overrides: ReadonlyMap<string, Partial<Config['engine']>>;
  readonly sources: ReadonlyMap<string, Source>;
  readonly problems: readonly Problem[];
}

/** Reads the sections `[aggregate:NAME]` of the file. An option that has a problem is left as `[engine]` has it. */
export function readAggregates(input: {
  readonly file: string;
  readonly ini: Ini;
  /** `[engine]` as it was read. */
  readonly engine: Config['engine'];
}): Aggregates {
  const { file, ini, engine } = input;
  const problems: Problem[] = [];
  const overrides = new Map<string, Record<string, unknown>>();
  const sources = new Map<string, Source>();
  const scope = scopeOf({ engine });
  for (const { name, line } of ini.sections) {
    const aggregate = aggregateOfSection(name);
    if (aggregate === null) continue;
    if (scope.includes(aggregate)) overrides.set(aggregate, overrides.get(aggregate) ?? {});
    else problems.push({ file, line, option: `[${name}]`, ...outOfScope(aggregate, scope) });
  }
  for (const entry of ini.entries) {
    const aggregate = aggregateOfSection(entry.section);
    if (aggregate === null) continue;
    const source = { file, line: entry.line, option: `[${entry.section}] ${shownName(entry.option)}` };
    const option = sections.get('engine')?.get(entry.option);
    const common = commonToAggregates.get(entry.option);
    if (option === undefined) problems.push({ ...source, ...unknownOption(entry.option) });
    else if (common !== undefined)
      problems.push({
        ...source,
        problem: `cannot differ between aggregates: ${common}`,
        remedy: 'Set it below [engine].',
      });
    else {
      const read = readGiven(option, { raw: entry.value, source });
      if (!read.ok) problems.push(read.wrong);
      else {
        const own = overrides.get(aggregate);
        if (own !== undefined) own[camel(entry.option)] = read.value;
        sources.set(aggregateKey(aggregate, entry.option), source);
      }
    }
  }
  return { overrides, sources, problems };
}

function outOfScope(aggregate: string, scope: readonly string[]): Pick<Problem, 'problem' | 'remedy'> {
  if (aggregate === UNASSIGNED)
    return {
      problem: 'is about the unassigned hosts, which Kronos does not balance',
      remedy: 'Set [engine] include_unassigned_hosts = true, or remove the section.',
    };
  const near = nearest(aggregate, scope);
  return {
    problem: 'names an aggregate that is not in [engine] aggregates',
    remedy: near === null ? 'Add it there, or remove the section.' : `Did you mean [${PREFIX}${near}]?`,
  };
}

function unknownOption(option: string): Pick<Problem, 'problem' | 'remedy'> {
  const problem = 'is not an option that an aggregate can set';
  const elsewhere = [...sections].find(([, known]) => known.has(option))?.[0];
  if (elsewhere !== undefined) return { problem, remedy: `Set it below [${elsewhere}], for all aggregates.` };
  const names = [...(sections.get('engine')?.keys() ?? [])].filter((name) => !commonToAggregates.has(name));
  const near = nearest(option, names);
  return { problem, remedy: near === null ? `The options are ${names.join(', ')}.` : `Did you mean ${near}?` };
}
