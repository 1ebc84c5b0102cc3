import { EPSILON } from '@kronos/rules';
import { byte, float, int, item } from '../../array.ts';
import { check } from '../../constraints.ts';
import { shift } from '../../measure.ts';
import type { RefusalCounts } from '../../reasons.ts';
import { softBreaches } from '../../softRules.ts';
import type { Field } from './field.ts';
import type { Solution } from './solution.ts';

/** Placements that are all looked at; where there are more, the local search looks for good ones. */
const MOST = 100_000;

/** How many placements lie within the budget, groups and amounts left aside; infinite where they are too many to look at. */
export function placementsWithin(field: Field): number {
  const { budget } = field;
  // By number of moves: the ways to choose that many VMs and a destination for each.
  const ways = [1];
  for (const v of field.vmsOf) {
    const n = optionsOf(field, v).length;
    for (let k = Math.min(ways.length, budget); k >= 1; k--) ways[k] = (ways[k] ?? 0) + n * item(ways, k - 1);
    let all = 0;
    for (const w of ways) all += w;
    if (all > MOST) return Number.POSITIVE_INFINITY;
  }
  return ways.reduce((sum, w) => sum + w, 0);
}

/**
 * Looks at every placement within the budget and offers those that are legal in the end and better than the best so far.
 *
 * @param best the best so far; asked again after each offer.
 * @returns how many placements were looked at.
 */
export function exhaust(
  field: Field,
  best: () => Solution,
  offer: (place: Int32Array) => void,
  refusals: RefusalCounts,
): number {
  const { cluster, home, vmsOf, P, H, weights, targets, costs, lax } = field;
  const { counted, softPenalty } = cluster;
  const options = Array.from(vmsOf, (v) => optionsOf(field, v));
  const place = Int32Array.from(home);
  const score = Float64Array.from(field.score);
  let looked = 0;
  // What is refused is counted move by move, as if each were the only one.
  for (const v of vmsOf)
    for (const to of field.destinations) {
      const refusal = to === int(home, v) ? 0 : check(cluster, home, field.room, v, to);
      if (refusal !== 0) refusals.add(refusal);
    }

  /** False where the placement cannot come before the best one in the order of aims. */
  const promising = (cost: number): boolean => {
    let combined = 0;
    let reached = true;
    for (let p = 0; p < P; p++) {
      let low = Number.POSITIVE_INFINITY;
      let high = Number.NEGATIVE_INFINITY;
      for (let h = 0; h < H; h++) {
        if (byte(counted, h) !== 1) continue;
        const x = float(score, h * P + p);
        if (x < low) low = x;
        if (x > high) high = x;
      }
      combined += float(weights, p) * (high - low);
      if (high - low > float(targets, p) + EPSILON) reached = false;
    }
    if (lax.length > 0) {
      const breaches = softBreaches(cluster, lax, place) - field.breaches;
      combined += breaches * softPenalty;
      if (breaches > 0) reached = false;
    }
    const known = best();
    if (reached !== known.reached) return reached;
    return reached ? cost <= known.cost + EPSILON : combined <= known.combined + EPSILON;
  };
  const visit = (i: number, left: number, cost: number): void => {
    looked++;
    if (left < field.budget && promising(cost) && isLegal(field, place)) offer(Int32Array.from(place));
    if (left === 0) return;
    for (let j = i; j < vmsOf.length; j++) {
      const v = int(vmsOf, j);
      const from = int(home, v);
      for (const to of item(options, j)) {
        shift(cluster, score, v, from, to);
        place[v] = to;
        visit(j + 1, left - 1, cost + float(costs, v));
        place[v] = from;
        shift(cluster, score, v, to, from);
      }
    }
  };
  visit(0, field.budget, 0);
  return looked;
}

/** Hosts that a VM may go to, amounts and groups left aside. */
function optionsOf({ cluster, home, destinationsNear }: Field, v: number): number[] {
  const { keyLegal, vmKey, classes, hostClass } = cluster;
  const own = int(home, v);
  return [...item(destinationsNear, own)].filter(
    (h) => h !== own && int(keyLegal, int(vmKey, v) * classes + int(hostClass, h)) === 0,
  );
}

/** Do amounts and groups allow the placement, once all have left and arrived? */
function isLegal({ cluster, room: start, home, V }: Field, place: Int32Array): boolean {
  const room = start.copy(true);
  const at = Int32Array.from(home);
  const moved: number[] = [];
  for (let v = 0; v < V; v++) if (int(place, v) !== int(home, v)) moved.push(v);
  for (const v of moved) room.depart(v, int(home, v));
  for (const v of moved) {
    if (check(cluster, at, room, v, int(place, v)) !== 0) return false;
    room.arrive(v, int(place, v));
    at[v] = int(place, v);
  }
  return true;
}
