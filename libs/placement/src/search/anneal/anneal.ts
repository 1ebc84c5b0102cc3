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

/** What a run lowers: the measure of its aim, for the present proposal of the walk. */
class Energy {
  readonly #field: Field;
  readonly #walk: Walk;
  readonly #extremes: Extremes;
  readonly #aim: Aim;
  /** By policy: the highest imbalance that is acceptable. */
  readonly #limit: Float64Array;
  /** The unit of the cost. */
  readonly #unit: number;
  /** The excess over the targets whose penalty equals the whole cost at the start, and the cost of a move. */
  #excessUnit = 1;
  #ofMove = 1;
  /** The results of the last call of {@link now}. */
  reached = false;
  combined = 0;

  constructor(field: Field, walk: Walk, extremes: Extremes, aim: Aim) {
    this.#field = field;
    this.#walk = walk;
    this.#extremes = extremes;
    this.#aim = aim;
    this.#limit = field.imbalance.map((imbalance, p) => highestAllowed(imbalance, float(field.thresholds, p)));
    this.#unit = Math.max(EPSILON, walk.cost);
  }

  now(): number {
    const { P, weights, targets, lax, breaches: before, cluster } = this.#field;
    const walk = this.#walk;
    walk.work();
    let sum = 0;
    let over = 0;
    let unacceptable = 0;
    for (let p = 0; p < P; p++) {
      const imbalance = this.#extremes.imbalanceWith(p, walk.touched, walk.value, walk.touchedCount);
      sum += float(weights, p) * imbalance;
      const excess = imbalance - float(targets, p);
      if (excess > EPSILON) over += float(weights, p) * excess;
      // An unacceptable plan costs more than any plan can gain.
      if (imbalance > float(this.#limit, p)) unacceptable += imbalance - float(this.#limit, p) + 0.1;
    }
    const breaches = lax.length === 0 ? 0 : walk.breachesAfter() - before;
    const penalty = breaches * cluster.softPenalty;
    this.combined = sum + penalty;
    this.reached = over === 0 && breaches <= 0 && unacceptable === 0;
    if (this.#aim === 'lowest') return this.combined + unacceptable;
    if (this.#aim === 'targets') return over + Math.max(0, penalty) + unacceptable;
    const excess = over + Math.max(0, penalty);
    const short = this.reached ? 0 : EXCESS.any * this.#ofMove + excess / this.#excessUnit + unacceptable;
    return walk.costAfter() / this.#unit + short;
  }

  /** The effect of a typical change, in the unit of the energy: temperatures are derived from it. */
  typical(random: Random): number {
    const walk = this.#walk;
    walk.reset();
    this.now();
    const before = this.combined;
    const changes: number[] = [];
    for (let i = 0; i < SAMPLES; i++) {
      if (!propose(walk, this.#extremes, random)) continue;
      this.now();
      const change = Math.abs(this.combined - before);
      if (change > EPSILON) changes.push(change);
    }
    changes.sort((a, b) => a - b);
    const typical = changes[changes.length >> 1] ?? 1;
    if (this.#aim !== 'cheapest') return typical;
    this.#ofMove = costOfMove(this.#field, walk) / this.#unit;
    this.#excessUnit = typical / (EXCESS.perChange * this.#ofMove);
    return this.#ofMove;
  }
}

/**
 * Simulated annealing on the real measure. Half of the proposals change a policy's highest or lowest host. Returns the best placement of
 * the run: by the aim, then by cost, then by moves.
 *
 * @param room the room at the start of the pass; the run changes it.
 */
export function anneal(field: Field, start: Int32Array, room: Room, settings: AnnealSettings): Annealed {
  const { aim, budget, steps, heat, refusals } = settings;
  const random = new Random(settings.seed);
  const walk = new Walk(field, start, room, budget, refusals);
  if (field.vmsOf.length === 0 || field.destinations.length === 0 || budget === 0 || field.P === 0)
    return { place: walk.place, steps: 0, tight: false };
  const extremes = new Extremes(field.cluster, walk.score);
  const measure = new Energy(field, walk, extremes, aim);
  const hot = Math.max(2 * COLD, HOT * heat);
  const typical = measure.typical(random);
  const cooling = (COLD / hot) ** (1 / steps);

  walk.reset();
  let energy = measure.now();
  let best = aim === 'cheapest' && !measure.reached ? Number.POSITIVE_INFINITY : energy;
  let bestCount = walk.count;
  let bestCost = walk.cost;
  walk.save();
  let unsaved = false;
  let temperature = hot * typical;
  let step = 0;
  for (; step < steps; step++) {
    if (aim === 'targets' && best <= EPSILON) break;
    temperature *= cooling;
    if (!propose(walk, extremes, random)) continue;
    const next = measure.now();
    const delta = next - energy;
    if (delta > 0 && random.unit() >= Math.exp(-delta / temperature)) continue;
    let better = false;
    if (next <= best + EPSILON && (aim !== 'cheapest' || measure.reached)) {
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
