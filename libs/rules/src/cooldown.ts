import { type EngineOptions, MAX_COOLDOWN_SECONDS, MAX_GROWN_COOLDOWN_SECONDS } from '@kronos/contracts';
import { approval, type ProposalFacts } from './approval.ts';

/** The facts that can have started the cooldown of an aggregate. */
export type CooldownFacts = {
  /** The newest release of a plan, or of a part of one. */
  readonly lastRelease: { readonly planId: string; readonly atMs: number } | null;
  /** The newest rejection or recorded expiry of a plan. */
  readonly lastRefusal: {
    readonly planId: string;
    readonly atMs: number;
    readonly how: 'rejected' | 'expired';
  } | null;
  /** The plan that waits for an answer, or has expired since the last decision. */
  readonly waiting: ProposalFacts | null;
};

export type Cooldown = {
  readonly cause: 'released' | 'rejected' | 'expired';
  readonly planId: string;
  readonly sinceMs: number;
  readonly untilMs: number;
};

/**
 * The aggregate cooldown: no plan for `cooldown` seconds after the last release, rejection or expiry of a plan. Of several
 * causes the newest counts, of equal ones the release.
 *
 * @returns null when none is in force
 */
export function aggregateCooldown(
  { lastRelease, lastRefusal, waiting }: CooldownFacts,
  nowMs: number,
  options: Pick<EngineOptions, 'cooldownSeconds'>,
): Cooldown | null {
  const starts: Omit<Cooldown, 'untilMs'>[] = [];
  if (lastRelease !== null) starts.push({ cause: 'released', planId: lastRelease.planId, sinceMs: lastRelease.atMs });
  if (lastRefusal !== null)
    starts.push({ cause: lastRefusal.how, planId: lastRefusal.planId, sinceMs: lastRefusal.atMs });
  if (waiting !== null) {
    const { open, expiresAtMs } = approval(waiting, nowMs);
    if (!open) starts.push({ cause: 'expired', planId: waiting.planId, sinceMs: expiresAtMs });
  }
  let newest: Omit<Cooldown, 'untilMs'> | null = null;
  for (const start of starts) if (newest === null || start.sinceMs > newest.sinceMs) newest = start;
  if (newest === null) return null;
  const untilMs = newest.sinceMs + options.cooldownSeconds * 1000;
  return nowMs < untilMs ? { ...newest, untilMs } : null;
}

/**
 * The releases of a VM in the day up to its last one.
 *
 * @param releasesMs when the VM was released, ms since the epoch, in any order
 */
function inRow(releasesMs: readonly number[]): number {
  const last = Math.max(...releasesMs);
  return releasesMs.filter((at) => at > last - MAX_GROWN_COOLDOWN_SECONDS * 1000).length;
}

/**
 * The number of a VM's recent moves: the releases of the day up to its last one; 0 when that is more than 7 days ago.
 *
 * @param releasesMs as for {@link instanceCooldown}
 */
export function recentMoves(releasesMs: readonly number[], nowMs: number): number {
  const isRecent = releasesMs.some((at) => at > nowMs - MAX_COOLDOWN_SECONDS * 1000);
  return isRecent ? inRow(releasesMs) : 0;
}

/**
 * The instance cooldown: a VM is not moved for `instance_cooldown` seconds after its last release, multiplied by
 * `adaptive_cooldown_factor` for each other release in the day before the last one. The growth stops at a day, and no
 * cooldown is longer than 7 days.
 *
 * @param releasesMs when the VM was released, ms since the epoch, in any order
 * @returns until when, ms since the epoch; null when none is in force
 */
export function instanceCooldown(
  releasesMs: readonly number[],
  nowMs: number,
  options: Pick<EngineOptions, 'instanceCooldownSeconds' | 'adaptiveCooldownFactor'>,
): number | null {
  if (releasesMs.length === 0) return null;
  const last = Math.max(...releasesMs);
  const plain = Math.min(options.instanceCooldownSeconds, MAX_COOLDOWN_SECONDS);
  const grown = plain * options.adaptiveCooldownFactor ** (inRow(releasesMs) - 1);
  const untilMs = last + Math.min(grown, Math.max(plain, MAX_GROWN_COOLDOWN_SECONDS)) * 1000;
  return nowMs < untilMs ? untilMs : null;
}
