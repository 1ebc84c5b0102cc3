import type { Actor, StoredEvent } from '@kronos/contracts';

/** A writer whose clock is wrong is remembered so long after its last event, unless a later one is right. */
const REMEMBERED_MS = 15 * 60_000;

export type Skew = { readonly writer: string; readonly seconds: number; readonly atMs: number };

export type SkewWatch = {
  /** Compares an event's time with the server's stamp. Gives the writer's skew if it is too large and was not before. */
  see(stored: StoredEvent, nowMs: number): Skew | null;
  /** Writers whose latest event differs too much, the worst first. */
  skewed(nowMs: number): Skew[];
  /** The largest difference in seconds among the writers' latest events. */
  largest(nowMs: number): number;
};

/**
 * Watches the clocks of those who write events. An event's own time counts everywhere, so a wrong clock means wrong
 * cooldowns. Only events that the server took in within the last quarter of an hour say something about clocks now.
 */
export function skewWatch(maxSeconds: number): SkewWatch {
  const latest = new Map<string, Skew>();
  const forget = (nowMs: number) => {
    for (const [writer, skew] of latest) if (nowMs - skew.atMs > REMEMBERED_MS) latest.delete(writer);
  };
  return {
    see({ event, storedAt }, nowMs) {
      if (event.type === 'unreadable' || nowMs - storedAt > REMEMBERED_MS) return null;
      const writer = nameOf(event.by);
      const seconds = (Date.parse(event.time) - storedAt) / 1000;
      const wasWrong = Math.abs(latest.get(writer)?.seconds ?? 0) > maxSeconds;
      const skew = { writer, seconds, atMs: storedAt };
      latest.set(writer, skew);
      return Math.abs(seconds) > maxSeconds && !wasWrong ? skew : null;
    },
    skewed(nowMs) {
      forget(nowMs);
      return [...latest.values()]
        .filter((skew) => Math.abs(skew.seconds) > maxSeconds)
        .sort((a, b) => Math.abs(b.seconds) - Math.abs(a.seconds));
    },
    largest(nowMs) {
      forget(nowMs);
      return [...latest.values()].reduce((most, { seconds }) => Math.max(most, Math.abs(seconds)), 0);
    },
  };
}

const nameOf = (by: Actor): string => `${by.service} ${by.instance}`;
