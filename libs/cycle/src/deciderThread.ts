import { workerData } from 'node:worker_threads';
import { decide } from '@kronos/placement';
import { type DeciderOrder, decideProposal } from './deciderOrders.ts';
import { answerOrders } from './orderThread.ts';
import { searchThreads } from './searchThreads.ts';

/** The thread that decides: one cycle or request after the other. */
const { carryOut } = searchThreads((workerData as { readonly threads: number }).threads);
answerOrders((order: DeciderOrder) => (order.kind === 'cycle' ? decide(order.input, carryOut) : decideProposal(order)));
