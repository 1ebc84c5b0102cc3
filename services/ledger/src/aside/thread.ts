import { parentPort } from 'node:worker_threads';
import type { Reply, Request } from './aside.ts';
import { createHand } from './hand.ts';

/** Takes orders from the ledger, answers each. */
const hand = createHand();
parentPort?.on('message', ({ number, order }: Request) => {
  let reply: Reply;
  try {
    reply = { number, answer: hand(order) };
  } catch (error) {
    reply = { number, problem: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  parentPort?.postMessage(reply);
});
