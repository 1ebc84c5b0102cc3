import { Worker } from 'node:worker_threads';
import { type CarryOut, inTurn, type LevelFound, type LevelRun } from '@kronos/placement/runs';
import { carryOutOf, DONE, FREE, newBatch, read, TAKEN, take } from './searchBatch.ts';

/** Runs with fewer proposals than this together take less time than to hand them out. */
const WORTH = 300_000;
/** A thread that has not ended a run after this time may have died: the caller carries it out itself. */
const PATIENCE_MS = 10_000;

type SearchThreads = {
  /** Waits for other threads without giving way to the event loop. */
  readonly carryOut: CarryOut;
  readonly close: () => Promise<void>;
};

/**
 * Carries out runs of the search on this many threads: the caller's, and others that are started when there is work for them and are
 * kept. What comes out does not depend on their number.
 *
 * @param worth runs with fewer proposals together are left to the caller
 */
export function searchThreads(threads: number, worth = WORTH): SearchThreads {
  const others = new Set<Worker>();

  function start(): void {
    while (others.size < threads - 1) {
      const worker = new Worker(new URL('./searchThread.ts', import.meta.url));
      others.add(worker);
      // A program that is done does not wait for it. When it fails, the caller carries out its runs.
      worker.unref();
      worker.on('error', () => others.delete(worker));
      worker.on('exit', () => others.delete(worker));
    }
  }

  function* shared(runs: readonly LevelRun[]): Generator<LevelFound, void, undefined> {
    const batch = newBatch(runs);
    start();
    for (const worker of others) worker.postMessage(batch);
    try {
      for (let i = 0; i < runs.length; i++) {
        // Until its turn is over somewhere else, this thread carries out others.
        while (Atomics.load(batch.progress, i) !== DONE) {
          const free = take(batch, i);
          if (free >= 0) carryOutOf(batch, free);
          else if (Atomics.wait(batch.progress, i, TAKEN, PATIENCE_MS) === 'timed-out') carryOutOf(batch, i);
        }
        yield read(batch, i);
      }
    } finally {
      // The caller wants no more of them.
      for (let i = 0; i < runs.length; i++) Atomics.compareExchange(batch.progress, i, FREE, TAKEN);
    }
  }

  return {
    carryOut(runs) {
      const proposals = runs.reduce((sum, { steps }) => sum + steps, 0);
      return threads < 2 || runs.length < 2 || proposals < worth ? inTurn(runs) : shared(runs);
    },
    close: async () => void (await Promise.all([...others].map((worker) => worker.terminate()))),
  };
}
