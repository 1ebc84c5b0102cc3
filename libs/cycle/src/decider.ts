import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { type Cycle, type CycleInput, runCycle } from './cycle.ts';

/** Decides cycles, without holding up the event loop of its caller where it has threads. */
export type Decider = {
  /** @throws what {@link runCycle} throws, as an `Error` with its message; and when the thread ends, which takes its open cycles with it */
  readonly cycle: (input: CycleInput) => Promise<Cycle>;
  readonly close: () => Promise<void>;
};

/** What the thread is asked, and what it answers. */
export type Asked = { readonly number: number; readonly input: CycleInput };
export type Answered = { readonly number: number } & ({ readonly cycle: Cycle } | { readonly problem: string });

/** More threads than this find little to do. */
const MOST_THREADS = 4;

/** Threads by default: one for each core. */
export const defaultSearchThreads = (): number => Math.min(MOST_THREADS, availableParallelism());

/** Decides on the thread of the caller. */
export const decideHere: Decider = {
  cycle: async (input) => runCycle(input),
  close: async () => undefined,
};

/**
 * Decides cycles one after the other in a thread of its own, which is started when there is one to decide, and searches on several.
 *
 * @param threads that search; 1: everything happens on the thread of the caller
 */
export function decider(threads: number): Decider {
  if (threads < 2) return decideHere;
  let number = 0;
  let running: { readonly worker: Worker; readonly open: Map<number, PromiseWithResolvers<Cycle>> } | null = null;

  function start() {
    const worker = new Worker(new URL('./deciderThread.ts', import.meta.url), { workerData: { threads } });
    // A planner that stops does not wait for it.
    worker.unref();
    const own = { worker, open: new Map<number, PromiseWithResolvers<Cycle>>() };
    const end = (error: Error): void => {
      if (running === own) running = null;
      for (const { reject } of own.open.values()) reject(error);
      own.open.clear();
    };
    worker.on('message', (answered: Answered) => {
      const asked = own.open.get(answered.number);
      own.open.delete(answered.number);
      if ('problem' in answered) asked?.reject(new Error(answered.problem));
      else asked?.resolve(answered.cycle);
    });
    worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => end(new Error("the planner's thread ended")));
    running = own;
    return own;
  }

  return {
    cycle(input) {
      const { worker, open } = running ?? start();
      number += 1;
      const asked = Promise.withResolvers<Cycle>();
      open.set(number, asked);
      worker.postMessage({ number, input } satisfies Asked);
      return asked.promise;
    },
    async close() {
      await running?.worker.terminate();
    },
  };
}
