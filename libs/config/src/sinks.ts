/** The sections `[notify:NAME]`: where notifications are sent. */
import { logEventTypes } from '@kronos/contracts';
import { matchesPattern } from '@kronos/rules';
import { causes } from '@kronos/status/causes';
import type { Problem } from './errors.ts';
import { type Given, parseGiven, readGiven } from './given.ts';
import { type Ini, shownName } from './ini.ts';
import { nearest } from './nearest.ts';
import type { Option } from './option.ts';
import { sinkOptions } from './options/sink.ts';
import { camel, type SinkOptions } from './options.ts';
import { readSecretFile } from './secretFile.ts';
import type { Role, Source } from './source.ts';

const PREFIX = 'notify:';
/** A name is part of a durable's name. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** Each sink has two durables, and the number of durables of a stream is limited. */
const MOST_SINKS = 64;

/** `ops-chat` of the section `notify:ops-chat`; null for another section. */
export const sinkOfSection = (section: string): string | null =>
  section.startsWith(PREFIX) ? section.slice(PREFIX.length) : null;

/** `notify:chat.url`: where the sources keep an option of a sink. */
export const sinkKey = (sink: string, option: string): string => `${PREFIX}${sink}.${option}`;

const table: ReadonlyMap<string, Option<unknown>> = new Map(Object.entries(sinkOptions));

interface Sinks {
  readonly sinks: ReadonlyMap<string, SinkOptions>;
  readonly sources: ReadonlyMap<string, Source>;
  readonly problems: readonly Problem[];
}

/** Reads the sections `[notify:NAME]` of the file. Secrets in files are read by who sends only. */
export function readSinks(input: {
  readonly file: string;
  readonly ini: Ini;
  readonly role: Role;
  readonly readFile: (path: string) => string;
}): Sinks {
  const { file } = input;
  const problems: Problem[] = [];
  const { given, lines } = sectionsOf(input, problems);
  const sources = readOptions(input, given, problems);
  const sinks = new Map<string, SinkOptions>();
  for (const [sink, options] of given) {
    const { read, whole } = readSink(options, input, problems);
    sinks.set(sink, Object.freeze(read));
    const wrong = whole ? (missing(read, input.role) ?? unfit(read)) : null;
    if (wrong === null) continue;
    const { option, problem, remedy } = wrong;
    const section = { file, line: lines.get(sink) ?? null, option: `[${PREFIX}${sink}] ${option}` };
    problems.push({ ...(sources.get(sinkKey(sink, option)) ?? section), problem, remedy });
  }
  return { sinks, sources, problems };
}

type SinksInput = Parameters<typeof readSinks>[0];
type GivenSinks = ReadonlyMap<string, Map<string, Given>>;

/** The sinks that have a section, each with the line of its first one. */
function sectionsOf({ file, ini }: SinksInput, problems: Problem[]) {
  const given = new Map<string, Map<string, Given>>();
  const lines = new Map<string, number>();
  for (const { name, line } of ini.sections) {
    const sink = sinkOfSection(name);
    if (sink === null) continue;
    if (!NAME.test(sink)) problems.push({ file, line, option: `[${name}]`, ...badName });
    else {
      given.set(sink, given.get(sink) ?? new Map());
      lines.set(sink, lines.get(sink) ?? line);
    }
  }
  if (given.size > MOST_SINKS)
    problems.push({
      file,
      line: [...lines.values()][MOST_SINKS] ?? null,
      option: null,
      problem: `there are ${given.size} sections [${PREFIX}NAME]`,
      remedy: `Keep at most ${MOST_SINKS}.`,
    });
  return { given, lines };
}

/** Puts what the file says of each sink into `given`; where each option was set. */
function readOptions({ file, ini }: SinksInput, given: GivenSinks, problems: Problem[]): ReadonlyMap<string, Source> {
  const sources = new Map<string, Source>();
  for (const entry of ini.entries) {
    const sink = sinkOfSection(entry.section);
    const options = sink === null ? undefined : given.get(sink);
    if (sink === null || options === undefined) continue;
    const source = { file, line: entry.line, option: `[${entry.section}] ${shownName(entry.option)}` };
    if (!table.has(entry.option)) problems.push({ ...source, ...unknownOption(entry.option) });
    else {
      options.set(entry.option, { raw: entry.value, source });
      sources.set(sinkKey(sink, entry.option), source);
    }
  }
  return sources;
}

