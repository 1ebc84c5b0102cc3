/** Whether an imbalance is waited for, by what former waits saved and lost. */

/** An imbalance that is being waited for. */
type Wait = {
  /** Times of snapshots, ms since the epoch. */
  readonly sinceMs: number;
  /** The wait ends here, whatever the forecast says then. */
  readonly untilMs: number;
  /** Time above a threshold, in ms, that the former days expected of the plan that was not made. */
  readonly plannedMs: number;
};

/** What the log says of waits. */
export type Waits = {
  readonly open: Wait | null;
  /**
   * What the waits that ended on a day saved, less what they lost: ms above a threshold. Oldest first, the last {@link DAYS_KEPT} days.
   * `day`: days since the epoch.
   */
  readonly days: readonly { readonly day: number; readonly savedMs: number }[];
};

export const noWaits: Waits = { open: null, days: [] };

const DAY_MS = 86_400_000;
/** A wait is forgotten after so many days: load changes. */
const DAYS_KEPT = 7;
/** The longest wait, and what the waits of the last days may lose more than they saved. */
const MOST_WAIT_MS = 600_000;
/** A shorter wait does not begin: what has to pass needs a step of the forecast. */
const LEAST_WAIT_MS = 300_000;

/** What a decision says of an imbalance. */
export type Judged = {
  /** The time of the snapshot, ms since the epoch. */
  readonly atMs: number;
  /** The decision waits, as {@link Wait} says; null: it does not. */
  readonly waits: Pick<Wait, 'untilMs' | 'plannedMs'> | null;
  /** Whether a policy is above its threshold; null: the cycle ended before it could matter. */
  readonly above: boolean | null;
};

/** The waits after one more decision. A wait ends when the imbalance has passed, or when a decision waits no longer. */
export function afterDecision(before: Waits, { atMs, waits, above }: Judged): Waits {
  const { open } = before;
  if (waits !== null) return open === null ? { ...before, open: { sinceMs: atMs, ...waits } } : before;
  if (open === null || above === null) return before;
  // All of a wait is lost that came out wrong: the plan comes later by as much.
  const right = !above && atMs <= open.untilMs;
  const savedMs = (right ? open.plannedMs : 0) - (atMs - open.sinceMs);
  const day = Math.floor(atMs / DAY_MS);
  const today = before.days.find((one) => one.day === day)?.savedMs ?? 0;
  const kept = before.days.filter((one) => one.day !== day && isKept(one.day, atMs));
  return { open: null, days: [...kept, { day, savedMs: today + savedMs }] };
}

const isKept = (day: number, nowMs: number): boolean => Math.floor(nowMs / DAY_MS) - day < DAYS_KEPT;

/**
 * Until when at most an imbalance is waited for, ms since the epoch; not after `nowMs`: not at all. A wait that begins ends in time for the waits of
 * the last days to lose at most {@link MOST_WAIT_MS} more than they saved, even if it comes out wrong.
 */
export function waitLimit({ open, days }: Waits, nowMs: number): number {
  if (open !== null) return open.untilMs;
  const savedMs = days.reduce((sum, one) => sum + (isKept(one.day, nowMs) ? one.savedMs : 0), 0);
  const leftMs = MOST_WAIT_MS + Math.min(0, savedMs);
  return leftMs < LEAST_WAIT_MS ? nowMs : nowMs + leftMs;
}
