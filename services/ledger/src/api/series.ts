import type { DecisionPoint } from '../memory/history.ts';
import type { ApiAnswer } from './schemas.ts';

/**
 * Decisions as arrays for a chart, at most about `points` of them: of each stretch the one with the highest combined
 * imbalance, and every one with a plan. Pure.
 */
export function imbalanceAnswer(decisions: readonly DecisionPoint[], points: number): ApiAnswer<'imbalance'> {
  const shown = thinned(decisions, points);
  const names = [...new Set(shown.flatMap(({ policies }) => policies.map(({ policy }) => policy)))];
  return {
    points: decisions.length,
    times: shown.map(({ time }) => time),
    snapshotIds: shown.map(({ snapshotId }) => snapshotId),
    sequences: shown.map(({ sequence }) => sequence),
    combined: shown.map(({ combined }) => inFourDecimals(combined)),
    steps: shown.map(({ steps }) => steps),
    release: shown.map(({ release }) => release),
    policies: names.map((name) => {
      const own = shown.map(({ policies }) => policies.find(({ policy }) => policy === name));
      return {
        policy: name,
        imbalance: own.map((policy) => inFourDecimals(policy?.imbalance ?? null)),
        threshold: own.map((policy) => policy?.threshold ?? null),
      };
    }),
  };
}

/** In four decimals. */
export const inFourDecimals = (value: number | null): number | null =>
  value === null ? null : Number(value.toFixed(4));

function thinned(decisions: readonly DecisionPoint[], points: number): DecisionPoint[] {
  if (decisions.length <= points) return [...decisions];
  const kept: DecisionPoint[] = [];
  for (let bucket = 0; bucket < points; bucket++) {
    const from = Math.floor((bucket * decisions.length) / points);
    const stretch = decisions.slice(from, Math.floor(((bucket + 1) * decisions.length) / points));
    const highest = stretch.reduce<DecisionPoint | null>(
      (best, one) => (best === null || (one.combined ?? -1) > (best.combined ?? -1) ? one : best),
      null,
    );
    kept.push(...stretch.filter((one) => one === highest || one.steps > 0));
  }
  return kept;
}
