import type { EngineOptions, Step } from '@kronos/contracts';
import type { Cluster } from './cluster.ts';
import type { Draft, Move } from './draft.ts';
import { EPSILON, Extremes, imbalances, valuesAfter } from './measure.ts';
import { arrange } from './order.ts';
import { type Drain, staysBelow } from './passes/pack.ts';
import { bound } from './passes/search/bound.ts';
import { reasonMeanings } from './reasons.ts';
import { toSteps } from './steps.ts';

/** The draft's moves as ordered steps, and the imbalance of each policy when all are done. */
export function complete(
  planId: string,
  draft: Draft,
  drains: readonly Drain[],
  options: Pick<EngineOptions, 'alternates' | 'staggerSeconds'>,
): { steps: Step[]; after: Float64Array } {
  const { cluster, moves } = draft;
  const arrangement = arrange(cluster, moves);
  const steps = toSteps(planId, draft, moves, arrangement, options, alternateRule(draft, drains));
  const place = Int32Array.from(cluster.vmHost);
  for (const i of arrangement.order) {
    const move = moves[i];
    if (move !== undefined) place[move.vm] = move.to;
  }
  const after = imbalances(cluster, valuesAfter(cluster, cluster.score, cluster.vmHost, place));
  for (const i of arrangement.blocked) {
    const vm = moves[i]?.vm ?? 0;
    const code = 'order-impossible';
    draft.warnings.push({ code, text: reasonMeanings[code], detail: { server: cluster.vmIds[vm] ?? '' } });
  }
  return { steps, after };
}

/**
 * How good a spread plan is: the least combined imbalance that any plan with the budget could reach, and what share of the
 * reduction that this leaves possible has been reached.
 */
export function quality(
  cluster: Cluster,
  budget: number,
  before: number,
  after: number,
): { lowerBound: number | null; shareOfPossible: number | null } {
  if (cluster.P === 0) return { lowerBound: null, shareOfPossible: null };
  const movable = Uint8Array.from(cluster.vmRefusal, (refusal) => (refusal === 0 ? 1 : 0));
  const { combined } = bound({ cluster, place: cluster.vmHost, score: cluster.score, movable, budget });
  const lowerBound = Math.min(combined, after);
  const possible = before - lowerBound;
  if (possible <= EPSILON) return { lowerBound, shareOfPossible: null };
  return { lowerBound, shareOfPossible: Math.min(1, Math.max(0, (before - after) / possible)) };
}

/** Which legal hosts may stand in for a step's destination, by the rule of its pass. */
function alternateRule(draft: Draft, drains: readonly Drain[]): (move: Move, host: number) => boolean {
  const { cluster, score, fullness, place } = draft;
  const before = imbalances(cluster, cluster.score);
  const closed = new Set(drains.filter((drain) => drain.refusal === null).map((drain) => drain.host));
  const used = new Uint8Array(cluster.H);
  for (const host of [...cluster.vmHost, ...place]) used[host] = 1;
  const extremes = new Extremes(cluster);
  extremes.update(score);
  return (move, host) => {
    if (move.phase === 'pack')
      return !closed.has(host) && used[host] === 1 && staysBelow(cluster, fullness, move.vm, host);
    for (let p = 0; p < cluster.P; p++) {
      const after = extremes.after(score, move.vm, move.to, host, p);
      if (after > (cluster.policies[p]?.threshold ?? 0) + EPSILON && after > (before[p] ?? 0) + EPSILON) return false;
    }
    return true;
  };
}
