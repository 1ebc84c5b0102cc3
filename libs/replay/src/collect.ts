import type { Message } from '@kronos/contracts';
import type { Delivered } from '@kronos/eventlog';

/**
 * Takes what is wanted out of a stream of messages: ends with the last of `count`, or when the signal is aborted, and gives
 * what came until then.
 */
export async function collect<M>(
  messages: AsyncIterable<Delivered<Message>>,
  pick: (message: Message) => M | null,
  count: number,
  signal: AbortSignal,
): Promise<M[]> {
  const found: M[] = [];
  const source = messages[Symbol.asyncIterator]();
  const aborted = new Promise<null>((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener('abort', () => resolve(null), { once: true });
  });
  try {
    while (found.length < count) {
      const next = await Promise.race([source.next(), aborted]);
      if (next === null || next.done === true) break;
      if (next.value.problem !== undefined) continue;
      const wanted = pick(next.value.message);
      if (wanted !== null) found.push(wanted);
    }
    return found;
  } finally {
    // An iterator that waits for its next message ends only when that comes, or with the event log.
    void source.return?.();
  }
}
