import { EPSILON, isAbove, isWorse } from '@kronos/rules';
import { float, int } from '../../base/array.ts';
import { combinedOf, imbalances, valuesAfter } from '../../cluster/measure.ts';
import { softBreaches } from '../../cluster/softRules.ts';
import { costTo, type Field } from './field.ts';
import { nobody, type Parked } from './sequence.ts';

/** A placement that the search found, with its measures in the order of aims. */
export type Solution = {
  readonly place: Int32Array;
  /** VMs that wait on a third host. */
  readonly parked: Parked;
  /** Moves: one for each VM away from home, one more for each parked. */
  readonly moves: number;
  /** Cost of the moves, in GiB. */
  readonly cost: number;
  /** The combined imbalance, and the penalty for every VM more than at the start that breaks a soft group. */
  readonly combined: number;
  /** Every policy is at or below its target, and no more VMs break soft groups than at the start. */
  readonly reached: boolean;
  /** Every policy is at or below its threshold. */
  readonly within: boolean;
  /** No policy is both worse than at the start and above its threshold. */
  readonly acceptable: boolean;
};

/** Judges a placement from scratch. */
export function judge(field: Field, place: Int32Array, parked: Parked = nobody): Solution {
  const { cluster, V, home, thresholds, targets, lax } = field;
  let moves = 0;
  let cost = 0;
  for (let v = 0; v < V; v++) {
    if (int(home, v) === int(place, v)) continue;
    moves += parked.has(v) ? 2 : 1;
    cost += costOfMoves(field, v, { place, parked });
  }
  const imbalance = imbalances(cluster, valuesAfter(cluster, field.score, home, place));
  const breaches = lax.length === 0 ? 0 : softBreaches(cluster, lax, place) - field.breaches;
  return {
    place,
    parked,
    moves,
    cost,
    combined: combinedOf(cluster, imbalance) + breaches * cluster.softPenalty,
    reached: breaches <= 0 && imbalance.every((x, p) => x <= float(targets, p) + EPSILON),
    within: !imbalance.some((x, p) => isAbove(x, float(thresholds, p))),
    acceptable: !imbalance.some((x, p) => isWorse(x, float(field.imbalance, p), float(thresholds, p))),
  };
}

/** Cost of the one or two moves of a VM that is away from home, in GiB. */
export function costOfMoves(field: Field, vm: number, { place, parked }: Pick<Solution, 'place' | 'parked'>): number {
  const cost = costTo(field, vm, int(place, vm));
  const via = parked.get(vm);
  return via === undefined ? cost : costTo(field, vm, via) + cost;
}

/**
 * The order of aims. If both reach every target: lowest cost, then fewest moves, then lowest combined imbalance. If one does: that one.
 * Else: lowest combined imbalance, then cost, then moves. Below 0: `a` is better.
 */
export function compare(a: Solution, b: Solution): number {
  if (a.acceptable !== b.acceptable) return a.acceptable ? -1 : 1;
  if (a.reached !== b.reached) return a.reached ? -1 : 1;
  const combined = difference(a.combined, b.combined);
  const cost = difference(a.cost, b.cost);
  const moves = a.moves - b.moves;
  const order = a.reached ? [cost, moves, combined] : [combined, cost, moves];
  return order.find((x) => x !== 0) ?? 0;
}

const difference = (a: number, b: number): number => (Math.abs(a - b) <= EPSILON ? 0 : a - b);

/** The imbalance (`max - min`) by policy. */
type Imbalances = { readonly imbalance: (policy: number) => number };

/** True when every policy is at or below its target. Soft groups are ignored. */
export function reaches(field: Field, now: Imbalances): boolean {
  for (let p = 0; p < field.P; p++) if (now.imbalance(p) > float(field.targets, p) + EPSILON) return false;
  return true;
}

/** True when no policy is both above its threshold and worse than at the start of the pass. */
export function isAcceptable(field: Field, now: Imbalances): boolean {
  for (let p = 0; p < field.P; p++)
    if (isWorse(now.imbalance(p), float(field.imbalance, p), float(field.thresholds, p))) return false;
  return true;
}
