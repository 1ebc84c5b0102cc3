import type { Secret } from '@kronos/config';

const HIDDEN = '[secret]';

/** Shorter values are not searched for in text: too many words would be hidden that only look like them. */
const SHORTEST = 6;

/** Names of fields whose value is never shown, whatever it is. */
const SECRET_NAME =
  /(^|[-_.])(pass|passwd|password|passphrase|secret|token|authorization|cookie|seed|credentials?|api[-_]?key|private[-_]?key)$|(Password|Secret|Token|Authorization|Seed|ApiKey|PrivateKey)$/i;

export const isSecretName = (name: string): boolean => SECRET_NAME.test(name);

/** Hides secrets in text: the known ones wherever they turn up, and what has the form of one. */
export type Scrub = (text: string) => string;

/**
 * Makes the function that hides secrets in one line of text: the values of the configuration's secrets (as they are,
 * as JSON, as part of a URL and in base64), users and passwords inside URLs, and bearer and basic credentials.
 */
export function createScrub(secrets: readonly Secret[]): Scrub {
  const forms = new Set<string>();
  for (const secret of secrets) {
    const value = secret.reveal();
    if (value.length < SHORTEST) continue;
    // A line of JSON may hold JSON as text: the value is escaped once or twice then.
    const escaped = JSON.stringify(value).slice(1, -1);
    for (const form of [value, escaped, JSON.stringify(escaped).slice(1, -1)]) forms.add(form);
    forms.add(encodeURIComponent(value.toWellFormed()));
    forms.add(Buffer.from(value).toString('base64'));
  }
  // The longest first: one secret may be part of another.
  const known = [...forms].toSorted((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const form of known) clean = clean.replaceAll(form, HIDDEN);
    return clean
      .replaceAll(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"'<>\\]+@/gi, `$1${HIDDEN}@`)
      .replaceAll(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}/g, `$1 ${HIDDEN}`);
  };
}

/**
 * A copy of a value in which every field with the name of a secret shows `[secret]`; errors become plain objects.
 * Numbers and booleans stay: `tokens: 3` is a count.
 */
export function hideFields(value: unknown, depth = 8, seen: readonly object[] = []): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (seen.includes(value)) return '[circular]';
  if (depth === 0) return '[deep]';
  const path = [...seen, value];
  if (value instanceof Error) {
    const { name, message, stack } = value;
    const rest = Object.fromEntries(
      Object.entries(value).filter(([key]) => !['name', 'message', 'stack', 'cause'].includes(key)),
    );
    const cause = value.cause === undefined ? {} : { cause: hideFields(value.cause, depth - 1, path) };
    return { type: name, message, stack, ...asRecord(hideFields(rest, depth - 1, path)), ...cause };
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') return hideFields(value.toJSON(), depth - 1, path);
  if (Array.isArray(value)) return value.map((item) => hideFields(item, depth - 1, path));
  if (value instanceof Map) return hideFields(Object.fromEntries(value), depth - 1, path);
  if (value instanceof Set) return hideFields([...value], depth - 1, path);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const shown = item === null || ['number', 'boolean', 'undefined'].includes(typeof item);
      return [key, !shown && isSecretName(key) ? HIDDEN : hideFields(item, depth - 1, path)];
    }),
  );
}

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? { ...value } : {};
