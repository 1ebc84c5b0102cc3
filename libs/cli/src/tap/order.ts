/** Puts the messages of several streams in the order of time. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Message } from '@kronos/contracts';
import type { Delivered } from '@kronos/eventlog';

/** Messages that come in one go are put in order: the next one is awaited this long. */
const QUIET_MS = 100;

/** The most messages that are kept back to be ordered. */
const HELD = 10_000;

export async function* orderedByTime(
  messages: AsyncIterable<Delivered<Message>>,
  stop: AbortSignal | null,
): AsyncGenerator<Delivered<Message>, void, undefined> {
  const source = messages[Symbol.asyncIterator]();
  const stopped = new Promise<'stopped'>((resolve) =>
    stop?.addEventListener('abort', () => resolve('stopped'), { once: true }),
  );
  let held: Delivered<Message>[] = [];
  let next = source.next();
  for (;;) {
    const quiet = new AbortController();
    const came = await Promise.race([
      next,
      stopped,
      ...(held.length === 0 ? [] : [delay(QUIET_MS, 'quiet' as const, { signal: quiet.signal })]),
    ]).finally(() => quiet.abort());
    const over = came === 'stopped' || (came !== 'quiet' && came.done === true);
    if (came !== 'quiet' && came !== 'stopped' && came.done !== true) {
      held.push(came.value);
      next = source.next();
    }
    if (!over && came !== 'quiet' && held.length < HELD) continue;
    held.sort((a, b) => a.storedAt - b.storedAt);
    const ready = over || came === 'quiet' ? held.length : HELD / 2;
    yield* held.slice(0, ready);
    held = held.slice(ready);
    if (over) return;
  }
}
