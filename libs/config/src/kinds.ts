import { type MovableDevice, movableDevices } from '@kronos/contracts';
import { typedSeconds } from '@kronos/contracts/typedTime';
import { quotedValue } from '@kronos/contracts/words';
import { timeZoneRules } from '@kronos/timezone';
import { learnSecret, Secret } from './secret.ts';

/** The result of reading one value. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string; readonly remedy: string };

const good = <T>(value: T): Parsed<T> => ({ ok: true, value });
const bad = (problem: string, remedy: string): Parsed<never> => ({ ok: false, problem, remedy });

/** Limits of a number, both inclusive. */
export interface NumberRange {
  readonly min?: number;
  readonly max?: number;
}

const commentHint = (raw: string): string => (/\s[#;]/.test(raw) ? ' A comment needs its own line.' : '');

/** `true/false` and the other words that oslo.config takes for them. */
export function parseBool(raw: string): Parsed<boolean> {
  const word = raw.toLowerCase();
  if (['true', '1', 'yes', 'on'].includes(word)) return good(true);
  if (['false', '0', 'no', 'off'].includes(word)) return good(false);
  return bad(`${quotedValue(raw)} is neither true nor false`, `Write true or false.${commentHint(raw)}`);
}

export function parseInt10(raw: string, range: NumberRange): Parsed<number> {
  if (!/^[+-]?\d+$/.test(raw) || !Number.isSafeInteger(Number(raw)))
    return bad(
      `${quotedValue(raw)} is not a whole number`,
      `Write ${rangeText(range, 'a whole number')}.${commentHint(raw)}`,
    );
  return inRange(Number(raw), range, 'a whole number');
}

export function parseFloat10(raw: string, range: NumberRange): Parsed<number> {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(raw) || !Number.isFinite(Number(raw)))
    return bad(`${quotedValue(raw)} is not a number`, `Write ${rangeText(range, 'a number')}.${commentHint(raw)}`);
  return inRange(Number(raw), range, 'a number');
}

export function parseSeconds(raw: string, range: NumberRange): Parsed<number> {
  const withUnit = /[a-z]$/i.test(raw) ? typedSeconds(raw.toLowerCase()) : null;
  if (withUnit !== null)
    return bad(`${quotedValue(raw)} has a unit, and durations are plain seconds`, `Write ${withUnit}.`);
  const number = parseFloat10(raw, range);
  return number.ok || !number.problem.includes('is not a number')
    ? number
    : bad(`${quotedValue(raw)} is not a number of seconds`, number.remedy);
}

/** Bytes, with an optional binary unit: `10737418240` or `10GiB`. */
export function parseBytes(raw: string, range: NumberRange): Parsed<number> {
  const match = /^(\d+)\s*(KiB|MiB|GiB|TiB)?$/.exec(raw);
  if (match === null)
    return bad(
      `${quotedValue(raw)} is not a number of bytes`,
      `Write it as 1048576, 512MiB or 10GiB.${commentHint(raw)}`,
    );
  const power = ['KiB', 'MiB', 'GiB', 'TiB'].indexOf(match[2] ?? '') + 1;
  return inRange(Number(match[1]) * 1024 ** power, range, 'bytes');
}

function inRange(value: number, range: NumberRange, what: string): Parsed<number> {
  if (range.min !== undefined && value < range.min)
    return bad(`${value} is less than ${range.min}`, `Write ${rangeText(range, what)}.`);
  if (range.max !== undefined && value > range.max)
    return bad(`${value} is more than ${range.max}`, `Write ${rangeText(range, what)}.`);
  return good(value);
}

/** The range in words, e.g. `a number from 0 to 1`. */
export function rangeText(range: NumberRange, what: string): string {
  if (range.min !== undefined && range.max !== undefined) return `${what} from ${range.min} to ${range.max}`;
  if (range.min !== undefined) return `${what} of at least ${range.min}`;
  if (range.max !== undefined) return `${what} of at most ${range.max}`;
  return what;
}

export function parseChoice<V extends string>(raw: string, values: readonly V[]): Parsed<V> {
  const value = values.find((v) => v === raw);
  return value === undefined
    ? bad(`${quotedValue(raw)} is not one of its values`, `Write one of ${values.join(', ')}.${commentHint(raw)}`)
    : good(value);
}

export function parseText(raw: string): Parsed<string> {
  return raw.includes('\n')
    ? bad('spans several lines', 'Write it in one line. A comment needs its own line and starts in the first column.')
    : good(raw);
}

/** The name of a zone of the IANA database that this Node has. */
export function parseTimeZone(raw: string): Parsed<string> {
  return timeZoneRules(raw) === null
    ? bad(`${quotedValue(raw)} is not a time zone`, `Write a name such as UTC or Europe/Berlin.${commentHint(raw)}`)
    : good(raw);
}

/** The beginning of a subject; `{service}` may be part of it. */
export function parseInboxPrefix(raw: string): Parsed<string> {
  return /^([A-Za-z0-9_-]|\{service\})+(\.([A-Za-z0-9_-]|\{service\})+)*$/.test(raw)
    ? good(raw)
    : bad(
        `${quotedValue(raw)} cannot begin a NATS subject`,
        'Write letters, digits, - and _, in tokens with a dot between them, such as _INBOX_viewer.',
      );
}

/** An installation of Kronos elsewhere, by the address of its console. */
export type Region = { readonly name: string; readonly url: string };

/** `NAME=URL`. A user or password is not quoted, as in {@link parseUrl}. */
export function parseRegion(raw: string): Parsed<Region> {
  const [, name = '', url = ''] = /^([^=]+)=(.*)$/.exec(raw) ?? [];
  if (name.trim() === '') return bad(`${quotedValue(raw.replace(/^.*@/s, ''))} is no region`, 'Write it as NAME=URL.');
  const parsed = parseUrl(url.trim(), ['http', 'https']);
  return parsed.ok ? good({ name: name.trim(), url: parsed.value }) : parsed;
}

/** The regions of a list that was read by {@link parseRegion}. */
export const regionsOf = (items: readonly string[]): Region[] =>
  items.map(parseRegion).flatMap((parsed) => (parsed.ok ? [parsed.value] : []));

export function parsePath(raw: string): Parsed<string> {
  return parseText(raw);
}

/**
 * A URL of one of the schemes (written without `:`). A user or password inside it is refused, since URLs get logged;
 * so the value is not quoted.
 */
export function parseUrl(raw: string, schemes: readonly string[]): Parsed<string> {
  const example = schemes.map((s) => `${s}://HOST:PORT`).join(' or ');
  if (!URL.canParse(raw) || raw.includes('\n')) return bad('is not a URL', `Write it as ${example}.`);
  const url = new URL(raw);
  if (!schemes.includes(url.protocol.slice(0, -1))) return bad('is a URL of another kind', `Write it as ${example}.`);
  if (url.hostname === '') return bad('is a URL without a host', `Write it as ${example}.`);
  if (raw.includes('@'))
    return bad('holds a user or a password', 'Remove them from the URL: they have their own options.');
  if (url.search !== '' || url.hash !== '')
    return bad('has a query or a fragment', 'Remove ? or # and the text after it.');
  return good(raw.replace(/\/+$/, ''));
}

/** Comma list; an item may be quoted to hold a comma; a comma at the end is allowed, an empty item is not. */
export function parseList(raw: string): Parsed<readonly string[]> {
  if (raw.trim() === '') return good([]);
  const items: string[] = [];
  const rest = raw.trim().replace(/,$/, '');
  if (rest.trim() === '') return bad('has an empty item', 'Remove the extra comma.');
  const item = /\s*(?:"([^"]*)"|'([^']*)'|((?!\s*["'])[^,]*))\s*(,|$)/y;
  while (item.lastIndex < rest.length || rest.endsWith(',')) {
    const match = item.exec(rest);
    if (match === null) return bad('has an unmatched quote', 'Quote whole items: "a, b", c.');
    const value = match[1] ?? match[2] ?? (match[3] ?? '').trim();
    if (value === '') return bad('has an empty item', 'Remove the extra comma.');
    if (value.includes('\n'))
      return bad('has no comma at the end of a line', 'End each line but the last with a comma.');
    items.push(value);
    if (match[4] === '') break;
  }
  return good(items);
}

