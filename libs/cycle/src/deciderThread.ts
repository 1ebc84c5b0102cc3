import { workerData } from 'node:worker_threads';
import { type DecideInput, decide } from '@kronos/placement';
import { answerOrders } from './orderThread.ts';
import { searchThreads } from './searchThreads.ts';

/** The thread that decides: one cycle after the other. */
const { carryOut } = searchThreads((workerData as { readonly threads: number }).threads);
answerOrders((input: DecideInput) => decide(input, carryOut));
