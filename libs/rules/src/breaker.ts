import type { EngineOptions } from '@kronos/contracts';

export type BreakerOptions = Pick<EngineOptions, 'breakerFailures' | 'breakerWindowSeconds' | 'breakerDurationSeconds'>;

/**
 * The host breaker: `breaker_failures` failures that were the host's fault within `breaker_window` seconds exclude it as a
 * destination for `breaker_duration` seconds after the last of them.
 *
 * @param failuresMs when the host was at fault, ms since the epoch, in any order
 * @returns until when, ms since the epoch; null when the host is not excluded
 */
export function hostBreaker(failuresMs: readonly number[], nowMs: number, options: BreakerOptions): number | null {
  const times = [...failuresMs].sort((a, b) => a - b);
  const { breakerFailures, breakerWindowSeconds, breakerDurationSeconds } = options;
  for (let last = times.length - 1; last >= breakerFailures - 1; last--) {
    const to = times[last];
    const from = times[last - breakerFailures + 1];
    if (to === undefined || from === undefined) return null;
    const untilMs = to + breakerDurationSeconds * 1000;
    if (untilMs <= nowMs) return null;
    if (to - from <= breakerWindowSeconds * 1000) return untilMs;
  }
  return null;
}
