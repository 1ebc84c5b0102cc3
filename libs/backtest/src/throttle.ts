import type { Clock } from '@kronos/clock';

/** Waits until the next request may be sent. Ends with the signal's reason when it aborts. */
export type Throttle = (signal: AbortSignal) => Promise<void>;

/** At most this many requests per second, evenly. */
export function throttleOf(clock: Clock, perSecond: number): Throttle {
  const gapMs = 1000 / perSecond;
  let nextMs = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    const nowMs = clock.monotonic();
    const atMs = Math.max(nowMs, nextMs);
    nextMs = atMs + gapMs;
    if (atMs > nowMs) await clock.sleep(atMs - nowMs, signal);
    signal.throwIfAborted();
  };
}
