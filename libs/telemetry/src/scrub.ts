import { HIDDEN, knownSecrets } from '@kronos/config/secret';

/** Shorter values are hidden only as whole words: as parts of words they match too much. */
const SHORTEST = 6;
/** Even shorter values, and short numbers, are not hidden. */
const SHORTEST_WORD = 4;
/** At least this much of a secret before a `...` is hidden too: some texts are truncated earlier. */
const SHORTEST_START = 4;

/** Names of fields whose values are always hidden. */
const SECRET_NAME =
  /(^|[-_.])(pass|passwd|password|passphrase|secret|token|authorization|cookie|seed|credentials?|api[-_]?key|private[-_]?key)$|(Password|Secret|Token|Authorization|Seed|ApiKey|PrivateKey)$/i;

export const isSecretName = (name: string): boolean => SECRET_NAME.test(name);

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
const anyCase = (hex: string): string => hex.replaceAll(/[a-f]/gi, (c) => `[${c.toLowerCase()}${c.toUpperCase()}]`);

const ENTITIES: Readonly<Record<string, string>> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' };

/**
 * Every form in which a peer may return a character of a secret: as it is, and in JSON, HTML, a URL or
 * a form, also in one inside the other.
 */
function written(char: string): string {
  if (/^\s+$/.test(char)) return String.raw`(?:[\s+]|\\+[nrtfbv]|%(?:25)*(?:20|09|0[aAcCdD])|&nbsp;)+`;
  if (/^[A-Za-z0-9]$/.test(char)) return char;
  if (char === '\\') return String.raw`(?:\\+|%(?:25)*5[cC]|&#(?:92|[xX]5[cC]);)`;
  const percent = [...Buffer.from(char.toWellFormed())].map(
    (byte) => `%(?:25)*${anyCase(byte.toString(16).padStart(2, '0'))}`,
  );
  const units = Array.from({ length: char.length }, (_, i) => char.charCodeAt(i).toString(16).padStart(4, '0'));
  const point = char.codePointAt(0) ?? 0;
  const entity = ENTITIES[char];
  const ways = [
    String.raw`\\*${escaped(char)}`,
    percent.join(''),
    units.map((unit) => String.raw`\\+u${anyCase(unit)}`).join(''),
    `&(?:amp;)*#(?:0*${point}|[xX]0*${anyCase(point.toString(16))});`,
    ...(entity === undefined ? [] : [`&(?:amp;)*${entity};`]),
  ];
  // The longest first, so that `&` does not leave `amp;` behind.
  return `(?:${ways.toReversed().join('|')})`;
}

/** A cut, or a cut inside an escape. */
const CUT = String.raw`(?:[&%\\][\w#]*)?(?=\.\.\.|…)`;
/** The rest of a longer secret before a cut is taken whole. */
const MOST_STEPS = 64;

/** Matches these characters one after the other, or the first of them (at least `least`) where a cut follows. */
function wholeOrCut(chars: readonly string[], least: number): string {
  const whole = chars.join('');
  if (chars.length <= least) return whole;
  const steps = chars.slice(least, MOST_STEPS);
  const tail = chars.length > MOST_STEPS ? String.raw`[^\s"']*` : '';
  const rest = steps.reduceRight((inner, char) => `(?:${char}${inner})?`, tail);
  return `(?:${whole}|${chars.slice(0, least).join('')}${rest}${CUT})`;
}

const BASE64 = '[A-Za-z0-9+/_=-]*';

/**
 * The parts of base64 that every text with the secret has, wherever in the text the secret stands: three bytes are four characters, so
 * there are three ways. `user:password` in an Authorization header is one such text. Each is a list of patterns, one a character.
 */
function base64Of(value: string): string[][] {
  const bytes = Buffer.from(value);
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    // Characters that other bytes have a part in are left out.
    const core = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    if (core.length < SHORTEST) return [];
    return [[...core].map((c) => ({ '+': '[+-]', '/': '[/_]' })[c] ?? c)];
  });
}

interface Known {
  /** Matches the secrets, in every way in which they may be written, base64 as group 1. */
  readonly pattern: RegExp;
  /** Matches what every match of `pattern` begins with. A text without it holds no secret, and this costs far less to see. */
  readonly starts: RegExp;
}

