import { type BreakerOptions, hostBreaker } from '@kronos/rules';
import type { AggregateState } from './state.ts';

/** Until when (ms since the epoch) a host is excluded as a destination after failures, or null. */
export const hostBroken = (
  state: Pick<AggregateState, 'hostFailures'>,
  host: string,
  nowMs: number,
  options: BreakerOptions,
): number | null => hostBreaker(state.hostFailures.get(host) ?? [], nowMs, options);

/** Every host that is excluded as a destination, and until when. */
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
