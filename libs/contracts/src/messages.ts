import { z } from 'zod';
import { authors, type Service, wrongAuthor } from './authority.ts';
import { parseJson } from './json.ts';
import { definitions } from './messages/list.ts';
import { type Family, families, instanceName, logFamilies } from './names.ts';
import { eventTimeMs } from './time.ts';
import { type ReadValue, validator } from './validator.ts';

type Definitions = typeof definitions;
type Schemas<L extends readonly { readonly schema: unknown }[]> = { readonly [I in keyof L]: L[I]['schema'] };

/** Every message type, grouped by its subject family. */
export const messagesByFamily = Object.fromEntries(
  Object.entries(definitions).map(([family, list]) => [family, list.map(({ schema }) => schema)]),
) as unknown as { readonly [F in Family]: Schemas<Definitions[F]> };

const { plans, results, controls, custody } = messagesByFamily;
/** The schemas of the events on the log. */
export const logEventSchemas = [...plans, ...results, ...controls, ...custody] as const;

export const logEventSchema = z.discriminatedUnion('type', logEventSchemas);
/** The messages on KRONOS_LOG. */
export type LogEvent = z.infer<typeof logEventSchema>;
export type LogEventType = LogEvent['type'];
export type LogEventOf<T extends LogEventType> = Extract<LogEvent, { type: T }>;
/** A change of the service of a host by an executor. */
export type HostEvent = Extract<LogEventOf<Extract<LogEventType, `host.${string}`>>, { data: { drainId: string } }>;
/** A command of a person. */
export type Control = Extract<LogEvent, { data: { commandId: string; comment: string | null } }>;
export type ControlType = Control['type'];

export type Message = { [F in Family]: z.infer<(typeof messagesByFamily)[F][number]> }[Family];
export type MessageOf<F extends Family> = z.infer<(typeof messagesByFamily)[F][number]>;
export type MessageType = Message['type'];

/** The remedy for an unreadable event: another version of Kronos, or `kronos log skip`. */
export type Remedy = 'upgrade' | 'skip';

/** An event that cannot be read: the aggregate is unplannable until the remedy was applied. */
export type UnreadableEvent = {
  readonly type: 'unreadable';
  readonly aggregate: string;
  /** The claimed type. */
  readonly claimedType: string;
  readonly claimedVersion: number | null;
  readonly problem: string;
  readonly remedy: Remedy;
};

/** An event as a reader of the log sees it. */
export type StoredEvent = {
  /** Stream sequence in KRONOS_LOG. */
  readonly sequence: number;
  /** The server's timestamp, ms since the epoch. */
  readonly storedAt: number;
  /** Only on an event that a restore published again: the server's timestamp of the log that was restored. */
  readonly originallyStoredAt?: number;
  readonly event: LogEvent | UnreadableEvent;
};

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
const familyByType = new Map<string, Family>(
  Object.entries(messagesByFamily).flatMap(([family, schemas]) =>
    schemas.map((s): [string, Family] => [s.shape.type.value, family as Family]),
  ),
);

/** The subject family on which a type travels. */
export function familyOf(type: MessageType): Family {
  const family = familyByType.get(type);
  if (family === undefined) throw new RangeError(`no message type ${type}`);
  return family;
}

/** The topic of a message, by its subject: its aggregate, the host of an inventory, the process of a heartbeat, the alarm. */
export function nameOf(message: Message): string {
  if (message.type === 'inventory.reported') return message.data.host;
  if (message.type === 'service.reported') return instanceName(message.by.service, message.by.instance);
  if (message.type === 'alarm.raised' || message.type === 'alarm.resolved') return message.data.key;
  return message.aggregate;
}

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
    return unread(headOf(body), `it cannot be checked: ${error instanceof Error ? error.message : String(error)}`);
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
export type Place = { readonly family: Family; readonly name: string };

/**
 * Reads one message as a stream holds it: bounded in bytes, depth and time, valid, on the subject of its type and of the
 * aggregate (an inventory's host) that it names, and of an author that may write it. Never throws.
 *
 * @param place what the subject says; null: it is none of Kronos's
 */
export function readMessage(data: Uint8Array, place: Place | null): ParseResult<Message> & { readonly body?: unknown } {
  const json = parseJson(data);
  if (!json.ok) return unread(null, json.problem);
  const parsed = parseMessage(json.value);
  if (!parsed.ok) return { ...parsed, body: json.value };
  const problem = misplaced(parsed.message, place);
  return problem === null ? parsed : { ...unread(parsed.message, problem), body: json.value };
}

/** Why a message does not belong where it was found; null where it does. */
function misplaced(message: Message, place: Place | null): string | null {
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

/** When an event happened, in milliseconds since the epoch, see `eventTimeMs`; for one that cannot be read: when it was stored. */
export function timeOf({ event, storedAt, originallyStoredAt = storedAt }: StoredEvent): number {
  return event.type === 'unreadable' ? originallyStoredAt : eventTimeMs(event.time, originallyStoredAt);
}
