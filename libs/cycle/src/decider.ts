import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Decision } from '@kronos/contracts';
import type { DecideInput } from '@kronos/placement';
import { type Cycle, type CycleInput, cycleOf, runCycle } from './cycle.ts';
import { decideInput } from './memory.ts';
import { orderThread } from './orderThread.ts';

/** Decides cycles, without holding up the event loop of its caller where it has threads. */
export type Decider = {
  /**
   * @param begun called when the decision begins: the cycles before it are decided
   * @throws what {@link runCycle} throws, as an `Error` with its message; and when the thread ends, which takes its open cycles with it
   */
  readonly cycle: (input: CycleInput, begun?: () => void) => Promise<Cycle>;
  /** Ends the decisions under way on a thread: they are rejected. */
  readonly close: () => Promise<void>;
};

/** Decisions about fewer servers take less time than a thread needs to start. */
const WORTH = 100;

/** More threads than this find little to do. */
const MOST_THREADS = 4;

/** Threads by default: one for each core. */
export const defaultSearchThreads = (): number => Math.min(MOST_THREADS, availableParallelism());

/** Decides on the thread of the caller. */
export const decideHere: Decider = {
  async cycle(input, begun) {
    begun?.();
    return runCycle(input);
  },
  close: async () => undefined,
};

/**
 * Decides cycles one after the other in a thread of its own, which starts with the first of them, and searches on several.
 *
 * @param asked `[engine] search_threads`: threads that search, the deciding one among them. 0: as many as there are cores. 1: there is no
 *   thread, everything happens on that of the caller
 * @param worth snapshots with fewer servers are left to the caller
 */
export function decider(asked: number, worth = WORTH): Decider {
  if (asked === 1) return decideHere;
  const threads = asked || defaultSearchThreads();
  const thread = orderThread<DecideInput, Decision>({
    start() {
      const worker = new Worker(new URL('./deciderThread.ts', import.meta.url), { workerData: { threads } });
      // A planner that stops does not wait for it.
      worker.unref();
      return worker;
    },
    name: "the planner's thread",
  });
  return {
    async cycle(input, begun) {
      if (input.snapshot.servers.length < worth) return decideHere.cycle(input, begun);
      // The folded state stays with the caller: only the memory about the snapshot is sent.
      const asked = decideInput(input.state, input.snapshot, input.options);
      return cycleOf(input, asked, await thread.ask(asked, begun));
    },
    close: thread.close,
  };
}
