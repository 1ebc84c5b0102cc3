export type { AggregateStatus } from './aggregate.ts';
export { COOLING_DOWN } from './aggregate.ts';
export { cellStage } from './cells.ts';
export { collectFacts, LivingInstances, unreadable } from './collect.ts';
export { type DrainStatus, drainStatus } from './drains.ts';
export type * from './facts.ts';
export { type Alarm, alarmKey, unreadableCauses } from './judge.ts';
export { type Status, statusOf } from './status.ts';
export * from './times.ts';
