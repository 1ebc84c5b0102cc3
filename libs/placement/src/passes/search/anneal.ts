import type { Room } from '../../constraints.ts';
import { EPSILON } from '../../measure.ts';
import { Random } from '../../random.ts';
import type { RefusalCounts } from '../../reasons.ts';
import type { Field } from './field.ts';
import { Walk } from './walk.ts';

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
  readonly refusals: RefusalCounts;
};

export type Annealed = {
  readonly place: Int32Array;
  readonly steps: number;
  /** Some proposal was refused for want of room that departures would make. */
  readonly tight: boolean;
};

/** Extreme hosts kept per policy and end: one more than a proposal touches. */
const KEPT = 5;

/**
 * Simulated annealing on the real measure. Half of the proposals are about a policy's highest or lowest host. Returns the
 * best placement met (then with fewest moves, then least memory).
 *
 * @param room as it was when the pass began; it is used up.
 */
export function anneal(field: Field, start: Int32Array, room: Room, settings: AnnealSettings): Annealed {
  const { H, P, weights, thresholds, cluster } = field;
  const { counted } = cluster;
  const { free, ramCost } = settings;
  const wall = ramCost > 0 ? 10 : 0;
  const random = new Random(settings.seed);
  const walk = new Walk(field, start, room, settings.budget, settings.refusals);
  if (field.vmsOf.length === 0 || field.destinations.length === 0 || settings.budget === 0 || P === 0)
    return { place: walk.place, steps: 0, tight: false };
  const { score, touched, value } = walk;
  const limit = field.imbalance.map((imbalance, p) => Math.max(imbalance, thresholds[p] as number) + EPSILON);

  const high = new Int32Array(P * KEPT);
  const low = new Int32Array(P * KEPT);
  let kept = 0;
  const refresh = (p: number): void => {
    const at = p * KEPT;
    let n = 0;
    for (let h = 0; h < H; h++) {
      if (counted[h] !== 1) continue;
      const s = score[h * P + p] as number;
      if (n < KEPT || s > (score[(high[at + KEPT - 1] as number) * P + p] as number)) {
        let i = n < KEPT ? n : KEPT - 1;
        for (; i > 0 && s > (score[(high[at + i - 1] as number) * P + p] as number); i--)
          high[at + i] = high[at + i - 1] as number;
        high[at + i] = h;
      }
      if (n < KEPT || s < (score[(low[at + KEPT - 1] as number) * P + p] as number)) {
        let i = n < KEPT ? n : KEPT - 1;
        for (; i > 0 && s < (score[(low[at + i - 1] as number) * P + p] as number); i--)
          low[at + i] = low[at + i - 1] as number;
        low[at + i] = h;
      }
      if (n < KEPT) n++;
    }
    kept = n;
  };
  /** Keeps the extremes right after a commit: most commits touch none of them. */
  const follow = (): void => {
    for (let p = 0; p < P; p++) {
      const at = p * KEPT;
      const leastHigh = score[(high[at + kept - 1] as number) * P + p] as number;
      const mostLow = score[(low[at + kept - 1] as number) * P + p] as number;
      let stale = false;
      for (let i = 0; i < walk.touchedCount && !stale; i++) {
        const h = touched[i] as number;
        if (counted[h] !== 1) continue;
        const s = score[h * P + p] as number;
        if (s >= leastHigh || s <= mostLow) stale = true;
        else for (let k = 0; k < kept; k++) if (high[at + k] === h || low[at + k] === h) stale = true;
      }
      if (stale) refresh(p);
    }
  };
  const isTouched = (h: number): boolean => {
    for (let i = 0; i < walk.touchedCount; i++) if (touched[i] === h) return true;
    return false;
  };
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
      const at = p * KEPT;
      for (let k = 0; k < kept; k++) {
        const h = high[at + k] as number;
        if (isTouched(h)) continue;
        const x = score[h * P + p] as number;
        if (x > most) most = x;
        break;
      }
      for (let k = 0; k < kept; k++) {
        const h = low[at + k] as number;
        if (isTouched(h)) continue;
        const x = score[h * P + p] as number;
        if (x < least) least = x;
        break;
      }
      const imbalance = most >= least ? most - least : 0;
      const over = imbalance - (free[p] as number);
      if (over > 0) energy += (weights[p] as number) * over + (over > EPSILON ? wall : 0);
      // What is no acceptable plan costs more than any plan gains.
      if (imbalance > (limit[p] as number)) energy += imbalance - (limit[p] as number) + 0.1;
    }
    return energy;
  };

  for (let p = 0; p < P; p++) refresh(p);
  walk.reset();
  let energy = energyOf() + ramCost * walk.ramMb;
  let best = energy;
  let bestCount = walk.count;
  let bestRam = walk.ramMb;
  let saved = walk.save();
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
      drawn = walk.drawAt(random, (down ? high[p * KEPT] : low[p * KEPT]) as number, down);
    } else drawn = walk.drawAny(random);
    if (!drawn) continue;
    const next = energyOf() + (ramCost === 0 ? 0 : ramCost * (walk.ramMb + walk.ramGrowth()));
    const delta = next - energy;
    if (delta > 0 && random.unit() >= Math.exp(-delta / temperature)) continue;
    if (!walk.commit()) continue;
    follow();
    energy = next;
    if (energy > best + EPSILON) continue;
    const { count, ramMb } = walk;
    if (energy >= best - EPSILON && (count > bestCount || (count === bestCount && ramMb >= bestRam))) continue;
    best = Math.min(best, energy);
    bestCount = count;
    bestRam = ramMb;
    saved = walk.save();
  }
  walk.goTo(saved);
  return { place: walk.place, steps: step, tight: walk.tight };
}
