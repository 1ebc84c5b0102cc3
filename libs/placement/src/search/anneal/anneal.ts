import { EPSILON, highestAllowed } from '@kronos/rules';
import { float } from '../../base/array.ts';
import { Random } from '../../base/random.ts';
import type { Room } from '../../cluster/constraints.ts';
import { Extremes } from '../../cluster/extremes.ts';
import type { RefusalCounts } from '../../reasons.ts';
import { propose, Walk } from '../changes/walk.ts';
import type { Field } from '../problem/field.ts';

/** The aim of a run: the lowest combined imbalance; the targets at any cost; or the targets at the lowest cost. */
type Aim = 'lowest' | 'targets' | 'cheapest';

export type AnnealSettings = {
  readonly aim: Aim;
  readonly budget: number;
  readonly seed: number;
  readonly steps: number;
  /** First temperature, relative to the one that would randomise the start completely. A short run must start colder. */
  readonly heat: number;
  readonly refusals: RefusalCounts;
};

export type Annealed = {
  readonly place: Int32Array;
  readonly steps: number;
  /** Some proposal was refused for lack of room that departures would create. */
  readonly tight: boolean;
};

/** Proposals that are sampled to measure the effect of single changes. */
export const SAMPLES = 100;
/** First and last temperature, in units of the effect of a typical change. */
const HOT = 0.08;
const COLD = 0.002;
/** Penalties for an excess over a target in a search for the lowest cost, in average moves: for any excess, and per typical change. */
const EXCESS = { any: 0.3, perChange: 2 };

/** The average cost of the moves so far; of any move when there are none. */
function costOfMove({ costs, vmsOf }: Field, { cost, count }: Walk): number {
  if (count > 0) return cost / count;
  let all = 0;
  for (const v of vmsOf) all += float(costs, v);
  return all / vmsOf.length;
}

/**
 * Simulated annealing on the real measure. Half of the proposals change a policy's highest or lowest host. Returns the best placement of
 * the run: by the aim, then by cost, then by moves.
 *
 * @param room the room at the start of the pass; the run changes it.
 */
export function anneal(field: Field, start: Int32Array, room: Room, settings: AnnealSettings): Annealed {
  const { P, weights, thresholds, targets, cluster, lax } = field;
  const { aim } = settings;
  const random = new Random(settings.seed);
  const walk = new Walk(field, start, room, settings.budget, settings.refusals);
  if (field.vmsOf.length === 0 || field.destinations.length === 0 || settings.budget === 0 || P === 0)
    return { place: walk.place, steps: 0, tight: false };
  const extremes = new Extremes(cluster, walk.score);
  const limit = field.imbalance.map((imbalance, p) => highestAllowed(imbalance, float(thresholds, p)));
  const unit = Math.max(EPSILON, walk.cost);
  /** The excess over the targets whose penalty equals the whole cost at the start. */
  let excessUnit = 1;
  let ofMove = 1;

  /** The result of the last call of {@link energyOf}. */
  let reached = false;
  let combined = 0;
  const energyOf = (): number => {
    walk.work();
    let sum = 0;
    let over = 0;
    let unacceptable = 0;
    for (let p = 0; p < P; p++) {
      const imbalance = extremes.imbalanceWith(p, walk.touched, walk.value, walk.touchedCount);
      sum += float(weights, p) * imbalance;
      const excess = imbalance - float(targets, p);
      if (excess > EPSILON) over += float(weights, p) * excess;
      // An unacceptable plan costs more than any plan can gain.
      if (imbalance > float(limit, p)) unacceptable += imbalance - float(limit, p) + 0.1;
    }
    const breaches = lax.length === 0 ? 0 : walk.breachesAfter() - field.breaches;
    const penalty = breaches * cluster.softPenalty;
    combined = sum + penalty;
    reached = over === 0 && breaches <= 0 && unacceptable === 0;
    if (aim === 'lowest') return combined + unacceptable;
    if (aim === 'targets') return over + Math.max(0, penalty) + unacceptable;
    const excess = over + Math.max(0, penalty);
    return walk.costAfter() / unit + (reached ? 0 : EXCESS.any * ofMove + excess / excessUnit + unacceptable);
  };
  // Temperatures are derived from the effect of single changes on the combined imbalance, or on the cost.
  walk.reset();
  energyOf();
  const before = combined;
  const changes: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    if (!propose(walk, extremes, random)) continue;
    energyOf();
    const change = Math.abs(combined - before);
    if (change > EPSILON) changes.push(change);
  }
  changes.sort((a, b) => a - b);
  const hot = Math.max(2 * COLD, HOT * settings.heat);
  let typical = changes[changes.length >> 1] ?? 1;
  if (aim === 'cheapest') {
    ofMove = costOfMove(field, walk) / unit;
    excessUnit = typical / (EXCESS.perChange * ofMove);
    typical = ofMove;
  }
  const cooling = (COLD / hot) ** (1 / settings.steps);

  walk.reset();
  let energy = energyOf();
  let best = aim === 'cheapest' && !reached ? Number.POSITIVE_INFINITY : energy;
  let bestCount = walk.count;
  let bestCost = walk.cost;
  walk.save();
  let unsaved = false;
  let temperature = hot * typical;
  let step = 0;
  for (; step < settings.steps; step++) {
    if (aim === 'targets' && best <= EPSILON) break;
    temperature *= cooling;
    if (!propose(walk, extremes, random)) continue;
    const next = energyOf();
    const delta = next - energy;
    if (delta > 0 && random.unit() >= Math.exp(-delta / temperature)) continue;
    let better = false;
    if (next <= best + EPSILON && (aim !== 'cheapest' || reached)) {
      const cost = walk.costAfter();
      const count = walk.count + walk.growth();
      const cheaper = cost < bestCost - EPSILON || (cost <= bestCost + EPSILON && count < bestCount);
      better = next < best - EPSILON || cheaper;
    }
    // The best placement is saved only when the walk leaves it for a worse one.
    if (unsaved && !better) {
      walk.save();
      unsaved = false;
    }
    if (!walk.commit()) continue;
    extremes.changed(walk.touched, walk.touchedCount);
    energy = next;
    if (!better) continue;
    best = Math.min(best, next);
    bestCount = walk.count;
    bestCost = walk.cost;
    unsaved = true;
  }
  if (unsaved) walk.save();
  walk.goBack();
  return { place: walk.place, steps: step + SAMPLES, tight: walk.tight };
}
