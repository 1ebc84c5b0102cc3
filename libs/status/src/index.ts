export type { AggregateStatus } from './aggregate.ts';
export { COOLING_DOWN } from './aggregate.ts';
export { collectFacts, heartbeats, unreadable } from './collect.ts';
export { type DrainStatus, drainStatus } from './drains.ts';
export type * from './facts.ts';
export { alive } from './findings.ts';
export { type Alarm, alarmKey, unreadableCauses } from './judge.ts';
export { type Status, statusOf } from './status.ts';
export * from './times.ts';
