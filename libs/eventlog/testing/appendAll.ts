import type { Message } from '@kronos/contracts';
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
