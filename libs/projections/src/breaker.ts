/** The host breaker: the failures that hosts were at fault for. */
import { ALL, type LogEventOf } from '@kronos/contracts';
import { type BreakerOptions, hostBreaker } from '@kronos/rules';
import { firstTime } from './controls.ts';
import { appended, type StateDraft, type WritableFacts } from './draft.ts';
import type { Effects } from './effects.ts';
import { type KnownOf, timesOf } from './elsewhere.ts';
import { forgetRefusalsOf } from './refusals.ts';
import { FORGET_HOST_FAILURE_MS, RECENT_HOST_FAILURES } from './state.ts';

/** Until when (ms since the epoch) a host is excluded as a destination after failures, or null. */
export const hostBroken = (
  state: KnownOf<'hostFailures'>,
  host: string,
  nowMs: number,
  options: BreakerOptions,
): number | null => hostBreaker(timesOf(state, 'hostFailures', host), nowMs, options);

/** Every host that is excluded as a destination, and until when. */
export function brokenHosts(
  state: KnownOf<'hostFailures'>,
  nowMs: number,
  options: BreakerOptions,
): { host: string; untilMs: number }[] {
  return [...state.hostFailures.keys()].sort().flatMap((host) => {
    const untilMs = hostBroken(state, host, nowMs, options);
    return untilMs === null ? [] : [{ host, untilMs }];
  });
}

/** An attempt failed, and the host was at fault. */
export function hostFailed(draft: StateDraft, f: WritableFacts, host: string): void {
  const { atMs } = draft;
  const times = appended(f.hostFailures.get(host), atMs, RECENT_HOST_FAILURES);
  f.hostFailures = draft.put(f.hostFailures, host, times);
}

/** A person repaired a host: its breaker closes, and what Nova refused there may be tried again. It reaches the host wherever failures of it are known. */
function hostReleased(draft: StateDraft, event: LogEventOf<'host.released'>): void {
  if (!firstTime(draft, draft.controls(event.aggregate), event.id)) return;
  const { host } = event.data;
  for (const aggregate of draft.addressed(ALL)) {
    const f = draft.facts(aggregate);
    forgetRefusalsOf(draft, f, host);
    f.hostFailures = draft.remove(f.hostFailures, [host]);
  }
}

export function forgetHostFailures(draft: StateDraft, f: WritableFacts, snapshotMs: number): void {
  f.hostFailures = draft.drop(f.hostFailures, (times) => Math.max(...times) < snapshotMs - FORGET_HOST_FAILURE_MS);
}

export const breakerEffects = {
  'host.released': hostReleased,
} satisfies Partial<Effects>;
