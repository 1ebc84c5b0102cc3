import { parentPort, workerData } from 'node:worker_threads';
import { decide } from '@kronos/placement';
import type { Answered, Asked } from './decider.ts';
import { searchThreads } from './searchThreads.ts';

/** The thread that decides: one cycle after the other. */
const { carryOut } = searchThreads((workerData as { readonly threads: number }).threads);
parentPort?.on('message', ({ number, input }: Asked) => {
  let answered: Answered;
  try {
    answered = { number, decision: decide(input, carryOut) };
  } catch (error) {
    answered = { number, problem: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  parentPort?.postMessage(answered);
});
