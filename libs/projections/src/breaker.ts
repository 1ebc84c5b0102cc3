import type { EngineOptions } from '@kronos/contracts';
import type { AggregateState } from './state.ts';

type BreakerOptions = Pick<EngineOptions, 'breakerFailures' | 'breakerWindowSeconds' | 'breakerDurationSeconds'>;

/**
 * Until when (ms since the epoch) a host is out as a destination, or null: `breakerFailures` failures that were its
 * fault within `breakerWindowSeconds` take it out for `breakerDurationSeconds` after the last of them.
 */
export function hostBroken(
  state: Pick<AggregateState, 'hostFailures'>,
  host: string,
  nowMs: number,
  options: BreakerOptions,
): number | null {
  const times = [...(state.hostFailures.get(host) ?? [])].sort((a, b) => a - b);
  for (let last = times.length - 1; last >= options.breakerFailures - 1; last--) {
    const to = times[last] ?? 0;
    const from = times[last - options.breakerFailures + 1] ?? 0;
    const untilMs = to + options.breakerDurationSeconds * 1000;
    if (untilMs <= nowMs) return null;
    if (to - from <= options.breakerWindowSeconds * 1000) return untilMs;
  }
  return null;
}

/** Every host that is out as a destination, with the end of it. */
export function brokenHosts(
  state: Pick<AggregateState, 'hostFailures'>,
  nowMs: number,
  options: BreakerOptions,
): { host: string; untilMs: number }[] {
  return [...state.hostFailures.keys()].sort().flatMap((host) => {
    const untilMs = hostBroken(state, host, nowMs, options);
    return untilMs === null ? [] : [{ host, untilMs }];
  });
}
