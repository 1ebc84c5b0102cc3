/** The cooldowns of the aggregate and of VMs: releases and refusals of plans, and the end of the last move. */
import type { EngineOptions } from '@kronos/contracts';
import { aggregateCooldown, type Cooldown, type CooldownFacts, instanceCooldown } from '@kronos/rules';
import { appended, type StateDraft, type WritableFacts } from './draft.ts';
import { type KnownOf, timesOf } from './elsewhere.ts';
import {
  type AggregateState,
  FORGET_EARLIER_RELEASE_MS,
  FORGET_RELEASE_MS,
  type PlanFacts,
  RECENT_RELEASES,
  type StepFacts,
} from './state.ts';

type Starts = Pick<AggregateState, 'lastRelease' | 'lastRefusal' | 'waiting' | 'plans'>;

/** The events that can have started the cooldown of the aggregate. */
export function cooldownFacts({ lastRelease, lastRefusal, waiting, plans }: Starts): CooldownFacts {
  const plan = waiting === null ? undefined : plans.get(waiting);
  return {
    lastRelease,
    lastRefusal,
    waiting:
      plan === undefined
        ? null
        : { planId: plan.id, proposedAtMs: plan.decidedAtMs, approvalTtlSeconds: plan.approvalTtlSeconds },
  };
}

/** The cooldown of the aggregate at that time, or null. */
export const cooldownOf = (
  state: Starts,
  nowMs: number,
  options: Pick<EngineOptions, 'cooldownSeconds'>,
): Cooldown | null => aggregateCooldown(cooldownFacts(state), nowMs, options);

/** Until when (ms since the epoch) a VM is not moved after its last release, or null. */
export const coolingDown = (
  state: KnownOf<'vmReleases'>,
  serverId: string,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceCooldownSeconds' | 'adaptiveCooldownFactor'>,
): number | null => instanceCooldown(timesOf(state, 'vmReleases', serverId), nowMs, options);

/** A plan, or a part of one, is released: both cooldowns begin, and no end of a move takes them back. */
export function releaseBegan(draft: StateDraft, f: WritableFacts, plan: PlanFacts, steps: readonly StepFacts[]): void {
  const { atMs } = draft;
  for (const { serverId } of steps)
    f.vmReleases = draft.put(f.vmReleases, serverId, appended(f.vmReleases.get(serverId), atMs, RECENT_RELEASES));
  // Moves between cells are outside the aggregate's cooldown.
  if (plan.cells === undefined) f.lastRelease = { planId: plan.id, atMs };
}

export function forgetReleases(draft: StateDraft, f: WritableFacts, snapshotMs: number): void {
  f.vmReleases = draft.drop(f.vmReleases, (times) => Math.max(...times) < snapshotMs - FORGET_RELEASE_MS);
  for (const [serverId, times] of f.vmReleases) {
    const limitMs = Math.max(...times) - FORGET_EARLIER_RELEASE_MS;
    const kept = times.filter((at) => at >= limitMs);
    if (kept.length < times.length) f.vmReleases = draft.put(f.vmReleases, serverId, kept);
  }
}