/** The options of one sink; `whole`: each of them could be read. */
function readSink(options: ReadonlyMap<string, Given>, input: SinksInput, problems: Problem[]) {
  const values: Record<string, unknown> = {};
  const before = problems.length;
  for (const [name, option] of table) {
    values[camel(name)] = option.default;
    const found = options.get(name);
    if (found === undefined) continue;
    const parsed = readGiven(option, found);
    if (parsed.ok) values[camel(name)] = parsed.value;
    else problems.push(parsed.wrong);
  }
  problems.push(...fillFromFiles(values, options, input));
  return { read: values as unknown as SinkOptions, whole: problems.length === before };
}

const badName = {
  problem: 'is no name for a sink',
  remedy: 'Take letters, digits, - and _, at most 64 of them, as in [notify:ops-chat].',
};

function unknownOption(option: string): Pick<Problem, 'problem' | 'remedy'> {
  const near = nearest(option, table.keys());
  return {
    problem: 'is not an option of a sink',
    remedy: near === null ? `The options are ${[...table.keys()].join(', ')}.` : `Did you mean ${near}?`,
  };
}

/** Whether a role sends notifications, or checks the options for them. */
const sends = (role: Role): boolean => role === 'ledger' || role === 'check';

function fillFromFiles(
  values: Record<string, unknown>,
  given: ReadonlyMap<string, Given>,
  { role, readFile }: Pick<SinksInput, 'role' | 'readFile'>,
): Problem[] {
  const problems: Problem[] = [];
  for (const [name, { fills }] of table) {
    const source = given.get(name)?.source;
    const path = values[camel(name)];
    if (fills === null || source === undefined || typeof path !== 'string') continue;
    if (values[camel(fills)] !== null && given.has(fills)) {
      problems.push({ ...source, problem: `and ${fills} are both set`, remedy: 'Keep one of the two.' });
      continue;
    }
    if (!sends(role)) continue;
    const file = readSecretFile(path, fills, readFile);
    if (!file.ok) {
      problems.push({ ...source, ...file.wrong });
      continue;
    }
    const target = table.get(fills);
    const parsed = target === undefined ? null : parseGiven(target, file.content);
    if (parsed?.ok === true) values[camel(fills)] = parsed.value;
    else if (parsed?.ok === false)
      problems.push({
        ...source,
        problem: `names the file ${path}, whose content ${parsed.problem}`,
        remedy: parsed.remedy,
      });
  }
  return problems;
}

type Wrong = { readonly option: string; readonly problem: string; readonly remedy: string };

function missing({ url, urlFile }: SinkOptions, role: Role): Wrong | null {
  if (url !== null || (urlFile !== null && !sends(role))) return null;
  return {
    option: 'url',
    problem: 'is not set',
    remedy: 'Write the URL of the receiver, or name a file with url_file.',
  };
}

/** Options that say something this format cannot do. */
function unfit({ format, types, secret, secretFile }: SinkOptions): Wrong | null {
  const nothing = types.find((pattern) => !topics.some((topic) => matchesPattern(pattern, topic)));
  if (nothing !== undefined) return matchesNothing(nothing);
  const event = types.find((type) => !type.startsWith('alarm.') && type !== '*');
  if (format === 'alertmanager' && event !== undefined)
    return {
      option: 'types',
      problem: `has ${event}, and an Alertmanager takes alarms only`,
      remedy: 'Take alarm.* or causes of alarms, or another format.',
    };
  if (format !== 'cloudevents' && (secret !== null || secretFile !== null))
    return {
      option: secret !== null ? 'secret' : 'secret_file',
      problem: `signs notifications, and format = ${format} has no signature`,
      remedy: 'Take it away, or set format = cloudevents.',
    };
  return null;
}

const alarms = Object.entries(causes).flatMap(([code, { severity }]) =>
  severity === 'alarm' ? [`alarm.${code}`] : [],
);
/** Everything that a sink can be sent: the types of the log's events, and `alarm.CAUSE` of each cause that is an alarm. */
const topics = [...logEventTypes, ...alarms];

function matchesNothing(pattern: string): Wrong {
  const near = nearest(pattern, topics);
  const meant = near === null ? '' : `Did you mean ${near}? `;
  const possible = pattern.startsWith('alarm.')
    ? `The alarms are ${alarms.join(', ')}; alarm.* stands for all of them.`
    : `The events are ${logEventTypes.join(', ')}; the alarms are alarm.CAUSE, and alarm.* stands for all of them. * in a pattern stands for any run of characters.`;
  return {
    option: 'types',
    problem: `has ${pattern}, which matches no type of event and no alarm`,
    remedy: meant + possible,
  };
}

/** Scheme, host and port of a sink's URL: what may be shown of it. */
export const sinkOrigin = ({ url }: Pick<SinkOptions, 'url'>): string | null =>
  url === null ? null : new URL(url.reveal()).origin;
