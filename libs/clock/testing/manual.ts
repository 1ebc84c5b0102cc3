import { type Clock, sleepWith } from '../src/index.ts';

/** A clock that stands still until the test moves it. Both readings start at `startMs` and go on together. */
export interface ManualClock extends Clock {
  /** Moves on by `ms`, and fires each timer that comes due on the way, at its own time. */
  advance(ms: number): void;
  /** Moves on to the next timer and fires all that are due then; false: there is none. */
  advanceToNext(): boolean;
}

export function manualClock(startMs: number): ManualClock {
  let nowMs = startMs;
  const timers = new Set<{ at: number; readonly act: () => void; readonly everyMs: number | null }>();
  const set = (ms: number, act: () => void, everyMs: number | null) => {
    const timer = { at: nowMs + Math.max(0, ms), act, everyMs };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  const after: Clock['after'] = (ms, act) => set(ms, act, null);
  return {
    read: () => ({ mono: nowMs, wall: nowMs }),
    now: () => nowMs,
    monotonic: () => nowMs,
    after,
    every: (ms, act) => set(ms, act, ms),
    soon(act) {
      const timer = setImmediate(act);
      return () => clearImmediate(timer);
    },
    sleep: sleepWith(after),
    advance(ms) {
      const end = nowMs + ms;
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
        if (next === undefined) break;
        nowMs = next.at;
        if (next.everyMs === null) timers.delete(next);
        else next.at += next.everyMs;
        next.act();
      }
      nowMs = end;
    },
    advanceToNext() {
      if (timers.size === 0) return false;
      this.advance(Math.min(...[...timers].map(({ at }) => at)) - nowMs);
      return true;
    },
  };
}