/** A cell and the hosts that belong to it. */
export interface CellPattern {
  readonly cell: string;
  /** A Nova service host; `*` stands for any run of characters. */
  readonly hosts: string;
}

export function parseCells(raw: string): Parsed<readonly CellPattern[]> {
  const list = parseList(raw);
  if (!list.ok) return list;
  const cells: CellPattern[] = [];
  for (const item of list.value) {
    const match = /^([^:\s]+)\s*:\s*(\S+)$/.exec(item);
    if (match?.[1] === undefined || match[2] === undefined)
      return bad(`${quotedValue(item)} is not CELL:HOSTS`, 'Write it as cell1:cmp1*, cell2:cmp2*.');
    cells.push({ cell: match[1], hosts: match[2] });
  }
  return good(cells);
}

/** Devices with which VMs may move. */
export function parseDevices(raw: string): Parsed<readonly MovableDevice[]> {
  const list = parseList(raw);
  if (!list.ok) return list;
  const devices: MovableDevice[] = [];
  for (const item of list.value) {
    const known = movableDevices.find((device) => device === item);
    if (known === undefined)
      return bad(`${quotedValue(item)} is no device that can move`, `Use ${movableDevices.join(', ')}.`);
    devices.push(known);
  }
  return good(devices);
}

/** An aggregate and the cell that its hosts are in. */
export interface CellAggregate {
  readonly cell: string;
  readonly aggregate: string;
}

