import {
  type NumberRange,
  type Parsed,
  parseBool,
  parseBytes,
  parseChoice,
  parseFloat10,
  parseHeaders,
  parseInt10,
  parseList,
  parsePath,
  parseSeconds,
  parseSecret,
  parseText,
  parseUrl,
  rangeText,
} from './kinds.ts';
import type { Secret } from './secret.ts';

/** The readers of options. `cli` is every command of `kronos` that is neither a service nor `provision`. */
export const EVERYONE = ['scorer', 'planner', 'executor', 'ledger', 'provision', 'cli'] as const;
export type Reader = (typeof EVERYONE)[number];

const kinds = [
  'boolean',
  'integer',
  'number',
  'seconds',
  'bytes',
  'text',
  'list',
  'choice',
  'path',
  'url',
  'secret',
  'cells',
] as const;
type Kind = (typeof kinds)[number];

/** One option: everything that parsing, the sample, the documentation and the type of the configuration need. */
export interface Option<T> {
  readonly kind: Kind;
  /** Null where the option is absent by default. */
  readonly default: T;
  readonly parse: (raw: string) => Parsed<T>;
  /** Its valid values, in words: `a number from 0 to 1`, `auto or manual`. */
  readonly takes: string;
  readonly readBy: readonly Reader[];
  readonly help: string;
  /** For the path of a secret's file: the secret option that the file fills. */
  readonly fills: string | null;
}

interface About {
  readonly by: readonly Reader[];
  readonly help: string;
}

export const make = <T>(
  kind: Kind,
  fallback: T,
  { takes, parse, by, help, fills }: About & Pick<Option<T>, 'takes' | 'parse'> & { readonly fills?: string },
): Option<T> => ({ kind, default: fallback, parse, takes, readBy: by, help, fills: fills ?? null });

export const bool = (fallback: boolean, about: About): Option<boolean> =>
  make('boolean', fallback, { takes: 'true or false', parse: parseBool, ...about });

export const integer = (fallback: number, about: About & NumberRange): Option<number> =>
  make('integer', fallback, {
    takes: rangeText(about, 'a whole number'),
    parse: (raw) => parseInt10(raw, about),
    ...about,
  });

export const decimal = (fallback: number, about: About & NumberRange): Option<number> =>
  make('number', fallback, { takes: rangeText(about, 'a number'), parse: (raw) => parseFloat10(raw, about), ...about });

export const seconds = (fallback: number, about: About & NumberRange): Option<number> =>
  make('seconds', fallback, { takes: rangeText(about, 'seconds'), parse: (raw) => parseSeconds(raw, about), ...about });

export const bytes = (fallback: number, about: About & NumberRange): Option<number> =>
  make('bytes', fallback, {
    takes: 'bytes, e.g. 1048576, 512MiB or 10GiB',
    parse: (raw) => parseBytes(raw, about),
    ...about,
  });

export const text = (fallback: string, about: About): Option<string> =>
  make('text', fallback, { takes: 'text', parse: parseText, ...about });

export const optionalText = (about: About): Option<string | null> =>
  make('text', null, { takes: 'text', parse: parseText, ...about });

export const list = (fallback: readonly string[], about: About): Option<readonly string[]> =>
  make('list', fallback, { takes: 'a comma list', parse: parseList, ...about });

/** A comma list whose items a rule reads. They stay text: the rule reads them again where it decides. */
export const listOf = (
  takes: string,
  read: (item: string) => Parsed<unknown>,
  about: About,
): Option<readonly string[]> =>
  make('list', [], {
    takes,
    parse: (raw) => {
      const items = parseList(raw);
      const wrong = items.ok ? items.value.map(read).find((item) => !item.ok) : undefined;
      return wrong !== undefined && !wrong.ok ? wrong : items;
    },
    ...about,
  });

export const choice = <const V extends string>(values: readonly V[], fallback: NoInfer<V>, about: About): Option<V> =>
  make('choice', fallback, { takes: values.join(' or '), parse: (raw) => parseChoice(raw, values), ...about });

export const path = (fallback: string, about: About): Option<string> =>
  make('path', fallback, { takes: 'a path', parse: parsePath, ...about });

export const optionalPath = (about: About): Option<string | null> =>
  make('path', null, { takes: 'a path', parse: parsePath, ...about });

export const optionalUrl = (about: About): Option<string | null> =>
  make('url', null, { takes: `a URL (${HTTP_URL.join(', ')})`, parse: (raw) => parseUrl(raw, HTTP_URL), ...about });

export const urls = (
  fallback: readonly string[],
  schemes: readonly string[],
  about: About,
): Option<readonly string[]> =>
  make('list', fallback, {
    takes: `a comma list of URLs (${schemes.join(', ')})`,
    parse: (raw) => {
      const items = parseList(raw);
      if (!items.ok) return items;
      if (items.value.length === 0 && fallback.length > 0)
        return { ok: false, problem: 'is empty', remedy: 'Name at least one server.' };
      for (const item of items.value) {
        const url = parseUrl(item, schemes);
        if (!url.ok) return url;
      }
      return items;
    },
    ...about,
  });

export const secret = (about: About): Option<Secret | null> =>
  make('secret', null, { takes: 'a secret', parse: parseSecret, ...about });

/** Headers as a comma list. All of it is a secret: a value may be one. */
export const headers = (about: About): Option<Secret | null> =>
  make('secret', null, { takes: 'a comma list of NAME: VALUE', parse: parseHeaders, ...about });

export const secretFile = (fills: string, about: Omit<About, 'help'>): Option<string | null> =>
  make('path', null, {
    takes: 'a path',
    parse: parsePath,
    ...about,
    help: `File that holds ${fills}, to keep the secret out of kronos.conf. White space around it is ignored.`,
    fills,
  });

export const SERVICES = ['scorer', 'planner', 'executor', 'ledger'] as const;
export const PLANNING = ['planner'] as const;
export const NOVA = ['scorer', 'executor'] as const;
export const SCORER = ['scorer'] as const;
export const EXECUTOR = ['executor'] as const;
export const LEDGER = ['ledger'] as const;
export const CELLS = ['scorer', 'executor', 'cli'] as const;
export const HTTP_URL = ['http', 'https'] as const;
