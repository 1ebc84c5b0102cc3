import { defaultEngineOptions } from '@kronos/contracts';
import { item } from '../src/base/array.ts';
import type { Cluster } from '../src/cluster/cluster.ts';
import { allWithin, combinedOf, imbalances } from '../src/cluster/measure.ts';
import { Draft } from '../src/draft/draft.ts';
import { inTurn } from '../src/search/anneal/runs.ts';
import { greedy } from '../src/search/greedy.ts';
import { followGuide } from '../src/search/guide/guide.ts';
import { meanShape } from '../src/search/guide/shapes.ts';
import { bound } from '../src/search/problem/bound.ts';
import { fieldOf } from '../src/search/problem/field.ts';
import { judge } from '../src/search/problem/solution.ts';
import { search } from '../src/search/search.ts';

/** One phase of the search by itself, for benches: its moves, without their order in time. */
export type Phase = { readonly moves: number; readonly evaluated: number; readonly combined: number };

/** Lower bound on the combined imbalance of any plan with this budget. */
export function lowerBound(cluster: Cluster, budget: number): number {
  const { vmHost: place, score, vmRefusal } = cluster;
  const movable = Uint8Array.from(vmRefusal, (refusal) => (refusal === 0 ? 1 : 0));
  return bound({ cluster, place, score, movable, budget }).combined;
}

/** The greedy phase. */
export function greedyPhase(cluster: Cluster, budget: number): Phase {
  const draft = new Draft(cluster, budget);
  const field = fieldOf(draft, imbalances(cluster, draft.score), 0);
  const place = Int32Array.from(field.home);
  const picks = greedy(draft, 0);
  for (const { vm, to } of picks) place[vm] = to;
  return { moves: picks.length, evaluated: draft.evaluated, combined: judge(field, place).combined };
}

/** The guide phase: one guide, by squared distances from the means, followed to the end of the budget. */
export function guidePhase(cluster: Cluster, budget: number): Phase {
  const draft = new Draft(cluster, budget);
  const field = fieldOf(draft, imbalances(cluster, draft.score), 0);
  const place = Int32Array.from(field.home);
  const trail = followGuide(field, meanShape(field), { budget, workLimit: Number.POSITIVE_INFINITY }, draft.refusals);
  for (let i = 0; i < trail.best; i++) place[item(trail.vms, i)] = item(trail.hosts, i);
  return { moves: trail.vms.length, evaluated: trail.evaluated, combined: judge(field, place).combined };
}

/** The whole search by the default options, with guides from this number of destinations on. */
export function searchPhase(cluster: Cluster, budget: number, guidedHosts: number): Phase {
  const draft = new Draft(cluster, budget);
  const { allowParking, moveOverheadGib, searchWorkLimit: workLimit } = defaultEngineOptions;
  const settings = { minGain: 0, moveOverheadGib, allowParking, workLimit, spent: 0, carryOut: inTurn, guidedHosts };
  const { solution, work } = search(draft, settings);
  return { moves: solution.moves, evaluated: work, combined: solution.combined };
}

/** The combined imbalance of a cluster as it is, and whether every policy is within its threshold. */
export function imbalanceOfFile(cluster: Cluster): { readonly combined: number; readonly within: boolean } {
  const imbalance = imbalances(cluster, cluster.score);
  return { combined: combinedOf(cluster, imbalance), within: allWithin(cluster, imbalance) };
}
