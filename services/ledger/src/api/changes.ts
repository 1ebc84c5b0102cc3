import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '@kronos/clock';
import type { StoredEvent } from '@kronos/contracts';
import { beginEvents, type HttpServer } from '@kronos/telemetry';
import type { History } from '../history.ts';
import { BadRequest, reply, wholeNumber } from './answer.ts';
import { CHANGES } from './endpoints.ts';

/** Tells clients which events were folded, as they come. */
export type Changes = {
  /** To be called for each event, after the fold. */
  publish(stored: StoredEvent): void;
  /** Ends every stream: the clients connect again. */
  close(): void;
};

/** A stream without events says something so often, for proxies that cut idle connections. */
const IDLE_MS = 15_000;
/** Bytes that a client may leave unread before its stream is ended: it connects again and goes on from its last event. */
const UNREAD_BYTES = 256 * 1024;
/** A client that missed more events than this is told to read everything again. */
const MISSED_EVENTS = 1_000;
/** Milliseconds after which a client connects again. */
const RETRY_MS = 2_000;

export function addChanges(
  http: HttpServer,
  history: Pick<History, 'events' | 'oldest'>,
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

  const handle = async (request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> => {
    const since = lastSeen(request, url);
    if (since instanceof BadRequest) {
      await reply(response, () => Promise.reject(since));
      return;
    }
    beginEvents(response);
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    response.write(`retry: ${RETRY_MS}\n\n`);
    if (since !== null) response.write(missed(since));
    // Without data it is no event: it only tells the client where it stands.
    else response.write(`id: ${sequence()}\n\n`);
    streams.add(response);
    response.on('close', () => streams.delete(response));
  };

  /** What followed that event; a reset where not all of it is in memory, or where the log is another one. */
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

/** The last event that the client has; null: it has none. */
function lastSeen({ headers }: IncomingMessage, url: URL): number | null | BadRequest {
  const id = headers['last-event-id'];
  const query = typeof id === 'string' && id !== '' ? new URLSearchParams({ since: id }) : url.searchParams;
  try {
    return wholeNumber(query, 'since');
  } catch (error) {
    if (error instanceof BadRequest) return error;
    throw error;
  }
}
