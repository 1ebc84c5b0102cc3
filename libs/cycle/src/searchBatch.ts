import { carriedOut, type LevelFound, type LevelRun, REFUSALS } from '@kronos/placement/runs';

/** How far a run is. */
export const FREE = 0;
export const TAKEN = 1;
export const DONE = 2;

/** Runs with memory that all threads share: each is carried out by the thread that takes it first. */
export type Batch = {
  readonly runs: readonly LevelRun[];
  /** By run: how far it is. */
  readonly progress: Int32Array<SharedArrayBuffer>;
  /** By run: the placement that it found; then its steps, whether room was short (1), and what it refused. */
  readonly places: readonly Int32Array<SharedArrayBuffer>[];
  readonly figures: readonly Float64Array<SharedArrayBuffer>[];
};

export function newBatch(runs: readonly LevelRun[]): Batch {
  const ints = (length: number) => new Int32Array(new SharedArrayBuffer(4 * length));
  return {
    runs,
    progress: ints(runs.length),
    places: runs.map(({ field }) => ints(field.V)),
    figures: runs.map(() => new Float64Array(new SharedArrayBuffer(8 * (2 + REFUSALS)))),
  };
}

/** Takes the first free run from `from` on; -1 where there is none. */
export function take({ runs, progress }: Batch, from: number): number {
  for (let i = from; i < runs.length; i++) if (Atomics.compareExchange(progress, i, FREE, TAKEN) === FREE) return i;
  return -1;
}

/** Carries out a run that was taken. */
export function carryOutOf(batch: Batch, i: number): void {
  const { places, figures, progress, runs } = batch;
  const { place, steps, tight, refused } = carriedOut(runs[i] as LevelRun);
  places[i]?.set(place);
  figures[i]?.set([steps, tight ? 1 : 0, ...refused]);
  Atomics.store(progress, i, DONE);
  Atomics.notify(progress, i);
}

export function read({ places, figures }: Batch, i: number): LevelFound {
  const [steps = 0, tight = 0, ...refused] = figures[i] ?? [];
  return { place: Int32Array.from(places[i] ?? []), steps, tight: tight === 1, refused: Float64Array.from(refused) };
}
