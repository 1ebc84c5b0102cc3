export * from './cycle.ts';
export { type Decider, decideHere, decider, defaultSearchThreads } from './decider.ts';
export * from './drains.ts';
export * from './events.ts';
export * from './memory.ts';
export { answerOrders, orderThread } from './orderThread.ts';
export * from './proposals.ts';
export * from './requests.ts';
export { searchThreads } from './searchThreads.ts';
