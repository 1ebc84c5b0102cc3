import { check, type Room } from '../constraints.ts';
import { type Draft, shift } from '../draft.ts';
import { allWithin, EPSILON, Extremes, imbalances } from '../measure.ts';
import { codeNumber } from '../reasons.ts';

/** A VM and where it goes. */
export type Pick = { readonly vm: number; readonly to: number };

/**
 * `planner=greedy`: each round takes the legal move with the largest combined improvement (then least memory, then
 * lowest VM and host) that worsens no policy which is above its threshold afterwards, until every policy is within its
 * threshold, the budget is used or no move gains `minGain`. Only moves off a policy's only highest host or onto its
 * only lowest one can lower an imbalance, so only these are looked at.
 */
export function greedy(draft: Draft, minGain: number): Pick[] {
  const { cluster, refusals } = draft;
  const { H, V, P, vmRefusal } = cluster;
  const place = Int32Array.from(draft.place);
  const score = Float64Array.from(draft.score);
  const moved = Uint8Array.from(draft.moved);
  const room: Room = draft.room.copy();
  const weights = cluster.policies.map((policy) => policy.weight);
  const thresholds = cluster.policies.map((policy) => policy.threshold);
  const extremes = new Extremes(cluster);
  const picks: Pick[] = [];
  const hot = new Uint8Array(H);
  const floor = Math.max(minGain, EPSILON);
  const destinations: number[] = [];
  for (let h = 0; h < H; h++) if (cluster.hostRefusal[h] === 0) destinations.push(h);

  while (picks.length < draft.budget) {
    const now = imbalances(cluster, score);
    if (allWithin(cluster, now)) break;
    extremes.update(score);
    hot.fill(0);
    const cold = new Set<number>();
    for (let p = 0; p < P; p++) {
      const a = extremes.onlyHighest(score, p);
      const b = extremes.onlyLowest(score, p);
      if (a >= 0) hot[a] = 1;
      if (b >= 0 && cluster.hostRefusal[b] === 0) cold.add(b);
    }
    const coldHosts = [...cold].sort((a, b) => a - b);
    let best: Pick | null = null;
    let bestGain = floor;
    let bestRam = Number.POSITIVE_INFINITY;
    for (let vm = 0; vm < V; vm++) {
      if (vmRefusal[vm] !== 0 || moved[vm] === 1) continue;
      const a = place[vm] ?? 0;
      const ram = cluster.ramMb[vm] ?? 0;
      for (const b of hot[a] === 1 ? destinations : coldHosts) {
        if (b === a) continue;
        draft.evaluated++;
        let gain = 0;
        let refused = false;
        for (let p = 0; p < P; p++) {
          const after = extremes.after(score, vm, a, b, p);
          const before = now[p] ?? 0;
          gain += (weights[p] ?? 0) * (before - after);
          if (after > (thresholds[p] ?? 0) + EPSILON && after > before + EPSILON) refused = true;
        }
        if (gain < floor || gain < bestGain - EPSILON || (gain <= bestGain + EPSILON && ram >= bestRam)) continue;
        if (refused) {
          refusals.add(codeNumber['past-threshold']);
          continue;
        }
        const refusal = check(cluster, place, room, vm, b);
        if (refusal !== 0) {
          refusals.add(refusal);
          continue;
        }
        best = { vm, to: b };
        bestGain = Math.max(gain, bestGain);
        bestRam = ram;
      }
    }
    if (best === null) break;
    const from = place[best.vm] ?? 0;
    picks.push(best);
    room.move(best.vm, from, best.to);
    shift(cluster, score, best.vm, from, best.to);
    place[best.vm] = best.to;
    moved[best.vm] = 1;
  }
  return picks;
}
