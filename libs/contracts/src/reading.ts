/** Reading messages: each against the schema of its type, the table of authority, and the subject that it was found on. */

import type { z } from 'zod';
import { authors, type Service, wrongAuthor } from './authority.ts';
import { parseJson } from './json.ts';
import {
  familyOf,
  type LogEvent,
  type Message,
  messagesByFamily,
  nameOf,
  type Remedy,
  type UnreadableEvent,
} from './messages.ts';
import { type Family, families, logFamilies } from './names.ts';
import { type ReadValue, validator } from './validator.ts';
import { errorText } from './words.ts';

type Unread = {
  readonly ok: false;
  readonly problem: string;
  /** The claimed type; `unknown` when it has none. */
  readonly type: string;
  readonly version: number | null;
  readonly remedy: Remedy;
};
export type ParseResult<M> = { readonly ok: true; readonly message: M } | Unread;

/** Characters of a claimed type that are kept. */
const MAX_CLAIMED_TYPE = 100;

type Reader = {
  readonly read: (body: unknown) => ReadValue<Message>;
  readonly version: number;
};

const readers = new Map<string, Reader>(
  Object.values(messagesByFamily)
    .flat()
    .map((s) => [
      s.shape.type.value,
      { read: validator(s as unknown as z.ZodType<Message>), version: s.shape.version.value },
    ]),
);

/** The families in which a service may write anything: what its NATS user may publish on. */
export const familiesOf = (service: Service): Family[] =>
  families.filter((family) =>
    messagesByFamily[family].some((schema) => authors[schema.shape.type.value].includes(service)),
  );

function headOf(body: unknown): { readonly type: string; readonly version: number } | null {
  if (typeof body !== 'object' || body === null || !('type' in body) || !('version' in body)) return null;
  const { type, version } = body;
  return typeof type === 'string' && typeof version === 'number' && Number.isFinite(version) ? { type, version } : null;
}

/**
 * Checks a parsed JSON body against the schema of its type, and its author against the table of authority. Never throws: a
 * body that does not fit is described. Fields that this version does not know are dropped, as within a version only
 * optional ones are added; a body without any is given back as it is.
 */
export function parseMessage(body: unknown): ParseResult<Message> {
  try {
    const parsed = checked(body);
    if (!parsed.ok) return parsed;
    const problem = wrongAuthor(parsed.message);
    return problem === null ? parsed : unread(parsed.message, problem);
  } catch (error) {
    return unread(headOf(body), `it cannot be checked: ${errorText(error)}`);
  }
}

function checked(body: unknown): ParseResult<Message> {
  const head = headOf(body);
  if (head === null) return unread(null, 'no type and version');
  const { type, version } = head;
  const known = readers.get(type);
  if (known === undefined) return unread(head, `unknown type ${type}`, 'upgrade');
  if (version !== known.version) return unread(head, `version: unknown version ${version} of ${type}`, 'upgrade');
  const read = known.read(body);
  return read.ok ? { ok: true, message: read.value } : unread(head, read.problem);
}

/** Of another version the reader may be missing; everything else is garbage, and no version will read it. */
function unread(
  head: { readonly type: string; readonly version: number } | null,
  problem: string,
  remedy: Remedy = 'skip',
): Unread {
  const type = head?.type ?? 'unknown';
  return { ok: false, problem, type: type.slice(0, MAX_CLAIMED_TYPE), version: head?.version ?? null, remedy };
}

/** The place of a message. */
export type MessagePlace = { readonly family: Family; readonly name: string };

/**
 * Reads one message as a stream holds it: bounded in bytes, depth and time, valid, on the subject of its type and of the
 * aggregate (an inventory's host) that it names, and of an author that may write it. Never throws.
 *
 * @param place what the subject says; null: it is none of Kronos's
 */
export function readMessage(
  data: Uint8Array,
  place: MessagePlace | null,
): ParseResult<Message> & { readonly body?: unknown } {
  const json = parseJson(data);
  if (!json.ok) return unread(null, json.problem);
  const parsed = parseMessage(json.value);
  if (!parsed.ok) return { ...parsed, body: json.value };
  const problem = misplaced(parsed.message, place);
  return problem === null ? parsed : { ...unread(parsed.message, problem), body: json.value };
}

/** Why a message does not belong where it was found; null where it does. */
function misplaced(message: Message, place: MessagePlace | null): string | null {
  const family = familyOf(message.type);
  if (place === null) return `${message.type} is on a subject that Kronos does not use`;
  if (place.family !== family) return `${message.type} belongs on kronos.${family}, and was on kronos.${place.family}`;
  const name = nameOf(message);
  if (place.name === name) return null;
  return `the body names the ${KINDS[family] ?? 'aggregate'} ${JSON.stringify(name)}, the subject ${JSON.stringify(place.name)}`;
}

/** The meaning of the last token of a subject, where it is no aggregate. */
const KINDS: { readonly [F in Family]?: string } = { inventory: 'host', services: 'process', alarms: 'alarm' };

const LOG_FAMILIES: ReadonlySet<Family> = new Set<Family>(logFamilies);

/** A parsed message as a reader of the log takes it: what cannot be read becomes an event that says so. */
export function logEventOf(parsed: ParseResult<Message>, aggregate: string): LogEvent | UnreadableEvent {
  if (parsed.ok) {
    const { message } = parsed;
    const family = familyOf(message.type);
    if (LOG_FAMILIES.has(family)) return message as LogEvent;
    return unreadable(unread(message, `a ${family} message does not belong on the log`), aggregate);
  }
  return unreadable(parsed, aggregate);
}

const unreadable = ({ problem, type, version, remedy }: Unread, aggregate: string): UnreadableEvent => ({
  type: 'unreadable',
  aggregate,
  claimedType: type,
  claimedVersion: version,
  problem,
  remedy,
});

/** A body that was an event of the log of this aggregate, read again: from a recording, which names no subject. */
export const readLogEvent = (body: unknown, aggregate: string): LogEvent | UnreadableEvent =>
  logEventOf(parseMessage(body), aggregate);
