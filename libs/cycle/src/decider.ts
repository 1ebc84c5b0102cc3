import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Decision } from '@kronos/contracts';
import type { DecideInput } from '@kronos/placement';
import { type Cycle, type CycleInput, cycleOf, runCycle } from './cycle.ts';
import { decideInput } from './memory.ts';

/** Decides cycles, without holding up the event loop of its caller where it has threads. */
export type Decider = {
  /** @throws what {@link runCycle} throws, as an `Error` with its message; and when the thread ends, which takes its open cycles with it */
  readonly cycle: (input: CycleInput) => Promise<Cycle>;
  readonly close: () => Promise<void>;
};

/** The messages to the thread and from it. The folded state stays with the caller: only the memory about the snapshot is sent. */
export type Asked = { readonly number: number; readonly input: DecideInput };
export type Answered = { readonly number: number } & ({ readonly decision: Decision } | { readonly problem: string });

/** Decisions about fewer servers take less time than a thread needs to start. */
const WORTH = 100;

/** More threads than this find little to do. */
const MOST_THREADS = 4;

/** Threads by default: one for each core. */
export const defaultSearchThreads = (): number => Math.min(MOST_THREADS, availableParallelism());

type Running = {
  readonly worker: Worker;
  /** By number: the decisions that the thread has not answered. */
  readonly open: Map<number, PromiseWithResolvers<Decision>>;
  /** Rejects them: the thread is gone. */
  readonly end: (error: Error) => void;
};

const ended = (): Error => new Error("the planner's thread ended");

/** Decides on the thread of the caller. */
export const decideHere: Decider = {
  cycle: async (input) => runCycle(input),
  close: async () => undefined,
};

/**
 * Decides cycles one after the other in a thread of its own, which starts with the first of them, and searches on several.
 *
 * @param threads that search; 1: everything happens on the thread of the caller
 * @param worth snapshots with fewer servers are left to the caller
 */
export function decider(threads: number, worth = WORTH): Decider {
  if (threads < 2) return decideHere;
  let number = 0;
  let running: Running | null = null;

  function start() {
    const worker = new Worker(new URL('./deciderThread.ts', import.meta.url), { workerData: { threads } });
    // A planner that stops does not wait for it.
    worker.unref();
    const own: Running = {
      worker,
      open: new Map(),
      end(error) {
        if (running === own) running = null;
        for (const { reject } of own.open.values()) reject(error);
        own.open.clear();
      },
    };
    worker.on('message', (answered: Answered) => {
      const asked = own.open.get(answered.number);
      own.open.delete(answered.number);
      if ('problem' in answered) asked?.reject(new Error(answered.problem));
      else asked?.resolve(answered.decision);
    });
    worker.on('error', (error) => own.end(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => own.end(ended()));
    running = own;
    return own;
  }

  function decide(input: DecideInput): Promise<Decision> {
    const { worker, open } = running ?? start();
    number += 1;
    const asked = Promise.withResolvers<Decision>();
    open.set(number, asked);
    worker.postMessage({ number, input } satisfies Asked);
    return asked.promise;
  }

  return {
    async cycle(input) {
      if (input.snapshot.servers.length < worth) return runCycle(input);
      const asked = decideInput(input.state, input.snapshot, input.options);
      return cycleOf(input, asked, await decide(asked));
    },
    async close() {
      const last = running;
      // First, so that no answer on its way resolves one of them.
      last?.end(ended());
      await last?.worker.terminate();
    },
  };
}
