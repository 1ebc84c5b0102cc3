import { iso, logFamilies, parseSubject, streamNames } from '@kronos/contracts';
import { headers as noHeaders } from '@nats-io/transport-node';
import { MSG_ID } from '../log/append.ts';
import { type ReadScope, rawMessages } from '../log/iterate.ts';
import { streamInfo } from '../log/view.ts';
import { RestoreRefused } from '../wire/errors.ts';
import { ORIGINAL_STAMP } from '../wire/headers.ts';
import type { Link } from '../wire/link.ts';
import type { RawEvent } from '../wire/types.ts';
import { Window } from './window.ts';

const LOG = streamNames.log;
/** Whether a header holds an expectation of the publisher. The server stores these headers with the message. */
const isExpectation = (header: string): boolean => header.toLowerCase().startsWith('nats-expected-');

/** The server's timestamps, against which readers compare the times of events. A restored event keeps them. */
function stampsOf(): (event: RawEvent) => number {
  // The copy of a restored log begins with events that carry an earlier stamp; later ones cannot claim one.
  let restored = true;
  return ({ headers, storedAt }) => {
    const stated = restored ? Date.parse(headers[ORIGINAL_STAMP] ?? '') : Number.NaN;
    if (!Number.isNaN(stated)) return stated;
    restored = false;
    return storedAt;
  };
}

/** KRONOS_LOG as it is stored, headers and bodies untouched except for what publishers expected. */
export async function* copy(
  link: Link,
  scope: ReadScope,
  range: { readonly from?: number; readonly to?: number } = {},
): AsyncGenerator<RawEvent, void, undefined> {
  const from = range.from ?? 1;
  const to = range.to ?? (await streamInfo(link, LOG)).state.last_seq;
  if (from > to) return;
  const options = { stream: LOG, start: { at: 'sequence', sequence: from }, contiguous: true, to } as const;
  for await (const raw of rawMessages(link, scope, options)) {
    const headers: Record<string, string> = {};
    const stored = raw.headers();
    for (const key of stored?.keys() ?? []) if (!isExpectation(key)) headers[key] = stored?.get(key) ?? '';
    yield { sequence: raw.sequence, storedAt: raw.storedAt, subject: raw.subject, headers, data: raw.data };
  }
}

/**
 * Publishes a copy of KRONOS_LOG again, so that each event has the sequence that it had. Goes on where an interrupted
 * restore stopped. The server's timestamps are new ones; each event carries the one that it had in a header.
 *
 * @throws RestoreRefused when the log holds something else, or the copy does not begin where the log ends
 */
export async function restoreCopy(
  link: Link,
  events: Iterable<RawEvent> | AsyncIterable<RawEvent>,
): Promise<{ restored: number; skipped: number }> {
  const last = (await streamInfo(link, LOG)).state.last_seq;
  const window = new Window(link, LOG);
  const ids = new Set<string>();
  const stampOf = stampsOf();
  let next = 1;
  let skipped = 0;
  for await (const event of events) {
    if (event.sequence !== next) throw new RestoreRefused(`event ${next} is missing in the copy`);
    next++;
    const stamp = stampOf(event);
    const id = event.headers[MSG_ID] ?? '';
    // A second message with the same id would be taken for a retry and not be stored: then all that follow would move up.
    const own = id === '' || ids.has(id) ? `${id}#${event.sequence}` : id;
    ids.add(id);
    if (event.sequence <= last) {
      if (event.sequence === last) await compare(link, event);
      skipped++;
      continue;
    }
    const family = parseSubject(event.subject)?.family;
    if (!logFamilies.some((one) => one === family))
      throw new RestoreRefused(`event ${event.sequence} is on ${event.subject}, which ${LOG} does not hold`);
    const headers = noHeaders();
    for (const [key, value] of Object.entries(event.headers)) if (!isExpectation(key)) headers.set(key, value);
    headers.set(MSG_ID, own);
    headers.set(ORIGINAL_STAMP, iso(stamp));
    await window.push({ id: own, subject: event.subject, body: event.data, headers });
  }
  await window.flush();
  const now = (await streamInfo(link, LOG)).state.last_seq;
  if (now !== Math.max(last, next - 1) || skipped < last)
    throw new RestoreRefused(
      `${LOG} ends at event ${now}, and the copy at ${next - 1}: the log holds more events, or another process writes to it. Stop every service and restore onto an empty server.`,
    );
  return { restored: window.appended, skipped };
}

/** The log's last event must be the copy's of the same sequence. */
async function compare(link: Link, event: RawEvent): Promise<void> {
  const stored = await link.insist(() => link.jsm.streams.getMessage(LOG, { seq: event.sequence }), LOG);
  const same =
    stored !== null && stored.subject === event.subject && Buffer.compare(Buffer.from(stored.data), event.data) === 0;
  if (!same)
    throw new RestoreRefused(
      `event ${event.sequence} on ${LOG} differs from the copy: it is another log. Restore onto an empty server.`,
    );
}
