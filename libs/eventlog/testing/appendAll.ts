import type { Message, StoredEvent } from '@kronos/contracts';
import type { EventLog } from '../src/wire/types.ts';

/** Appends on the way at once. */
const WINDOW = 512;

/** Appends messages, many at once. A server that answers stores them in their order. */
export async function appendAll(
  log: Pick<EventLog, 'append'>,
  messages: Iterable<Message> | AsyncIterable<Message>,
): Promise<void> {
  let window: Promise<unknown>[] = [];
  for await (const message of messages) {
    window.push(log.append(message));
    if (window.length < WINDOW) continue;
    await Promise.all(window);
    window = [];
  }
  await Promise.all(window);
}

/** Appends the events of a history as their writers would. An unreadable event has no message, so it is left out. */
export const appendEvents = (log: Pick<EventLog, 'append'>, events: Iterable<StoredEvent>): Promise<void> =>
  appendAll(
    log,
    [...events].flatMap(({ event }) => (event.type === 'unreadable' ? [] : [event])),
  );
