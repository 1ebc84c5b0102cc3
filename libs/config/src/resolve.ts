import type { Problem } from './errors.ts';
import { type Given, readGiven } from './given.ts';
import { type Ini, parseIni, shownName } from './ini.ts';
import { nearest } from './nearest.ts';
import { type Config, camel, options, sections } from './options.ts';
import { aggregateOfSection, readAggregates } from './overrides.ts';
import { type Renamed, withModernNames } from './renamed.ts';
import { checkRules } from './rules.ts';
import { Secret } from './secret.ts';
import { readSecretFile } from './secretFile.ts';
import { readSinks, sinkOfSection } from './sinks.ts';
import { ENVIRONMENT, environmentName, type Role, type Source, sourceText } from './source.ts';

export interface ConfigInput {
  /** Name of the file, for problems. */
  readonly file: string;
  /** Its text; empty when there is no file. */
  readonly text: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly role: Role;
  /** Reads the file of a secret; throws when it cannot. */
  readonly readFile: (path: string) => string;
  /** Former names that are accepted. */
  readonly renamed?: readonly Renamed[] | undefined;
}

export interface Resolved {
  /** Complete whatever the problems are (defaults stand in), so that all of them can be found; use it only if there are none. */
  readonly config: Config;
  readonly sources: ReadonlyMap<string, Source>;
  readonly problems: readonly Problem[];
  /** Former names of options: this version accepts them, and a later one will not. */
  readonly warnings: readonly Problem[];
}

const keyOf = (section: string, option: string): string => `${section}.${option}`;

/** From the text of the file and the environment to the configuration: checks everything and stops at nothing. */
export function resolveConfig(input: ConfigInput): Resolved {
  const { ini, env, warnings, problems } = withModernNames(
    { ...input, ini: parseIni(input.file, input.text) },
    input.renamed,
  );
  const found: Found = { given: new Map(), problems };
  readIni(ini, input.file, found);
  readEnvironment(env, found);
  const { given } = found;
  const { values, broken } = parseValues(found);
  fillServiceName(values, input.role);
  problems.push(...readSecretFiles(values, given, input));

  const common = assemble(values);
  const own = readAggregates({ file: input.file, ini, engine: common.engine });
  problems.push(...own.problems);
  const notify = readSinks({ ...input, ini });
  problems.push(...notify.problems);
  const config: Config = Object.freeze({ ...common, overrides: own.overrides, sinks: notify.sinks });
  const sources = new Map([
    ...[...given].map(([key, { source }]) => [key, source] as const),
    ...own.sources,
    ...notify.sources,
  ]);
  const reads = (section: string, option: string): boolean => readsOption(input.role, section, option);
  problems.push(...checkRules({ file: input.file, config, role: input.role, sources, broken, reads }));
  return { config, sources, warnings, problems: inOrder(problems, input.file) };
}

/** The values that the file and the environment give, with the problems so far. */
type Found = { readonly given: Map<string, Given>; readonly problems: Problem[] };

function readIni(ini: Ini, file: string, { given, problems }: Found): void {
  for (const { name, line } of ini.sections) {
    if (sections.has(name) || aggregateOfSection(name) !== null || sinkOfSection(name) !== null) continue;
    problems.push({
      file,
      line,
      option: `[${shownName(name)}]`,
      problem: 'is not a section of Kronos',
      remedy: sectionRemedy(name),
    });
  }
  for (const { section: name, option, line, value } of ini.entries) {
    const section = sections.get(name);
    if (section === undefined) continue;
    const source: Source = { file, line, option: `[${name}] ${shownName(option)}` };
    if (section.has(option)) given.set(keyOf(name, option), { raw: value, source });
    else problems.push({ ...source, problem: 'is not an option of Kronos', remedy: optionRemedy(name, option) });
  }
}

/** Variables such as `OS_NATS__PASSWORD`. */
function readEnvironment(env: ConfigInput['env'], { given, problems }: Found): void {
  for (const [name, raw] of Object.entries(env)) {
    const [, section, option] = /^OS_(.+?)__(.+)$/i.exec(name)?.map((part) => part.toLowerCase()) ?? [];
    if (raw === undefined || section === undefined || option === undefined) continue;
    const source: Source = { file: ENVIRONMENT, line: null, option: name };
    const wrong = wrongVariable(name, section, option);
    if (wrong !== null) problems.push({ ...source, ...wrong });
    else if (sections.has(section)) given.set(keyOf(section, option), { raw, source });
  }
}

/** Why a variable cannot set its option; null where it can, and for a section that is not of Kronos. */
function wrongVariable(name: string, section: string, option: string): Pick<Problem, 'problem' | 'remedy'> | null {
  if (aggregateOfSection(section) !== null)
    return {
      problem: 'names an aggregate, whose options are read from kronos.conf only',
      remedy: 'Write it into kronos.conf, below [aggregate:NAME].',
    };
  if (sinkOfSection(section) !== null)
    return {
      problem: 'names a sink, whose options are read from kronos.conf only',
      remedy: 'Write it into kronos.conf, below [notify:NAME]; options such as url_file keep secrets out of it.',
    };
  const known = sections.get(section);
  if (known === undefined) return null;
  if (!known.has(option)) {
    const near = nearest(option, known.keys());
    const remedy =
      near === null
        ? `See kronos config sample for the options of [${section}].`
        : `Did you mean ${environmentName(section, near)}?`;
    return { problem: `is not an option of [${section}]`, remedy };
  }
  const right = environmentName(section, option);
  return name === right ? null : { problem: 'is not written in capitals', remedy: `Write ${right}.` };
}

