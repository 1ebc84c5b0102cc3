/** The next act of an executor for a drain. Times are ms since the epoch. */
import type { DrainReasonCode } from '@kronos/facts';
import { pauseInForce } from './pause.ts';
export type DrainRuleFacts = {
  /** An operator asked for the end of the drain. */
  readonly undrainAsked: boolean;
  /** The service or the person that disabled the host; null: unknown. */
  readonly disabledBy: 'kronos' | 'others' | null;
  /** The claim in force, and the last attempt that failed since the last success. */
  readonly claim: { readonly act: 'disable' | 'enable'; readonly attempt: number; readonly atMs: number } | null;
  readonly failure: { readonly act: 'disable' | 'enable'; readonly attempt: number; readonly atMs: number } | null;
};

export type DrainAct =
  /** Append `host.claimed` and then change the service. */
  | { readonly do: 'claim'; readonly act: 'disable' | 'enable'; readonly attempt: number }
  /** Another executor may be at it, or the last attempt failed a moment ago. */
  | { readonly do: 'wait'; readonly untilMs: number }
  /** The host is disabled: look whether it is empty, and whether somebody enabled it. */
  | { readonly do: 'watch' }
  /** End the drain without an act: it was not Kronos that disabled the host. */
  | { readonly do: 'leave' };

/** A request is sent within this of the call that appends its claim, by the monotonic clock, or never. */
export const HOST_ACT_WINDOW_MS = 10_000;
/** After this time a claim can send nothing more, and Nova shows the effect of what it sent. */
export const HOST_CLAIM_MS = 60_000;
const FIRST_RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 600_000;

/** The wait after the given number of failed attempts. */
export const hostActRetryMs = (attempts: number): number =>
  Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts - 1, 10));

/** The next act for a drain: one claim at a time, and none while another one may still be acted on. */
export function nextDrainAct({ undrainAsked, disabledBy, claim, failure }: DrainRuleFacts, nowMs: number): DrainAct {
  if (claim !== null) {
    const untilMs = claim.atMs + HOST_CLAIM_MS;
    if (nowMs < untilMs) return { do: 'wait', untilMs };
    return { do: 'claim', act: claim.act, attempt: claim.attempt + 1 };
  }
  const act = disabledBy === null ? 'disable' : 'enable';
  if (disabledBy !== null && !undrainAsked) return { do: 'watch' };
  if (disabledBy === 'others') return { do: 'leave' };
  if (failure === null || failure.act !== act) return { do: 'claim', act, attempt: 1 };
  const untilMs = failure.atMs + hostActRetryMs(failure.attempt);
  return nowMs < untilMs ? { do: 'wait', untilMs } : { do: 'claim', act, attempt: failure.attempt + 1 };
}

/** Decisions in a row after which a drain that none of its VMs can leave counts as stuck: balancing may make room meanwhile. */
const STUCK_CYCLES = 3;

/** Whether the drain needs a person to continue. */
export const drainStuck = ({ state, cycles }: { readonly state: string; readonly cycles: number }): boolean =>
  state === 'stuck' && cycles >= STUCK_CYCLES;

/** A nova-compute service as Nova shows it. */
export type ServiceSeen = {
  readonly status: 'enabled' | 'disabled' | 'unknown';
  readonly forcedDown: boolean;
  readonly disabledReason: string | null;
};

export type ServiceVerdict =
  | { readonly kind: 'change' }
  /** Kronos has set it as wanted already. */
  | { readonly kind: 'done' }
  /** Somebody else already made the change. */
  | { readonly kind: 'doneByOthers' }
  /** Somebody disabled it or changed it since: it is not Kronos' to enable. */
  | { readonly kind: 'leave'; readonly code: DrainReasonCode; readonly text: string }
  | { readonly kind: 'unknown'; readonly text: string };

/**
 * The change that a claimed act makes to the service as it is now. Kronos enables a service only while it shows the reason with
 * which Kronos disabled it.
 *
 * @param seen null: Nova lists no such service
 * @param ownReason the reason with which Kronos disables, or disabled, the host
 * @param attempt a later attempt may find the effect of an earlier one
 */
export function judgeService(
  act: 'disable' | 'enable',
  seen: ServiceSeen | null,
  ownReason: string,
  attempt: number,
): ServiceVerdict {
  if (seen === null) return { kind: 'unknown', text: 'Nova lists no nova-compute service of this host' };
  if (seen.status === 'unknown') return { kind: 'unknown', text: 'Nova does not know whether the service is enabled' };
  const own = seen.status === 'disabled' && seen.disabledReason === ownReason;
  if (act === 'disable') {
    if (seen.status === 'enabled') return { kind: 'change' };
    return own ? { kind: 'done' } : { kind: 'doneByOthers' };
  }
  if (seen.status === 'enabled') return attempt > 1 ? { kind: 'done' } : { kind: 'doneByOthers' };
  if (!own) {
    const now =
      seen.disabledReason === null ? 'without a reason' : `with the reason ${JSON.stringify(seen.disabledReason)}`;
    return { kind: 'leave', code: 'changed', text: `it is disabled ${now}, which is not the one that Kronos gave` };
  }
  if (seen.forcedDown) return { kind: 'leave', code: 'forced-down', text: 'somebody forced its service down' };
  return { kind: 'change' };
}

/** The facts that may block the change of a nova-compute service. */
export type HostActFacts = {
  readonly aggregate: string;
  readonly unreadable: { readonly sequence: number } | null;
  readonly paused: {
    readonly here: { readonly by: string } | null;
    readonly everywhere: { readonly by: string } | null;
  };
  /** Null: no planner has written its options. */
  readonly configured: { readonly options: { readonly dryRun: boolean } } | null;
};

/**
 * Why a nova-compute service may not be changed; null: it may. During a pause or the planner's dry run Kronos still enables the hosts
 * that it has disabled.
 */
export function hostActBlocked(
  { aggregate, unreadable, paused, configured }: HostActFacts,
  act: 'disable' | 'enable',
  { executorDryRun }: { readonly executorDryRun: boolean },
): string | null {
  if (unreadable !== null) return `event ${unreadable.sequence} of the log cannot be read`;
  if (executorDryRun) return 'dry_run is on in the executor';
  if (act === 'enable') return null;
  const pause = pauseInForce({ paused });
  if (pause !== null) return `${aggregate} is paused by ${pause.by}`;
  if (configured === null) return `no planner has written its options for ${aggregate} yet`;
  return configured.options.dryRun ? `dry_run is on for ${aggregate}, so no VM would move` : null;
}
