import { parentPort } from 'node:worker_threads';
import { type Answer, packed } from './answer.ts';
import { createHand, type Order } from './hand.ts';

/** A thread of the crew: takes orders, answers each. */
const hand = createHand();
parentPort?.on('message', ({ number, order }: { readonly number: number; readonly order: Order }) => {
  let answer: Answer;
  try {
    answer = { number, outcome: hand(order) };
  } catch (error) {
    answer = { number, failed: packed(error) };
  }
  parentPort?.postMessage(answer);
});
