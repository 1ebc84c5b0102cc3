import { type Config, camel, type Reader, sections } from './options.ts';

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

/**
 * The options that a service works by, `engine.evaluation_interval` and so on, in a form that may be shown: no secrets,
 * no credentials in URLs.
 */
export function shownOptions(config: Config, reader: Reader): Record<string, Json> {
  const values: Readonly<Record<string, Readonly<Record<string, unknown>>>> = config;
  const entries = [...sections].flatMap(([section, options]) =>
    OF_THE_PROCESS.has(section)
      ? []
      : [...options].flatMap(([name, { kind, readBy }]): [string, Json][] =>
          kind === 'secret' || !readBy.includes(reader)
            ? []
            : [[`${section}.${name}`, shown(values[section]?.[camel(name)])]],
        ),
  );
  return Object.fromEntries(entries);
}
