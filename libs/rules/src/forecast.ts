/** Whether Kronos waits for an imbalance to pass, by the savings and losses of former waits. */
import { DAY_MS } from '@kronos/contracts';

/** An open wait for an imbalance to pass. */
type Wait = {
  /** Times of snapshots, ms since the epoch. */
  readonly sinceMs: number;
  /** The wait ends at this time, also when the forecast still expects the imbalance to pass. */
  readonly untilMs: number;
  /** Time above a threshold, in ms, that the former days expected of the plan that was not made. */
  readonly plannedMs: number;
};

/** The waits of an aggregate, folded from the log. */
export type Waits = {
  readonly open: Wait | null;
  /**
   * The savings of the waits that ended on a day, less their losses: ms above a threshold. Oldest first, the last {@link DAYS_KEPT} days.
   * `day`: days since the epoch.
   */
  readonly days: readonly { readonly day: number; readonly savedMs: number }[];
};

export const noWaits: Waits = { open: null, days: [] };

/** The account covers this number of days: load changes, so older waits say nothing about it. */
const DAYS_KEPT = 7;
/** The longest wait, and the most that the waits of the last days may lose beyond their savings. */
const MOST_WAIT_MS = 600_000;
/** A shorter wait does not begin: the forecast has steps of this length. */
const LEAST_WAIT_MS = 300_000;

/** The verdict of a decision on an imbalance. */
export type Judged = {
  /** The time of the snapshot, ms since the epoch. */
  readonly atMs: number;
  /** The wait of the decision, see {@link Wait}; null: it does not wait. */
  readonly waits: Pick<Wait, 'untilMs' | 'plannedMs'> | null;
  /** Whether a policy is above its threshold; null: the cycle ended before it could matter. */
  readonly above: boolean | null;
};

/** The waits after one more decision. A wait ends when the imbalance has passed, or when a decision waits no longer. */
export function afterDecision(before: Waits, { atMs, waits, above }: Judged): Waits {
  const { open } = before;
  if (waits !== null) return open === null ? { ...before, open: { sinceMs: atMs, ...waits } } : before;
  if (open === null || above === null) return before;
  // A wrong wait loses all of its time: it delayed the plan by that time.
  const right = !above && atMs <= open.untilMs;
  const savedMs = (right ? open.plannedMs : 0) - (atMs - open.sinceMs);
  const day = Math.floor(atMs / DAY_MS);
  const today = before.days.find((one) => one.day === day)?.savedMs ?? 0;
  const kept = before.days.filter((one) => one.day !== day && isKept(one.day, atMs));
  return { open: null, days: [...kept, { day, savedMs: today + savedMs }] };
}

const isKept = (day: number, nowMs: number): boolean => Math.floor(nowMs / DAY_MS) - day < DAYS_KEPT;

/**
 * The latest end of a wait, ms since the epoch; at or before `nowMs`: no wait. A new wait ends early enough that the waits of the last days lose at
 * most {@link MOST_WAIT_MS} more than they saved, even if this wait is wrong.
 */
export function waitLimit({ open, days }: Waits, nowMs: number): number {
  if (open !== null) return open.untilMs;
  const savedMs = days.reduce((sum, one) => sum + (isKept(one.day, nowMs) ? one.savedMs : 0), 0);
  const leftMs = MOST_WAIT_MS + Math.min(0, savedMs);
  return leftMs < LEAST_WAIT_MS ? nowMs : nowMs + leftMs;
}
