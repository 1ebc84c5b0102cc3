/**
 * Reads one notification of Nova as oslo.messaging puts it on RabbitMQ: `{"oslo.version", "oslo.message"}`, where `oslo.message` is
 * JSON in a string. The context of the request is in it too, with its token: nothing of a body may reach a log or an error text.
 */
import { messageLimits, parseJson } from '@kronos/contracts';
import { z } from 'zod';

/** A versioned notification. */
export interface Notification {
  /** oslo.messaging's `message_id`. */
  readonly id: string;
  /** `instance.live_migration_post_dest.end` */
  readonly event: string;
  /** The host whose nova-compute sent it itself; null: an API, a conductor or a scheduler did, or it cannot be told. */
  readonly compute: string | null;
  /** The host of the process that sent it. */
  readonly publisherHost: string;
  /** The server that it is about; null: it is about something else, or it states that nothing changed. */
  readonly server: NotifiedServer | null;
}

interface NotifiedServer {
  readonly id: string;
  /** Nova's service host; null: it is on none. */
  readonly host: string | null;
  /** The server is deleted, which is final. */
  readonly deleted: boolean;
}

/** `unversioned`: Nova's old form, which does not say enough. `bad`: it cannot be read. */
export type ParsedNotification =
  | { readonly kind: 'versioned'; readonly notification: Notification }
  | { readonly kind: 'unversioned' }
  | { readonly kind: 'bad'; readonly problem: string };

/** Nova's columns hold at most 255 characters. */
const name = z
  .string()
  .min(1)
  .max(255)
  .refine((text) => text.isWellFormed(), 'is not well-formed Unicode');

const outerSchema = z.object({ 'oslo.message': z.string() });
const innerSchema = z.object({
  message_id: z.string().min(1).max(100),
  publisher_id: name,
  event_type: name,
  payload: z.unknown(),
});
const versionedSchema = z.object({ 'nova_object.data': z.record(z.string(), z.unknown()) });
const serverSchema = z.object({ uuid: z.uuid(), host: name.nullable() });

const COMPUTE = 'nova-compute';
/** Sent by a clock, for billing: nothing changed. */
const NOTHING_CHANGED: ReadonlySet<string> = new Set(['instance.exists']);
const DELETED = 'instance.delete.end';
/**
 * Objects that a nova-compute saves are saved by a conductor, which sends these in its place: with the name of the compute's
 * binary and the conductor's host. So they do not tell that this compute sends versioned notifications.
 */
const SENT_BY_CONDUCTOR: ReadonlySet<string> = new Set(['instance.update']);

/** Parses one message, bounded in bytes, depth and values. Never throws; a problem never quotes the body. */
export function parseNotification(body: Uint8Array): ParsedNotification {
  const message = messageIn(body);
  if ('kind' in message) return message;
  const { message_id: id, publisher_id: publisher, event_type: event, payload } = message;
  if (typeof payload !== 'object' || payload === null || !('nova_object.data' in payload))
    return { kind: 'unversioned' };
  const versioned = versionedSchema.safeParse(payload);
  if (!versioned.success) return bad(`payload of ${shown(event)}: ${fieldsOf(versioned.error)}`);
  const [, binary, publisherHost] = /^([^:]+):(.+)$/s.exec(publisher) ?? [];
  if (binary === undefined || publisherHost === undefined) return bad('publisher_id is not of the form SERVICE:HOST');
  const server = serverOf(event, versioned.data['nova_object.data']);
  if (server !== null && 'kind' in server) return server;
  const own = binary === COMPUTE && event.startsWith('instance.') && !SENT_BY_CONDUCTOR.has(event);
  return {
    kind: 'versioned',
    notification: { id, event, compute: own ? publisherHost : null, publisherHost, server },
  };
}

/** The message in its envelope. */
function messageIn(body: Uint8Array): z.infer<typeof innerSchema> | ReturnType<typeof bad> {
  const outer = parseJson(body);
  if (!outer.ok) return bad(outer.problem);
  const envelope = outerSchema.safeParse(outer.value);
  if (!envelope.success) return bad('it is not an envelope of oslo.messaging: oslo.message is missing or no text');
  const inner = parseJson(new TextEncoder().encode(envelope.data['oslo.message']), messageLimits);
  if (!inner.ok) return bad(`oslo.message: ${inner.problem}`);
  const message = innerSchema.safeParse(inner.value);
  return message.success ? message.data : bad(`oslo.message: ${fieldsOf(message.error)}`);
}

/** The server that an event is about; null: it is about something else, or nothing changed. */
function serverOf(event: string, data: unknown): NotifiedServer | ReturnType<typeof bad> | null {
  if (!event.startsWith('instance.') || NOTHING_CHANGED.has(event)) return null;
  const read = serverSchema.safeParse(data);
  if (!read.success) return bad(`payload of ${shown(event)}: ${fieldsOf(read.error)}`);
  return { id: read.data.uuid, host: read.data.host, deleted: event === DELETED };
}

const bad = (problem: string): Extract<ParsedNotification, { readonly kind: 'bad' }> => ({ kind: 'bad', problem });

/** Names of fields and of what was expected: neither is taken from the body. */
const fieldsOf = (error: z.ZodError): string =>
  [...new Set(error.issues.map((issue) => `${issue.path.join('.') || 'it'} cannot be read (${issue.code})`))].join(
    '; ',
  );

const shown = (event: string): string => (/^[\w.]{1,100}$/.test(event) ? event : 'an unknown event');
