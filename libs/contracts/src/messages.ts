import { z } from 'zod';
import { definitions } from './messages/list.ts';
import { type Family, instanceName } from './names.ts';
import { eventTimeMs } from './time.ts';

type Definitions = typeof definitions;
type Schemas<L extends readonly { readonly schema: unknown }[]> = { readonly [I in keyof L]: L[I]['schema'] };

/** Every message type, grouped by its subject family. */
export const messagesByFamily = Object.fromEntries(
  Object.entries(definitions).map(([family, list]) => [family, list.map(({ schema }) => schema)]),
) as unknown as { readonly [F in Family]: Schemas<Definitions[F]> };

/** The schemas of the events on the log. */
export const logEventSchemas = [
  ...messagesByFamily.plans,
  ...messagesByFamily.results,
  ...messagesByFamily.controls,
  ...messagesByFamily.custody,
] as const;

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

const familyByType = new Map<string, Family>(
  Object.entries(messagesByFamily).flatMap(([family, schemas]) =>
    schemas.map((s): [string, Family] => [s.shape.type.value, family as Family]),
  ),
);

/** The subject family of a type. @throws RangeError when no message has it */
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

/** When an event happened, in milliseconds since the epoch, see `eventTimeMs`; for one that cannot be read: when it was stored. */
export function timeOf({ event, storedAt, originallyStoredAt = storedAt }: StoredEvent): number {
  return event.type === 'unreadable' ? originallyStoredAt : eventTimeMs(event.time, originallyStoredAt);
}
