import type { StoredEvent } from '@kronos/contracts';
import { type HistoryEntry, historyEntry, type Ids, idsOf } from './describe.ts';
import { MAX_LIMIT } from './endpoints.ts';
import type { ApiInput, Costly } from './input.ts';
import { namesIn } from './names.ts';

/** Maximum number of events that one request reads from the log; the answer says where to continue. */
const MAX_READ = 5_000;

/** Events of the log: the recent ones from memory, older ones from the server. */
export type Reads = ReturnType<typeof eventReads>;

export function eventReads(input: ApiInput, reading: Costly) {
  const { history, log } = input;

  const about = (wanted: (ids: Ids) => boolean) => recent((stored) => wanted(idsOf(stored.event)));

  /** Recent events, oldest first. */
  function recent(wanted: (stored: StoredEvent) => boolean): HistoryEntry[] {
    const nameOf = namesIn(() => history.events());
    const found: HistoryEntry[] = [];
    for (const stored of history.events()) {
      if (wanted(stored)) found.push(historyEntry(stored, nameOf));
      if (found.length === MAX_LIMIT) break;
    }
    return found.reverse();
  }

  /** Whether everything since then is still in memory. */
  function inMemory(since: number | Date): boolean {
    const { oldest } = history;
    if (oldest === null) return false;
    return (
      oldest.sequence === 1 ||
      // An event before the oldest one may have the same stamp.
      (typeof since === 'number' ? oldest.sequence <= since : oldest.storedAt < since.getTime())
    );
  }

  /**
   * Events of the log from there on, at most `limit` of them and found among at most MAX_READ. `next` is the sequence to
   * go on from; null at the end of the log.
   *
   * @throws Busy
   */
  const fromLog = (since: number | Date, limit: number, wanted: (stored: StoredEvent) => boolean) =>
    reading(async () => {
      const events: HistoryEntry[] = [];
      const nameOf = namesIn(() => history.events());
      const from = typeof since === 'number' ? since : await firstSince(since);
      const last = input.state().sequence;
      const to = Math.min(last, from + MAX_READ - 1);
      let read = from - 1;
      for await (const stored of log.replay({ from, to })) {
        read = stored.sequence;
        if (wanted(stored)) events.push(historyEntry(stored, nameOf));
        if (events.length === limit) break;
      }
      return { events, next: read < last ? read + 1 : null };
    });

  /** Sequence of the first event that was stored at that time or later: halves the log until it is found. */
  async function firstSince(time: Date): Promise<number> {
    let before = 0;
    let end = input.state().sequence + 1;
    while (end - before > 1) {
      const middle = Math.floor((before + end) / 2);
      const stored = await eventAt(middle);
      if (stored !== null && stored.storedAt < time.getTime()) before = middle;
      else end = middle;
    }
    return end;
  }

  /** One event; null: the log has none with this sequence. */
  async function eventAt(sequence: number): Promise<StoredEvent | null> {
    if (sequence < 1 || sequence > input.state().sequence) return null;
    for await (const stored of log.replay({ from: sequence, to: sequence })) return stored;
    return null;
  }

  return { about, recent, inMemory, fromLog, eventAt };
}

/** Whether an event is at or after that sequence or time. */
export const isSince = (sequence: number, timeMs: number, since: number | Date): boolean =>
  typeof since === 'number' ? sequence >= since : timeMs >= since.getTime();