/** The pattern that finds the secrets; null when there are none. */
function knownOf(values: Iterable<string>): Known | null {
  // A hidden part stays hidden, also where the word itself is somebody's secret.
  const parts = ['\\[secret\\]'];
  const base64: string[] = [];
  // Most tokens of one Keystone begin alike.
  const starts = new Set<string>();
  // The longest first: one secret may be part of another.
  for (const value of [...values].toSorted((a, b) => b.length - a.length)) {
    const chars = [...value.matchAll(/\s+|\S/gu)].map(([char]) => written(char));
    if (value.length >= SHORTEST) {
      parts.push(wholeOrCut(chars, SHORTEST_START));
      starts.add(chars.slice(0, SHORTEST_START).join(''));
      for (const core of base64Of(value)) {
        base64.push(`${wholeOrCut(core, SHORTEST)}${BASE64}`);
        starts.add(core.slice(0, SHORTEST_START).join(''));
      }
    } else if (value.length >= SHORTEST_WORD && /\D/.test(value)) {
      parts.push(`(?<![\\p{L}\\p{N}])${chars.join('')}(?![\\p{L}\\p{N}])`);
      starts.add(chars.join(''));
    }
  }
  if (base64.length > 0) parts.push(`(${base64.join('|')})`);
  if (parts.length === 1) return null;
  return { pattern: new RegExp(parts.join('|'), 'gu'), starts: new RegExp([...starts].join('|'), 'u') };
}

const isBase64 = (char: string | undefined): boolean => char !== undefined && /[A-Za-z0-9+/_-]/.test(char);

function hideKnown(text: string, { pattern, starts }: Known): string {
  if (!starts.test(text)) return text;
  let clean = '';
  let done = 0;
  for (const { 0: found, 1: base64, index } of text.matchAll(pattern)) {
    let from = index;
    if (base64 !== undefined) while (from > done && isBase64(text[from - 1])) from--;
    clean += text.slice(done, from) + HIDDEN;
    done = index + found.length;
  }
  return clean + text.slice(done);
}

function hide(text: string, known: Known | null): string {
  const clean = known === null ? text : hideKnown(text, known);
  return (
    clean
      .replaceAll(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"'<>\\]+@/gi, `$1${HIDDEN}@`)
      .replaceAll(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}/g, `$1 ${HIDDEN}`)
      .replaceAll(/\b(x-(?:auth|subject)-token["']?\s*[:=]\s*["']?)[^\s"',;[\]]{6,}/gi, `$1${HIDDEN}`)
      // Seeds of nkeys, and tokens of Keystone.
      .replaceAll(/\bS[ANUOCX][A-Z2-7]{56}\b/g, HIDDEN)
      .replaceAll(/\bgAAAA[A-Za-z0-9_-]{40,}={0,2}/g, HIDDEN)
  );
}

let current: { readonly version: number; readonly known: Known | null } | null = null;

/**
 * Hides every secret that this process knows, and whatever has the form of one. All that leaves the process goes through
 * here: what commands print, log lines, HTTP answers, traces, and the texts of events.
 */
export function scrub(text: string): string {
  const { version, values } = knownSecrets();
  if (current?.version !== version) current = { version, known: knownOf(values) };
  return hide(text, current.known);
}

/**
 * The JSON of a value, with secrets hidden in values and never in names of fields: a password that is a common word must not rename a
 * field.
 */
export function scrubbedJson(body: unknown): string {
  const text = JSON.stringify(body);
  // Most answers hold no secret: a search of the whole text is faster than one of each value.
  if (scrub(text) === text) return text;
  return JSON.stringify(body, (name, value: unknown) => {
    if (typeof value !== 'string') return value;
    return isSecretName(name) ? HIDDEN : scrub(value);
  });
}

/**
 * A copy of a value in which every field with the name of a secret shows `[secret]`; errors become plain objects.
 * Numbers and booleans stay: `tokens: 3` is a count.
 */
export const hideFields = (value: unknown): unknown => withoutSecrets(value, []);

/** The depth to which objects inside each other are copied: a log line stays short. */
const MOST_DEPTH = 8;

/** @param around the objects that the value is in, the outermost first */
function withoutSecrets(value: unknown, around: readonly object[]): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (around.includes(value)) return '[circular]';
  if (around.length === MOST_DEPTH) return '[deep]';
  const path = [...around, value];
  const inner = (part: unknown): unknown => withoutSecrets(part, path);
  if (value instanceof Error) return errorFields(value, inner);
  if ('toJSON' in value && typeof value.toJSON === 'function') return inner(value.toJSON());
  if (Array.isArray(value)) return value.map(inner);
  if (value instanceof Map) return inner(Object.fromEntries(value));
  if (value instanceof Set) return inner([...value]);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const shown = item === null || ['number', 'boolean', 'undefined'].includes(typeof item);
      return [key, !shown && isSecretName(key) ? HIDDEN : inner(item)];
    }),
  );
}

function errorFields(error: Error, hide: (value: unknown) => unknown): object {
  const { name, message, stack } = error;
  const rest = Object.fromEntries(
    Object.entries(error).filter(([key]) => !['name', 'message', 'stack', 'cause'].includes(key)),
  );
  const cause = error.cause === undefined ? {} : { cause: hide(error.cause) };
  return { type: name, message, stack, ...asRecord(hide(rest)), ...cause };
}

/** The fields of a value; none of one that has none. */
export const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? { ...value } : {};
