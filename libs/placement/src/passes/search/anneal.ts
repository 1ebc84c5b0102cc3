import type { Room } from '../../constraints.ts';
import { EPSILON } from '../../measure.ts';
import { Random } from '../../random.ts';
import type { RefusalCounts } from '../../reasons.ts';
import { End } from './extremes.ts';
import type { Field } from './field.ts';
import { Walk } from './walk.ts';

/**
 * A pull towards a band of values: what hosts are outside of it counts too, weighted and this much beside the imbalance, so
 * that a host which is not the highest is worth a move as well.
 */
export type Pull = { readonly low: Float64Array; readonly high: Float64Array; readonly strength: number };

export type AnnealSettings = {
  readonly budget: number;
  readonly seed: number;
  readonly steps: number;
  /** First and last temperature, in units of the combined imbalance. */
  readonly hot: number;
  readonly cold: number;
  /** Imbalance that costs nothing, by policy: 0 to minimise, the thresholds to get within them. */
  readonly free: Float64Array;
  /** Stop as soon as nothing is above `free`. */
  readonly stopAtFree: boolean;
  /** Cost of a MiB moved; where it is not 0, being above `free` is not worth any memory. */
  readonly ramCost: number;
  /** Null: the imbalance alone counts. */
  readonly pull: Pull | null;
  readonly refusals: RefusalCounts;
};

export type Annealed = {
  readonly place: Int32Array;
  readonly steps: number;
  /** Some proposal was refused for want of room that departures would make. */
  readonly tight: boolean;
};

/**
 * Simulated annealing on the real measure. Half of the proposals are about a policy's highest or lowest host. Returns the
 * best placement met (then with fewest moves, then least memory).
 *
 * @param room as it was when the pass began; it is used up.
 */
export function anneal(field: Field, start: Int32Array, room: Room, settings: AnnealSettings): Annealed {
  const { P, weights, thresholds, cluster } = field;
  const { counted } = cluster;
  const { free, ramCost } = settings;
  const wall = ramCost > 0 ? 10 : 0;
  const random = new Random(settings.seed);
  const walk = new Walk(field, start, room, settings.budget, settings.refusals);
  if (field.vmsOf.length === 0 || field.destinations.length === 0 || settings.budget === 0 || P === 0)
    return { place: walk.place, steps: 0, tight: false };
  const { score, touched, value } = walk;
  const limit = field.imbalance.map((imbalance, p) => Math.max(imbalance, thresholds[p] as number) + EPSILON);

  const highest = new End(field, score, 1);
  const lowest = new End(field, score, -1);
  const energyOf = (): number => {
    let energy = 0;
    const n = walk.touchedCount;
    for (let p = 0; p < P; p++) {
      let most = Number.NEGATIVE_INFINITY;
      let least = Number.POSITIVE_INFINITY;
      for (let i = 0; i < n; i++) {
        if (counted[touched[i] as number] !== 1) continue;
        const x = value[i * P + p] as number;
        if (x > most) most = x;
        if (x < least) least = x;
      }
      most = Math.max(most, highest.untouched(p, walk, most));
      least = Math.min(least, lowest.untouched(p, walk, least));
      const imbalance = most >= least ? most - least : 0;
      const over = imbalance - (free[p] as number);
      if (over > 0) energy += (weights[p] as number) * over + (over > EPSILON ? wall : 0);
      // What is no acceptable plan costs more than any plan gains.
      if (imbalance > (limit[p] as number)) energy += imbalance - (limit[p] as number) + 0.1;
    }
    return energy;
  };

  const { pull } = settings;
  /** What the proposal changes in the hosts' distances from the band, weighted. */
  const pulled = (): number => {
    if (pull === null) return 0;
    const { low, high } = pull;
    let sum = 0;
    for (let i = 0; i < walk.touchedCount; i++) {
      const h = touched[i] as number;
      if (counted[h] !== 1) continue;
      for (let p = 0; p < P; p++) {
        const x = value[i * P + p] as number;
        const was = score[h * P + p] as number;
        const l = low[p] as number;
        const u = high[p] as number;
        const after = x > u ? x - u : x < l ? l - x : 0;
        const before = was > u ? was - u : was < l ? l - was : 0;
        sum += (weights[p] as number) * (after - before);
      }
    }
    return pull.strength * sum;
  };

  walk.reset();
  let energy = energyOf() + ramCost * walk.ramMb;
  let best = energy;
  let bestCount = walk.count;
  let bestRam = walk.ramMb;
  walk.save();
  let unsaved = false;
  const cooling = (settings.cold / settings.hot) ** (1 / settings.steps);
  let temperature = settings.hot;
  let step = 0;
  for (; step < settings.steps; step++) {
    if (settings.stopAtFree && best <= EPSILON) break;
    temperature *= cooling;
    let drawn: boolean;
    if (random.below(2) === 0) {
      const p = random.below(P);
      const down = random.below(2) === 0;
      const extreme = (down ? highest : lowest).first(p);
      drawn = extreme >= 0 && walk.drawAt(random, extreme, down);
    } else drawn = walk.drawAny(random);
    if (!drawn) continue;
    const next = energyOf() + (ramCost === 0 ? 0 : ramCost * (walk.ramMb + walk.ramGrowth()));
    const delta = next - energy + pulled();
    if (delta > 0 && random.unit() >= Math.exp(-delta / temperature)) continue;
    // The best placement is kept only once it is left for something that is not better.
    if (unsaved && next >= best - EPSILON) {
      walk.save();
      unsaved = false;
    }
    if (!walk.isLegal()) continue;
    highest.forget(walk);
    lowest.forget(walk);
    walk.commit();
    highest.learn(walk);
    lowest.learn(walk);
    energy = next;
    if (energy > best + EPSILON) continue;
    const { count, ramMb } = walk;
    if (energy >= best - EPSILON && (count > bestCount || (count === bestCount && ramMb >= bestRam))) continue;
    best = Math.min(best, energy);
    bestCount = count;
    bestRam = ramMb;
    unsaved = true;
  }
  if (unsaved) walk.save();
  walk.goBack();
  return { place: walk.place, steps: step, tight: walk.tight };
}
