/** Exports for tests and benchmarks outside of this folder; no other part of Kronos imports a service. */
export { checkedCloud } from './checkedCloud.ts';
export { systemClock } from './clock.ts';
export { type TaskMeters, taskMeters } from './meters.ts';
export { defaultTaskOptions, type TaskOptions } from './options.ts';
export { executorService } from './service.ts';
export type { Task, TaskState } from './taskStages.ts';
export { createExecutor, type Executor } from './worker.ts';
