import type { CompleteEngineOptions, Reason, Step } from '@kronos/contracts';
import { EPSILON, isWorse } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { type Cluster, staysBelow } from '../cluster/cluster.ts';
import { Extremes } from '../cluster/extremes.ts';
import { allWithin, combinedOf, imbalances, valuesAfter } from '../cluster/measure.ts';
import { breachesOf, laxGroups } from '../cluster/softRules.ts';
import type { Draft, Move } from '../draft/draft.ts';
import { arrange } from '../draft/order.ts';
import type { Drain } from '../passes/pack.ts';
import { type ReasonCode, reasonMeanings } from '../reasons.ts';
import { bound } from '../search/problem/bound.ts';
import { toSteps } from './steps.ts';

/** A finished draft: its steps, and the imbalance after them. */
export type Completed = {
  readonly steps: Step[];
  /** The moves behind the steps, in the order of the steps. */
  readonly moves: readonly Move[];
  /** Host of every VM after the plan. */
  readonly place: Int32Array;
  /** The imbalance of each policy after the plan. */
  readonly after: Float64Array;
};

/** The draft's moves as ordered steps. */
export function completePlan(
  planId: string,
  draft: Draft,
  drains: readonly Drain[],
  options: Pick<CompleteEngineOptions, 'alternates' | 'staggerSeconds' | 'failoverHosts'>,
): Completed {
  const { cluster, moves } = draft;
  const arrangement = arrange(cluster, moves);
  const place = Int32Array.from(cluster.vmHost);
  for (const i of arrangement.order) {
    const move = moves[i];
    if (move !== undefined) place[move.vm] = move.to;
  }
  const score = valuesAfter(cluster, cluster.score, cluster.vmHost, place);
  const gains = gainsOf(cluster, score, moves);
  const rule = alternateRule(draft, drains);
  // An alternate destination could take the room for a failure.
  const allowed = (move: Move, host: number): boolean =>
    (move.phase === 'evacuate' || options.failoverHosts === 0) && rule(move, host);
  const steps = toSteps(planId, draft, { moves, arrangement, allowed, gains }, options);
  for (const i of arrangement.blocked) {
    const { vm } = item(moves, i);
    const code = 'order-impossible';
    const text = `${item(cluster.vmNames, vm)}: ${reasonMeanings[code]}`;
    draft.warnings.push({ code, text, detail: { server: item(cluster.vmIds, vm) } });
  }
  for (const group of laxGroups(cluster)) {
    const breaches = breachesOf(cluster, group, place);
    if (breaches <= breachesOf(cluster, group, cluster.vmHost)) continue;
    const code = 'soft-rule-broken';
    const servers = group.members
      .filter((vm) => int(place, vm) !== int(cluster.vmHost, vm))
      .map((vm) => item(cluster.vmIds, vm));
    draft.warnings.push({
      code,
      text: `${group.policy} group ${group.name}: ${reasonMeanings[code]}`,
      detail: { group: group.id, policy: group.policy, servers, penalty: breaches * cluster.softPenalty },
    });
  }
  const after = imbalances(cluster, score);
  // Packing makes some hosts full and others empty.
  if (moves.every(({ phase }) => phase !== 'pack')) draft.warnings.push(...pastThresholds(cluster, after));
  return {
    steps,
    moves: arrangement.order.flatMap((i) => moves[i] ?? []),
    place,
    after,
  };
}

/** Warns about policies that end worse than they began and above their thresholds. */
function pastThresholds(cluster: Cluster, after: Float64Array): Reason[] {
  const before = imbalances(cluster, cluster.score);
  return cluster.policies.flatMap(({ name, threshold }, p): Reason[] => {
    const [was, is] = [float(before, p), float(after, p)];
    if (!isWorse(is, was, threshold)) return [];
    return [
      {
        code: 'past-threshold' satisfies ReasonCode,
        text: `the moves bring the imbalance of policy ${name} from ${was.toFixed(3)} to ${is.toFixed(3)}, above its threshold of ${threshold}`,
        detail: { policy: name, threshold, before: was, after: is },
      },
    ];
  });
}

/** By VM: the reduction of the combined imbalance by its move, with all other moves done. */
function gainsOf(cluster: Cluster, score: Float64Array, moves: readonly Move[]): ReadonlyMap<number, number> {
  const extremes = new Extremes(cluster, score);
  const combined = combinedOf(cluster, imbalances(cluster, score));
  const home = new Map<number, number>();
  for (const move of moves) if (!home.has(move.vm)) home.set(move.vm, move.from);
  const last = new Map(moves.map((move) => [move.vm, move.to]));
  const gains = new Map<number, number>();
  for (const [vm, from] of home) {
    let without = 0;
    for (let p = 0; p < cluster.P; p++)
      without += item(cluster.policies, p).weight * extremes.after(vm, last.get(vm) ?? from, from, p);
    gains.set(vm, without - combined);
  }
  return gains;
}

/**
 * The quality of a spread plan: the lower bound on the combined imbalance of any plan with the budget, and the share of the possible
 * reduction that the plan achieves. The share is null when nothing could be gained, or when there was nothing to balance.
 */
export function quality(
  cluster: Cluster,
  budget: number,
  before: number,
  after: number,
): { lowerBound: number | null; shareOfPossible: number | null } {
  if (cluster.P === 0) return { lowerBound: null, shareOfPossible: null };
  // Some VMs may only leave disabled hosts.
  const movable = Uint8Array.from(cluster.vmRefusal, (refusal, v) =>
    refusal === 0 && (cluster.evacuationOnly[v] === 0 || cluster.leaving[int(cluster.vmHost, v)] === 1) ? 1 : 0,
  );
  const { combined } = bound({ cluster, place: cluster.vmHost, score: cluster.score, movable, budget });
  const lowerBound = Math.min(combined, after);
  const possible = before - lowerBound;
  // With every policy within its threshold there was nothing to balance.
  const satisfied = allWithin(cluster, imbalances(cluster, cluster.score));
  if (satisfied || possible <= EPSILON) return { lowerBound, shareOfPossible: null };
  return { lowerBound, shareOfPossible: Math.min(1, Math.max(0, (before - after) / possible)) };
}

/** The legal hosts that may replace a step's destination, by the rule of its pass. */
function alternateRule(draft: Draft, drains: readonly Drain[]): (move: Move, host: number) => boolean {
  const { cluster, score, fullness, place } = draft;
  const before = imbalances(cluster, cluster.score);
  const closed = new Set(drains.filter((drain) => drain.refusal === null).map((drain) => drain.host));
  const used = new Uint8Array(cluster.H);
  for (const host of [...cluster.vmHost, ...place]) used[host] = 1;
  const extremes = new Extremes(cluster, score);
  return (move, host) => {
    if (move.phase === 'pack')
      return !closed.has(host) && used[host] === 1 && staysBelow(cluster, fullness, move.vm, host);
    for (let p = 0; p < cluster.P; p++) {
      const after = extremes.after(move.vm, move.to, host, p);
      if (isWorse(after, float(before, p), item(cluster.policies, p).threshold)) return false;
    }
    return true;
  };
}
