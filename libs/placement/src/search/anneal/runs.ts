import { Room } from '../../cluster/constraints.ts';
import { RefusalCounts } from '../../reasons.ts';
import type { Band } from '../problem/bands.ts';
import type { Field } from '../problem/field.ts';
import { compare, judge } from '../problem/solution.ts';
import { type Annealed, type AnnealSettings, anneal, SAMPLES } from './anneal.ts';
import { type LevelSettings, level } from './level.ts';
import { settle } from './settle.ts';

/**
 * A run of {@link level}, and a run on the real measure that begins at its result. It depends on these fields only, so runs may execute
 * in any order and in parallel.
 */
export type LevelRun = Omit<LevelSettings, 'refusals'> & {
  readonly field: Field;
  /** The placement at the start. */
  readonly start: Int32Array;
  /** Departures make room. */
  readonly departuresFree: boolean;
  /** A run of {@link settle} in this band instead of {@link level}. */
  readonly band?: Band;
  /** The run on the real measure; null: there is none. */
  readonly finish: Pick<AnnealSettings, 'aim' | 'steps' | 'heat'> | null;
};

/** The most proposals of a run. */
export const stepsOf = ({ steps, finish }: LevelRun): number => steps + (finish === null ? 0 : finish.steps + SAMPLES);

export type LevelFound = Annealed & {
  /** The refusals of the run, see {@link RefusalCounts.counts}. */
  readonly refused: Float64Array;
};

/** Length of {@link LevelFound.refused}. */
export const REFUSALS = new RefusalCounts().counts.length;

/** Executes runs and yields their results in the order of the runs. The caller stops it when it needs no more results. */
export type CarryOut = (runs: readonly LevelRun[]) => Generator<LevelFound, void, undefined>;

/** Executes one run after the other on the thread of the caller, each when the caller asks for its result. */
export function* inTurn(runs: readonly LevelRun[]): Generator<LevelFound, void, undefined> {
  for (const run of runs) yield carriedOut(run);
}

export function carriedOut({ field, start, departuresFree, finish, band, ...settings }: LevelRun): LevelFound {
  const refusals = new RefusalCounts();
  const room = () => field.room.copy(departuresFree);
  if (band !== undefined) {
    const { seed, steps } = settings;
    const found = settle(field, start, room(), { band, seed, steps, refusals });
    if (finish === null) return { ...found, refused: refusals.counts };
    // The band may be beside the one that costs least.
    const real = anneal(field, found.place, room(), { ...finish, budget: field.budget, seed, refusals });
    const place = compare(judge(field, real.place), judge(field, found.place)) < 0 ? real.place : found.place;
    return { place, steps: found.steps + real.steps, tight: found.tight || real.tight, refused: refusals.counts };
  }
  const found = level(field, start, room(), { ...settings, refusals });
  if (finish === null) return { ...found, refused: refusals.counts };
  const before = judge(field, found.place);
  if (before.reached) return { ...found, refused: refusals.counts };
  const { budget } = field;
  const { seed } = settings;
  const { place, steps, tight } = anneal(field, found.place, room(), { ...finish, budget, seed, refusals });
  // Its aim is not the order of aims: what it leaves can be worse.
  const kept = compare(judge(field, place), before) < 0 ? place : found.place;
  return { place: kept, steps: found.steps + steps, tight: found.tight || tight, refused: refusals.counts };
}

/** Restores a field from another thread: its room lost its methods on the way. */
export const arrived = (field: Field): Field => ({
  ...field,
  room: new Room(field.cluster, field.room, field.room),
});
