import type { Reader } from './option.ts';
import { sinkOptions } from './options/sink.ts';
import { type Config, camel, sections } from './options.ts';
import { aggregateKey } from './overrides.ts';
import { sinkKey, sinkOrigin } from './sinks.ts';

/** Sections in which two replicas on one machine differ by necessity. */
const OF_THE_PROCESS: ReadonlySet<string> = new Set(['http', 'log', 'telemetry']);

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Credentials and query of every URL in a text. */
const hidden = (text: string): string =>
  text.replaceAll(/(\w+:\/\/)[^/?#\s]*@/g, '$1').replaceAll(/(\w+:\/\/[^?#\s]*)[?#]\S*/g, '$1');

function shown(value: unknown): Json {
  if (typeof value === 'string') return hidden(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shown(part)]));
  return null;
}

const optionOf = (config: Config, section: string, option: string): unknown => {
  const group: unknown = Reflect.get(config, section);
  return typeof group === 'object' && group !== null ? Reflect.get(group, camel(option)) : undefined;
};

/**
 * The options that a service works by, `engine.evaluation_interval` and so on, in a form that may be shown: no secrets,
 * no credentials in URLs.
 */
export function shownOptions(config: Config, reader: Reader): Record<string, Json> {
  const entries = [...sections].flatMap(([section, options]) =>
    OF_THE_PROCESS.has(section)
      ? []
      : [...options].flatMap(([name, { kind, readBy }]): [string, Json][] =>
          kind === 'secret' || !readBy.includes(reader)
            ? []
            : [[`${section}.${name}`, shown(optionOf(config, section, name))]],
        ),
  );
  return { ...Object.fromEntries(entries), ...shownOverrides(config, reader), ...shownSinks(config, reader) };
}

/** The sections `[notify:NAME]`: `notify:chat.format` and so on; of the URL its origin alone. */
function shownSinks({ sinks }: Config, reader: Reader): Record<string, Json> {
  return Object.fromEntries(
    [...sinks].flatMap(([sink, own]) => [
      ...(reader === 'ledger' ? [[sinkKey(sink, 'url'), sinkOrigin(own)] as const] : []),
      ...Object.entries(sinkOptions).flatMap(([name, { kind, readBy }]): [string, Json][] =>
        kind === 'secret' || !readBy.some((one) => one === reader)
          ? []
          : [[sinkKey(sink, name), shown(Reflect.get(own, camel(name)))]],
      ),
    ]),
  );
}

/** The options of the sections `[aggregate:NAME]`: `aggregate:gpu.cooldown` and so on. */
export function shownOverrides(config: Config, reader?: Reader): Record<string, Json> {
  const engine = [...(sections.get('engine') ?? [])];
  return Object.fromEntries(
    [...config.overrides].flatMap(([aggregate, own]) =>
      engine.flatMap(([name, { readBy }]): [string, Json][] => {
        const value: unknown = Reflect.get(own, camel(name));
        if (value === undefined || (reader !== undefined && !readBy.includes(reader))) return [];
        return [[aggregateKey(aggregate, name), shown(value)]];
      }),
    ),
  );
}
