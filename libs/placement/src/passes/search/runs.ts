import { Room } from '../../constraints.ts';
import { RefusalCounts } from '../../reasons.ts';
import type { Annealed } from './anneal.ts';
import type { Field } from './field.ts';
import { type LevelSettings, level } from './level.ts';

/** A run of {@link level} from home. It depends on nothing but what is here: runs may be carried out in any order, and at the same time. */
export type LevelRun = Omit<LevelSettings, 'refusals'> & {
  readonly field: Field;
  /** Departures make room. */
  readonly departuresFree: boolean;
};

export type LevelFound = Annealed & {
  /** What the run refused, see {@link RefusalCounts.counts}. */
  readonly refused: Float64Array;
};

/** Length of {@link LevelFound.refused}. */
export const REFUSALS = new RefusalCounts().counts.length;

/** Carries out runs and gives what they find in the order of the runs. The caller ends it early where it needs no more of them. */
export type CarryOut = (runs: readonly LevelRun[]) => Generator<LevelFound, void, undefined>;

/** One run after the other, on the thread of the caller: each only when its result is asked for. */
export function* inTurn(runs: readonly LevelRun[]): Generator<LevelFound, void, undefined> {
  for (const run of runs) yield carriedOut(run);
}

export function carriedOut({ field, departuresFree, ...settings }: LevelRun): LevelFound {
  const refusals = new RefusalCounts();
  const found = level(field, field.home, field.room.copy(departuresFree), { ...settings, refusals });
  return { ...found, refused: refusals.counts };
}

/** A field that another thread has sent: on the way its room lost its methods. */
export const arrived = (field: Field): Field => ({
  ...field,
  room: new Room(field.cluster, field.room.departuresFree, field.room),
});
