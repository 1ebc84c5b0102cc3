import { EPSILON } from '@kronos/rules';
import { Random } from '../../base/random.ts';
import type { Room } from '../../cluster/constraints.ts';
import { Extremes } from '../../cluster/extremes.ts';
import type { RefusalCounts } from '../../reasons.ts';
import type { Annealed } from './anneal.ts';
import type { Field } from './field.ts';
import { Ranks } from './ranks.ts';
import { Smooth } from './smooth.ts';
import { isAcceptable, reaches } from './solution.ts';
import { Walk } from './walk.ts';

/** The end of a run: the last width and the last temperature, in the units of the first ones. */
type Cooling = { readonly narrow: number; readonly cold: number };

/** A long run ends sharper and colder. A short run finds less there. */
export const COOLING = {
  short: { narrow: 0.02, cold: 0.025 },
  long: { narrow: 0.01, cold: 0.01 },
} as const satisfies Record<string, Cooling>;

export type LevelSettings = {
  readonly seed: number;
  readonly cooling: Cooling;
  /** Proposals. */
  readonly steps: number;
  readonly refusals: RefusalCounts;
};

/** Stages of equal length; each sharpens the stand-in and cools. */
const STAGES = 40;
/** First width, as a part of the imbalance at the time. */
const WIDE = 0.1;
/** First temperature, in grains. */
const HOT = 0.1;
/** A proposal that costs more than this many temperatures is rejected without a draw: its chance is one in nine million. */
const HOPELESS = 16;
/** Hosts are ranked again after this many proposals per host. */
const RANKED = 10;
/** This many of 8 proposals are arbitrary changes. The others involve a host near an end of a policy. */
const ANY = 2;

/**
 * Simulated annealing on {@link Smooth}, the smooth stand-in for the combined imbalance. The stand-in becomes sharper with each stage.
 * Returns the acceptable placement with the lowest combined imbalance of the run. It stops at a placement that reaches every target.
 *
 * @param room the room at the start of the pass; the run changes it.
 */
export function level(field: Field, start: Int32Array, room: Room, settings: LevelSettings): Annealed {
  const { cluster, lax, P } = field;
  const { steps, cooling } = settings;
  const random = new Random(settings.seed);
  const walk = new Walk(field, start, room, field.budget, settings.refusals);
  if (field.vmsOf.length === 0 || field.destinations.length === 0 || field.budget === 0 || P === 0)
    return { place: walk.place, steps: 0, tight: false };
  const extremes = new Extremes(cluster, walk.score);
  const smooth = new Smooth(field, walk.score);
  const ranks = new Ranks(field, walk.score);
  walk.reset();
  let breaches = lax.length === 0 ? 0 : walk.breachesAfter();
  /** The real measure, including the gain from fewer breaches. */
  const combined = (): number => extremes.combined() + (breaches - field.breaches) * cluster.softPenalty;
  let best = isAcceptable(field, extremes) ? combined() : Number.POSITIVE_INFINITY;
  walk.save();
  let unsaved = false;
  let step = 0;
  for (let stage = 0, done = false; stage < STAGES && !done; stage++) {
    const cooled = stage / (STAGES - 1);
    smooth.sharpen(WIDE * (cooling.narrow / WIDE) ** cooled);
    const temperature = smooth.grain * HOT * (cooling.cold / HOT) ** cooled;
    const end = Math.floor((steps * (stage + 1)) / STAGES);
    for (; step < end; step++) {
      if (step % (RANKED * field.H) === 0) ranks.refresh();
      if (!proposed(walk, ranks, random)) continue;
      let change = smooth.change(walk);
      let after = breaches;
      if (lax.length > 0) {
        after = walk.breachesAfter();
        change += (after - breaches) * cluster.softPenalty;
      }
      if (change > HOPELESS * temperature) continue;
      if (change > 0 && random.unit() >= Math.exp(-change / temperature)) continue;
      if (!walk.isLegal()) continue;
      // The best placement is saved only when the walk leaves it.
      if (unsaved) {
        walk.save();
        unsaved = false;
      }
      walk.commit();
      breaches = after;
      smooth.changed(walk);
      extremes.changed(walk.touched, walk.touchedCount);
      const now = combined();
      if (now >= best - EPSILON || !isAcceptable(field, extremes)) continue;
      best = now;
      unsaved = true;
      if (breaches > field.breaches || !reaches(field, extremes)) continue;
      done = true;
      break;
    }
  }
  if (unsaved) walk.save();
  walk.goBack();
  return { place: walk.place, steps: step, tight: walk.tight };
}

/** Draws a proposal. False when the draw gives none. */
function proposed(walk: Walk, ranks: Ranks, random: Random): boolean {
  if (random.below(8) < ANY) return walk.drawAny(random);
  const p = random.below(walk.field.P);
  const down = random.below(2) === 0;
  const host = ranks.draw(random, p, down);
  return host >= 0 && walk.drawAt(random, host, down);
}
