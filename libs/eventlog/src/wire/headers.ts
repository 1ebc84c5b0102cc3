import type { Message } from '@kronos/contracts';
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import { type Context, context, propagation, ROOT_CONTEXT } from '@opentelemetry/api';

const UNSAFE = /[^!#$&-~]/gu;

/** A CloudEvents attribute as a header value: percent-encoded outside printable ASCII, and space, `"` and `%` too. */
export const headerValue = (text: string): string =>
  text.toWellFormed().replace(UNSAFE, (char) => {
    const bytes = new TextEncoder().encode(char);
    return Array.from(bytes, (b) => `%${b.toString(16).toUpperCase().padStart(2, '0')}`).join('');
  });

/** The CloudEvents attributes of a message (binary mode of the NATS binding, 1.0.3), without the `ce-`. */
export const cloudEvent = (message: Message): Record<string, string> => ({
  specversion: '1.0',
  id: message.id,
  source: `/kronos/${message.by.service}/${encodeURIComponent(message.by.instance.toWellFormed())}`,
  type: `kronos.${message.type}.v${message.version}`,
  time: message.time,
  subject: message.aggregate,
  datacontenttype: 'application/json',
  correlationid: message.correlationId,
  ...(message.causationId === null ? {} : { causationid: message.causationId }),
});

/** The headers of a message: `ce-*`, and the active trace context. `Nats-*` are of the publisher. */
export function headersOf(message: Message): MsgHdrs {
  const h = headers();
  for (const [name, value] of Object.entries(cloudEvent(message))) h.set(`ce-${name}`, headerValue(value));
  propagation.inject(context.active(), h, { set: (carrier, key, value) => carrier.set(key, value) });
  return h;
}

/** The headers of a message that anybody may have published; none where they cannot be decoded (a lone CR, for one). */
export function headersSafely(decode: () => MsgHdrs | undefined): MsgHdrs | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}

/** On an event that a restore published again: the server's timestamp of the log that was restored, ISO-8601. */
export const ORIGINAL_STAMP = 'Kronos-Stored-At';

/** The timestamp (ms since the epoch) that an event had on the log from which it was restored; null: it was not restored. */
export function originalStamp(h: MsgHdrs | undefined): number | null {
  const stamp = Date.parse(h?.get(ORIGINAL_STAMP) ?? '');
  return Number.isNaN(stamp) ? null : stamp;
}

/** `traceparent` of a message; null without one. Header names are case-sensitive, and an absent one reads as ''. */
export const traceparentOf = (h: MsgHdrs | undefined): string | null => h?.get('traceparent') || null;

/**
 * The trace context that a message carries, for `@opentelemetry/api`: a span of its processing links to it (or has it as
 * its parent). The root context without one.
 */
export const contextFrom = (traceparent: string | null): Context =>
  traceparent === null ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
