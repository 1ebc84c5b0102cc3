import { type EngineOptions, instanceCooldownEndMs } from '@kronos/contracts';
import { waitingPlan } from './approvals.ts';
import type { AggregateState } from './state.ts';

export type Cooldown = {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly cause: 'released' | 'rejected' | 'expired';
  readonly planId: string;
};

/** The cooldown of the aggregate at that time, or null: since the last release, rejection or expiry of a plan. */
export function aggregateCooldown(
  state: Pick<AggregateState, 'lastRelease' | 'lastRefusal' | 'waiting' | 'plans'>,
  nowMs: number,
  options: Pick<EngineOptions, 'cooldownSeconds'>,
): Cooldown | null {
  const lapsed = waitingPlan(state, nowMs);
  const starts: Omit<Cooldown, 'untilMs'>[] = [];
  if (state.lastRelease !== null)
    starts.push({ sinceMs: state.lastRelease.atMs, cause: 'released', planId: state.lastRelease.planId });
  if (state.lastRefusal !== null)
    starts.push({ sinceMs: state.lastRefusal.atMs, cause: state.lastRefusal.how, planId: state.lastRefusal.planId });
  if (lapsed !== null && !lapsed.open)
    starts.push({ sinceMs: lapsed.expiresAtMs, cause: 'expired', planId: lapsed.plan.id });
  let longest: Cooldown | null = null;
  for (const start of starts) {
    const untilMs = start.sinceMs + options.cooldownSeconds * 1000;
    if (untilMs > nowMs && (longest === null || untilMs > longest.untilMs)) longest = { ...start, untilMs };
  }
  return longest;
}

/** Until when (ms since the epoch) a VM is left alone after its last release, or null. See `instanceCooldownEndMs`. */
export function coolingDown(
  state: Pick<AggregateState, 'vmReleases'>,
  serverId: string,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceCooldownSeconds' | 'adaptiveCooldownFactor'>,
): number | null {
  const untilMs = instanceCooldownEndMs(state.vmReleases.get(serverId) ?? [], options);
  return untilMs !== null && untilMs > nowMs ? untilMs : null;
}
