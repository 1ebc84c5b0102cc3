import { type Actor, type StoredEvent, timeMs } from '@kronos/contracts';

/** A writer with a wrong clock is remembered for this time after its last event, unless a later event is right. */
const REMEMBERED_MS = 15 * 60_000;

type Skew = { readonly writer: string; readonly seconds: number; readonly atMs: number };

export type SkewWatch = {
  /** Compares an event's time with the server's stamp. Gives the writer's skew if it is too large and was not before. */
  see(stored: StoredEvent, nowMs: number): Skew | null;
  /** Writers whose latest event differs too much, the worst first. */
  skewed(nowMs: number): Skew[];
  /** The largest difference in seconds among the writers' latest events. */
  largest(nowMs: number): number;
};

/** The facts about a writer: its skew, and a late event that proves nothing yet. */
type Known = Skew & { readonly late: Late | null };
type Late = { readonly timeMs: number; readonly seconds: number };

/**
 * Watches the clocks of those who write events. An event's own time counts everywhere, so a wrong clock means wrong
 * cooldowns. Only events that the server took in within the last quarter of an hour say something about clocks now.
 *
 * An event that is stamped late may have waited for NATS with its time already set. Events that wait for the same thing
 * come in together, however far apart they were made; a clock that is slow delays each by the same. So a late event proves
 * a slow clock when one that was made at another time was as late.
 */
export function skewWatch(maxSeconds: number): SkewWatch {
  const latest = new Map<string, Known>();
  const forget = (nowMs: number) => {
    for (const [writer, skew] of latest) if (nowMs - skew.atMs > REMEMBERED_MS) latest.delete(writer);
  };
  return {
    see({ event, storedAt }, nowMs) {
      if (event.type === 'unreadable' || nowMs - storedAt > REMEMBERED_MS) return null;
      const writer = nameOf(event.by);
      const statedMs = timeMs(event.time);
      const measured = (statedMs - storedAt) / 1000;
      const known = latest.get(writer) ?? { seconds: 0, late: null };
      const before = known.seconds;
      const late = measured < -maxSeconds ? { timeMs: statedMs, seconds: measured } : null;
      const compared = late === null ? null : compareLate(late, known.late, maxSeconds);
      const seconds = late === null || compared === 'slow' || before < -maxSeconds ? measured : before;
      // The first of several that are late at once stays the one to compare with.
      latest.set(writer, {
        writer,
        seconds,
        atMs: storedAt,
        late: compared === 'together' ? (known.late ?? late) : late,
      });
      const isNew = Math.abs(seconds) > maxSeconds && Math.abs(before) <= maxSeconds;
      return isNew ? { writer, seconds, atMs: storedAt } : null;
    },
    skewed(nowMs) {
      forget(nowMs);
      return [...latest.values()]
        .filter((skew) => Math.abs(skew.seconds) > maxSeconds)
        .map(({ writer, seconds, atMs }) => ({ writer, seconds, atMs }))
        .sort((a, b) => Math.abs(b.seconds) - Math.abs(a.seconds));
    },
    largest(nowMs) {
      forget(nowMs);
      return [...latest.values()].reduce((most, { seconds }) => Math.max(most, Math.abs(seconds)), 0);
    },
  };
}

/** `slow`: made at another time than the one before it and as late. `together`: made at about the same time. */
function compareLate(late: Late, before: Late | null, maxSeconds: number): 'slow' | 'together' | 'other' {
  if (before === null) return 'other';
  if (late.timeMs - before.timeMs < maxSeconds * 1000) return 'together';
  return Math.abs(late.seconds - before.seconds) <= maxSeconds / 2 ? 'slow' : 'other';
}

const nameOf = (by: Actor): string => `${by.service} ${by.instance}`;
