import type { EngineOptions } from './engine.ts';
import { MAX_COOLDOWN_SECONDS, MAX_GROWN_COOLDOWN_SECONDS, MAX_QUARANTINE_SECONDS } from './limits.ts';

/**
 * How long a VM is left alone after its last release, in milliseconds: `instanceCooldownSeconds`, multiplied by
 * `adaptiveCooldownFactor` for each other release in the day before the last one. The growth stops at a day, and no
 * cooldown is longer than 7 days.
 *
 * @param timesMs its releases, ms since the epoch, in any order
 * @returns when it ends, ms since the epoch; null when it was never released
 */
export function instanceCooldownEndMs(
  timesMs: readonly number[],
  options: Pick<EngineOptions, 'instanceCooldownSeconds' | 'adaptiveCooldownFactor'>,
): number | null {
  if (timesMs.length === 0) return null;
  const last = Math.max(...timesMs);
  const earlier = timesMs.filter((at) => at > last - MAX_GROWN_COOLDOWN_SECONDS * 1000).length - 1;
  const plain = Math.min(options.instanceCooldownSeconds, MAX_COOLDOWN_SECONDS);
  const grown = plain * options.adaptiveCooldownFactor ** earlier;
  return last + Math.min(grown, Math.max(plain, MAX_GROWN_COOLDOWN_SECONDS)) * 1000;
}

/**
 * How long a failed move quarantines its VM, in seconds; -1: until an operator releases it. One that ends by itself lasts
 * at most 7 days.
 */
export const failureQuarantineSeconds = ({
  instanceQuarantineSeconds,
}: Pick<EngineOptions, 'instanceQuarantineSeconds'>): number =>
  Math.min(instanceQuarantineSeconds, MAX_QUARANTINE_SECONDS);