export function parseCellMap(raw: string): Parsed<readonly CellAggregate[]> {
  const list = parseList(raw);
  if (!list.ok) return list;
  const map: CellAggregate[] = [];
  for (const item of list.value) {
    const match = /^([^:\s]+)\s*:\s*(.*\S)\s*$/.exec(item);
    if (match?.[1] === undefined || match[2] === undefined)
      return bad(`${quotedValue(item)} is not CELL:AGGREGATE`, 'Write it as cell1:old, cell2:new.');
    map.push({ cell: match[1], aggregate: match[2] });
  }
  return good(map);
}

/** The checks of a moved server beside Nova's own status. */
export type Verify =
  | { readonly kind: 'none' }
  | { readonly kind: 'tcp'; readonly port: number }
  | { readonly kind: 'command'; readonly command: string };

/** Parses `[cells] verify`; null for a text that has none of its forms. */
export function verifyOf(text: string): Verify | null {
  if (text === 'none') return { kind: 'none' };
  const tcp = /^tcp:(\d{1,5})$/.exec(text)?.[1];
  if (tcp !== undefined) {
    const port = Number(tcp);
    return port >= 1 && port <= 65535 ? { kind: 'tcp', port } : null;
  }
  const command = /^command:(.*\S)/.exec(text)?.[1]?.trim();
  return command === undefined ? null : { kind: 'command', command };
}

export function parseVerify(raw: string): Parsed<string> {
  const line = parseText(raw);
  if (!line.ok || verifyOf(raw) !== null) return line;
  return bad(`${quotedValue(raw)} is not a check`, 'Write none, tcp:22 or command:/usr/local/bin/check-server.');
}

export function parseSecret(raw: string): Parsed<Secret> {
  return raw.includes('\n')
    ? bad('spans several lines', 'Write it in one line, or put it into a file and name the file.')
    : good(new Secret(raw));
}

const HEADER = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+):\s*([\t\x20-\x7e]+)$/;
/** Headers that the client sets itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['host', 'content-length', 'content-type', 'connection', 'accept']);
/** Headers whose values are secrets. The value of another one, such as a tenant, may be a plain word of many texts. */
const SECRET_HEADER = /auth|token|key|secret|cookie|password/i;

/** A file may have one header a line. */
const headerItems = (raw: string): Parsed<readonly string[]> => parseList(raw.trim().replace(/\s*\n\s*/g, ','));

/** Comma list of `NAME: VALUE`; an item may be quoted to hold a comma. The problem never quotes a value. */
export function parseHeaders(raw: string): Parsed<Secret> {
  const items = headerItems(raw);
  if (!items.ok) return items;
  for (const [index, item] of items.value.entries()) {
    const [, name, value] = HEADER.exec(item) ?? [];
    if (name === undefined || value === undefined)
      return bad(
        `has an item ${index + 1} that is no header`,
        'Write each as NAME: VALUE, such as X-Scope-OrgID: TENANT.',
      );
    if (OWN_HEADERS.has(name.toLowerCase())) return bad(`sets ${name}, which Kronos sets itself`, 'Remove it.');
    if (SECRET_HEADER.test(name)) learnSecret(value.trim());
  }
  return good(new Secret(raw));
}

/** The headers of a value that {@link parseHeaders} takes, by name. */
export function headersOption(raw: string): Record<string, string> {
  const items = headerItems(raw);
  return Object.fromEntries(
    (items.ok ? items.value : []).flatMap((item) => {
      const [, name, value] = HEADER.exec(item) ?? [];
      return name === undefined || value === undefined ? [] : [[name.toLowerCase(), value.trim()]];
    }),
  );
}
