export type { AggregateStatus, MoveStatus } from './aggregate.ts';
export { aggregateStatus, COOLING_DOWN } from './aggregate.ts';
export { type Cause, type CauseCode, causes, type Place } from './causes.ts';
export { collectFacts, heartbeats, unreadable } from './collect.ts';
export type * from './facts.ts';
export { alive, type Finding, findings } from './findings.ts';
export { type Alarm, alarms, judge } from './judge.ts';
export { type ServiceStatus, type Status, statusOf } from './status.ts';
export * from './times.ts';
