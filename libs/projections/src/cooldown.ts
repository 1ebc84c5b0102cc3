import type { EngineOptions } from '@kronos/contracts';
import { type Cooldown, type CooldownFacts, aggregateCooldown as cooldown, instanceCooldown } from '@kronos/rules';
import type { AggregateState } from './state.ts';

type Facts = Pick<AggregateState, 'lastRelease' | 'lastRefusal' | 'waiting' | 'plans'>;

/** What can have started the cooldown of the aggregate. */
export function cooldownFacts({ lastRelease, lastRefusal, waiting, plans }: Facts): CooldownFacts {
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
export const aggregateCooldown = (
  state: Facts,
  nowMs: number,
  options: Pick<EngineOptions, 'cooldownSeconds'>,
): Cooldown | null => cooldown(cooldownFacts(state), nowMs, options);

/** Until when (ms since the epoch) a VM is not moved after its last release, or null. */
export const coolingDown = (
  state: Pick<AggregateState, 'vmReleases'>,
  serverId: string,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceCooldownSeconds' | 'adaptiveCooldownFactor'>,
): number | null => instanceCooldown(state.vmReleases.get(serverId) ?? [], nowMs, options);
