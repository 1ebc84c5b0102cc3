import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '@kronos/clock';
import type { StoredEvent } from '@kronos/contracts';
import { beginEvents, type HttpServer } from '@kronos/telemetry';
import type { EventHistory } from '../memory/history.ts';
import { reply } from './answer.ts';
import { CHANGES } from './endpoints.ts';
import { numberParameter } from './query.ts';

/** Tells clients which events were folded, as they come. */
export type Changes = {
  /** To be called for each event, after the fold. */
  publish(stored: StoredEvent): void;
  /** Ends every stream: the clients connect again. */
  close(): void;
};

/** Milliseconds between comments on a stream without events: proxies cut idle connections. */
const IDLE_MS = 15_000;
/** Bytes that a client may leave unread. Beyond that its stream ends; it reconnects and continues after its last event. */
const UNREAD_BYTES = 256 * 1024;
/** A client that missed more events than this gets a reset and reads everything again. */
const MISSED_EVENTS = 1_000;
/** Milliseconds after which a client reconnects. */
const RETRY_MS = 2_000;

export function addChanges(
  http: HttpServer,
  history: Pick<EventHistory, 'events' | 'oldest'>,
  sequence: () => number,
  clock: Pick<Clock, 'every'>,
): Changes {
  let published = 0;
  const streams = new Set<ServerResponse>();
  const endIdle = clock.every(IDLE_MS, () => {
    for (const stream of streams) say(stream, ':\n\n');
  });

  function say(stream: ServerResponse, text: string): void {
    if (stream.writableLength > UNREAD_BYTES) stream.destroy();
    else stream.write(text);
  }

  const handle = (request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> =>
    reply(response, () => {
      open(response, request.method === 'HEAD', lastEventOf(request, url));
      return null;
    });

  /** @param since the last event that the client has; null: it has none */
  function open(response: ServerResponse, headersOnly: boolean, since: number | null): void {
    beginEvents(response);
    if (headersOnly) {
      response.end();
      return;
    }
    response.write(`retry: ${RETRY_MS}\n\n`);
    if (since !== null) response.write(missed(since));
    // Without data it is no event: it only tells the client where it stands.
    else response.write(`id: ${sequence()}\n\n`);
    streams.add(response);
    response.on('close', () => streams.delete(response));
  }

  /** The events after that one; a reset where not all of them are in memory, or where the log is another one. */
  function missed(since: number): string {
    const { oldest } = history;
    const now = Math.max(sequence(), published);
    if (since > now || now - since > MISSED_EVENTS || (since < now && (oldest === null || oldest.sequence > since + 1)))
      return `id: ${now}\nevent: reset\ndata: {"sequence":${now}}\n\n`;
    const texts: string[] = [];
    for (const stored of history.events()) {
      if (stored.sequence <= since) break;
      texts.push(change(stored));
    }
    return texts.reverse().join('');
  }

  http.route(CHANGES, handle, { stream: true });
  return {
    publish(stored) {
      published = stored.sequence;
      if (streams.size === 0) return;
      const text = change(stored);
      for (const stream of streams) say(stream, text);
    },
    close() {
      endIdle();
      for (const stream of streams) stream.end();
    },
  };
}

const change = ({ sequence, event: { aggregate, type } }: StoredEvent): string =>
  `id: ${sequence}\nevent: change\ndata: ${JSON.stringify({ sequence, aggregate, type })}\n\n`;

/** The last event that the client has; null: it has none. @throws ApiError */
function lastEventOf({ headers }: IncomingMessage, url: URL): number | null {
  const id = headers['last-event-id'];
  const query = typeof id === 'string' && id !== '' ? new URLSearchParams({ since: id }) : url.searchParams;
  return numberParameter(query, 'since');
}