/** The value of each option, and those whose given value is wrong. */
function parseValues({ given, problems }: Found) {
  const values = new Map<string, unknown>();
  const broken = new Set<string>();
  for (const [sectionName, section] of sections) {
    for (const [name, option] of section) {
      const key = keyOf(sectionName, name);
      values.set(key, option.default);
      const found = given.get(key);
      if (found === undefined) continue;
      const read = readGiven(option, found);
      if (read.ok) values.set(key, read.value);
      else {
        broken.add(key);
        problems.push(read.wrong);
      }
    }
  }
  return { values, broken };
}

const readsOption = (role: Role, section: string, option: string): boolean =>
  role === 'check' || (sections.get(section)?.get(option)?.readBy.includes(role) ?? false);

function sectionRemedy(name: string): string {
  const near = nearest(name, sections.keys());
  return near === null
    ? `The sections are ${[...sections.keys()].join(', ')}, aggregate:NAME and notify:NAME.`
    : `Did you mean [${near}]?`;
}

function optionRemedy(section: string, option: string): string {
  const near = nearest(option, sections.get(section)?.keys() ?? []);
  const elsewhere = [...sections].filter(([, known]) => known.has(option)).map(([name]) => `[${name}]`);
  if (elsewhere.length > 0) return `It belongs in ${elsewhere.join(' or ')}.`;
  return near === null ? 'See kronos config sample for all options.' : `Did you mean ${near}?`;
}

/** `{service}` in options that say so. One file serves all services although each has a NATS user of its own. */
const SERVICE_NAMED = [
  'nats.user',
  'nats.password_file',
  'nats.nkey_seed_file',
  'nats.credentials_file',
  'nats.inbox_prefix',
  'nats.tls_cert',
  'nats.tls_key',
  'telemetry.service_name',
] as const;

function fillServiceName(values: Map<string, unknown>, role: Role): void {
  const service = role === 'check' ? 'cli' : role;
  for (const key of SERVICE_NAMED) {
    const value = values.get(key);
    if (typeof value === 'string') values.set(key, value.replaceAll('{service}', service));
  }
}

/** Puts the content of `password_file` into `password`, and so for each secret option. Opens only the files that the role needs. */
function readSecretFiles(
  values: Map<string, unknown>,
  given: ReadonlyMap<string, Given>,
  input: ConfigInput,
): Problem[] {
  const problems: Problem[] = [];
  for (const [section, known] of sections) {
    for (const [name, option] of known) {
      if (option.fills === null) continue;
      const path = values.get(keyOf(section, name));
      const source = given.get(keyOf(section, name))?.source;
      if (typeof path !== 'string' || source === undefined) continue;
      const target = keyOf(section, option.fills);
      const other = given.get(target)?.source;
      if (other !== undefined && values.get(target) !== null) {
        const problem = `and ${other.option} (${sourceText(other)}) are both set`;
        problems.push({ ...source, problem, remedy: 'Keep one of the two.' });
        continue;
      }
      if (!readsOption(input.role, section, name)) continue;
      const file = readSecretFile(path, option.fills, input.readFile);
      if (file.ok) values.set(target, new Secret(file.content));
      else problems.push({ ...source, ...file.wrong });
    }
  }
  return problems;
}

/** The values under their camelCase names. The table gives each value its type, so the shape is the type's. */
function assemble(values: ReadonlyMap<string, unknown>): Config {
  const config: Record<string, Record<string, unknown>> = {};
  for (const [section, known] of sections) {
    const group: Record<string, unknown> = {};
    for (const name of known.keys()) group[camel(name)] = values.get(keyOf(section, name));
    config[section] = Object.freeze(group);
  }
  return Object.freeze({ ...config, overrides: new Map(), sinks: new Map() }) as unknown as Config;
}

/** By file, then by line: as one goes through the file to mend it. */
function inOrder(problems: readonly Problem[], file: string): Problem[] {
  const rank = (p: Problem) => (p.file === file ? (p.line ?? Number.MAX_SAFE_INTEGER - 1) : Number.MAX_SAFE_INTEGER);
  return problems.toSorted((a, b) => rank(a) - rank(b));
}

/** The configuration of an installation that sets nothing: for tests and as a base. Not valid by itself: it has no scope. */
export const defaultConfig: Config = assemble(
  new Map(
    Object.entries(options).flatMap(([section, known]) =>
      Object.entries(known).map(([name, option]): [string, unknown] => [keyOf(section, name), option.default]),
    ),
  ),
);
