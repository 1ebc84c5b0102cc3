import { z } from 'zod';
import { alarmRaisedSchema, alarmResolvedSchema } from './alarms.ts';
import { authors, type Service, wrongAuthor } from './authority.ts';
import { controlSchemas, custodySchemas } from './controls.ts';
import { isoTimeSchema, logMarkSchema, message, objectRefSchema } from './envelope.ts';
import { hostSchemas } from './hosts.ts';
import { parseJson } from './json.ts';
import { type Family, families, instanceName, logFamilies } from './names.ts';
import {
  cycleDecidedSchema,
  planDispatchedSchema,
  plannerConfiguredSchema,
  planProposedSchema,
  planWithdrawnSchema,
} from './plans.ts';
import { serviceReportedSchema } from './services.ts';
import { snapshotTakenSchema } from './snapshot.ts';
import {
  migrationAbortRefusedSchema,
  migrationAbortRequestedSchema,
  migrationCompletedSchema,
  migrationConfirmRequestedSchema,
  migrationFailedSchema,
  migrationObservedSchema,
  migrationRequestedSchema,
  migrationRevertRequestedSchema,
  migrationSkippedSchema,
  migrationStartedSchema,
  migrationSuspectedSchema,
  migrationVerifiedSchema,
  migrationVerifyingSchema,
} from './tasks.ts';
import { eventTimeMs } from './time.ts';
import { type ReadValue, validator } from './validator.ts';

/** The folded state of one aggregate at a log sequence. The state's own form is of libs/projections. */
const stateCheckpointedSchema = message(
  'state.checkpointed',
  1,
  z.object({
    sequence: z.int().min(0),
    foldVersion: z.int().min(1),
    /** `sha256:<hex>` of the canonical JSON of `state`. */
    digest: z.string(),
    /** Null when it is kept in the object store, then `body` says where. */
    state: z.json().nullable(),
    body: objectRefSchema.nullable(),
    /** Installation id in force at `sequence`; null: the log named none yet. Absent: written by Kronos 0.1. */
    installationId: z.string().nullable().optional(),
  }),
);
export type StateCheckpointed = z.infer<typeof stateCheckpointedSchema>;

/** The ledger's last position on a log, on `_all_`. Services compare it with the log that they find. */
const logSeenSchema = message(
  'log.seen',
  1,
  logMarkSchema.extend({
    /** `log`: it folds this log. `archive`: its archive reaches so far. */
    where: z.enum(['log', 'archive']),
    /** The server's stamp of the event at `sequence`. */
    storedAt: isoTimeSchema,
  }),
);
export type LogSeen = z.infer<typeof logSeenSchema>;

/** The content of one notification of Nova. `after`: sequence of the host's message that it was added to. */
const noticeSchema = z.object({
  /** Null: it names none, but the nova-compute of the host sent it. */
  server: z.string().nullable(),
  deleted: z.boolean(),
  /** The nova-compute of this host sent it. */
  own: z.boolean(),
  event: z.string(),
  after: z.int().min(0),
});

/** One host: its full list of servers, and recent notifications. */
const inventoryReportedSchema = message(
  'inventory.reported',
  1,
  z.object({
    host: z.string(),
    /** Null: no scorer has read the list of this host yet. */
    instances: z.array(z.string()).nullable(),
    /** Oldest first; older ones are repeated for readers that missed messages, as only the newest message of a host is kept. */
    notices: z.array(noticeSchema),
    /** A reader whose last message of this host has a lower sequence may have missed notices. */
    completeFrom: z.int().min(0),
    /** Sequence of the host's message before this one; 0: there was none. */
    after: z.int().min(0),
    observedAt: isoTimeSchema,
    /** Nova's event type, or `read`: the list was read from Nova and differed. */
    cause: z.string(),
  }),
);
export type InventoryReported = z.infer<typeof inventoryReportedSchema>;

export const planEventSchemas = [
  cycleDecidedSchema,
  planProposedSchema,
  planDispatchedSchema,
  planWithdrawnSchema,
  plannerConfiguredSchema,
] as const;
export const resultSchemas = [
  migrationStartedSchema,
  migrationObservedSchema,
  migrationCompletedSchema,
  migrationFailedSchema,
  migrationSkippedSchema,
  migrationSuspectedSchema,
  migrationAbortRequestedSchema,
  migrationAbortRefusedSchema,
  migrationVerifyingSchema,
  migrationVerifiedSchema,
  migrationConfirmRequestedSchema,
  migrationRevertRequestedSchema,
  ...hostSchemas,
] as const;

/** Every message type, grouped by its subject family. */
export const messagesByFamily = {
  snapshots: [snapshotTakenSchema],
  plans: planEventSchemas,
  migrations: [migrationRequestedSchema],
  results: resultSchemas,
  controls: controlSchemas,
  custody: custodySchemas,
  ledger: [stateCheckpointedSchema, logSeenSchema],
  inventory: [inventoryReportedSchema],
  services: [serviceReportedSchema],
  alarms: [alarmRaisedSchema, alarmResolvedSchema],
} as const satisfies Record<Family, readonly z.ZodType[]>;

export const logEventSchema = z.discriminatedUnion('type', [
  ...planEventSchemas,
  ...resultSchemas,
  ...controlSchemas,
  ...custodySchemas,
]);
/** The messages on KRONOS_LOG. */
export type LogEvent = z.infer<typeof logEventSchema>;
export type LogEventType = LogEvent['type'];
export type LogEventOf<T extends LogEventType> = Extract<LogEvent, { type: T }>;

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
