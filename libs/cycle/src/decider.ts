import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Decision, ProposalDecision } from '@kronos/contracts';
import { type Cycle, type CycleInput, cycleOf, runCycle } from './cycle.ts';
import type { DeciderOrder } from './deciderOrders.ts';
import { decideInput } from './memory.ts';
import { orderThread } from './orderThread.ts';
import { type Proposal, type ProposalInput, proposalAsked, proposalOf, runProposal } from './proposals.ts';

/** Decides cycles and people's requests for plans, without holding up the event loop of its caller where it has threads. */
export type Decider = {
  /**
   * @param begun called when the decision begins: the cycles before it are decided
   * @throws what {@link runCycle} throws, as an `Error` with its message; and when the thread ends, which takes its open cycles with it
   */
  readonly cycle: (input: CycleInput, begun?: () => void) => Promise<Cycle>;
  /** @throws what {@link runProposal} throws, likewise */
  readonly proposal: (input: ProposalInput) => Promise<Proposal>;
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
  proposal: async (input) => runProposal(input),
  close: async () => undefined,
};

/**
 * Decides one after the other in a thread of its own, which starts with the first of them, and searches on several.
 *
 * @param asked `[engine] search_threads`: threads that search, the deciding one among them. 0: as many as there are cores. 1: there is no
 *   thread, everything happens on that of the caller
 * @param worth snapshots with fewer servers are left to the caller
 */
export function decider(asked: number, worth = WORTH): Decider {
  if (asked === 1) return decideHere;
  const threads = asked || defaultSearchThreads();
  const thread = orderThread<DeciderOrder, Decision | ProposalDecision>({
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
      const decision = await thread.ask({ kind: 'cycle', input: asked }, begun);
      return cycleOf(input, asked, decision as Decision);
    },
    async proposal(input) {
      const { request, refusal } = input;
      const others = request.kind === 'cells' ? request.snapshot.cells.others : [];
      const servers = [request.snapshot, ...others].reduce((sum, one) => sum + one.servers.length, 0);
      if (refusal !== null || servers < worth) return decideHere.proposal(input);
      const asked = proposalAsked(input);
      return proposalOf(input, asked, (await thread.ask(asked)) as ProposalDecision);
    },
    close: thread.close,
  };
}
