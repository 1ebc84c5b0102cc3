import { Room } from '../../cluster/constraints.ts';
import { RefusalCounts } from '../../reasons.ts';
import type { Annealed } from './anneal.ts';
import type { Field } from './field.ts';
import { type LevelSettings, level } from './level.ts';

/** A run of {@link level}. It depends on these fields only, so runs may execute in any order and in parallel. */
export type LevelRun = Omit<LevelSettings, 'refusals'> & {
  readonly field: Field;
  /** The placement at the start. */
  readonly start: Int32Array;
  /** Departures make room. */
  readonly departuresFree: boolean;
};

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

export function carriedOut({ field, start, departuresFree, ...settings }: LevelRun): LevelFound {
  const refusals = new RefusalCounts();
  const found = level(field, start, field.room.copy(departuresFree), { ...settings, refusals });
  return { ...found, refused: refusals.counts };
}

/** Restores a field from another thread: its room lost its methods on the way. */
export const arrived = (field: Field): Field => ({
  ...field,
  room: new Room(field.cluster, field.room.departuresFree, field.room),
});
