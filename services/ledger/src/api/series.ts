import { iso, isoOrNull } from '@kronos/contracts';
import type { PlanRun } from '@kronos/projections';
import type { DecisionPoint } from '../memory/history.ts';
import type { ApiAnswer } from './schemas.ts';

/**
 * Decisions as arrays for a chart, at most about `points` of them: of each stretch the one with the highest combined
 * imbalance, and every one with a plan. Pure.
 *
 * @param near snapshot of a decision that is kept with its neighbours, however many there are; null: none
 */
export function imbalanceAnswer(
  decisions: readonly DecisionPoint[],
  runs: readonly PlanRun[],
  { points, near }: { readonly points: number; readonly near: string | null },
): ApiAnswer<'imbalance'> {
  const shown = thinned(decisions, points, near);
  const reasons = [...new Set(shown.map(({ reason }) => reason.text))];
  const indexes = new Map(reasons.map((text, i) => [text, i]));
  const names = [...new Set(shown.flatMap(({ policies }) => policies.map(({ policy }) => policy)))];
  return {
    points: decisions.length,
    times: shown.map(({ time }) => time),
    snapshotIds: shown.map(({ snapshotId }) => snapshotId),
    sequences: shown.map(({ sequence }) => sequence),
    combined: shown.map(({ combined }) => inFourDecimals(combined)),
    steps: shown.map(({ steps }) => steps),
    release: shown.map(({ release }) => release),
    reasons,
    reason: shown.map(({ reason }) => indexes.get(reason.text) ?? 0),
    policies: names.map((name) => {
      const own = shown.map(({ policies }) => policies.find(({ policy }) => policy === name));
      return {
        policy: name,
        imbalance: own.map((policy) => inFourDecimals(policy?.imbalance ?? null)),
        threshold: own.map((policy) => policy?.threshold ?? null),
      };
    }),
    runs: runs.slice(-MOST_RUNS).map(runLine),
  };
}

/** Plans of one answer. */
const MOST_RUNS = 100;

const runLine = (run: PlanRun): ApiAnswer<'imbalance'>['runs'][number] => {
  const { planId, sequence, release, decidedMs, releasedMs, steps, started, completed, failed, skipped } = run;
  return {
    planId,
    sequence,
    release,
    decidedAt: isoOrNull(decidedMs),
    releasedAt: isoOrNull(releasedMs),
    steps,
    started: started.map(iso),
    completed: completed.map(iso),
    failed: failed.map(iso),
    skipped: skipped.map(iso),
  };
};

/** In four decimals. */
export const inFourDecimals = (value: number | null): number | null =>
  value === null ? null : Number(value.toFixed(4));

/** Decisions before and after the one that is looked at that are not thinned out. */
const NEIGHBOURS = 120;

function thinned(decisions: readonly DecisionPoint[], points: number, near: string | null): DecisionPoint[] {
  if (decisions.length <= points) return [...decisions];
  const kept: DecisionPoint[] = [];
  const at = near === null ? -1 : decisions.findLastIndex(({ snapshotId }) => snapshotId === near);
  const whole = new Set(at < 0 ? [] : decisions.slice(Math.max(0, at - NEIGHBOURS), at + NEIGHBOURS + 1));
  for (let bucket = 0; bucket < points; bucket++) {
    const from = Math.floor((bucket * decisions.length) / points);
    const stretch = decisions.slice(from, Math.floor(((bucket + 1) * decisions.length) / points));
    const highest = stretch.reduce<DecisionPoint | null>(
      (best, one) => (best === null || (one.combined ?? -1) > (best.combined ?? -1) ? one : best),
      null,
    );
    kept.push(...stretch.filter((one) => one === highest || one.steps > 0 || whole.has(one)));
  }
  return kept;
}
