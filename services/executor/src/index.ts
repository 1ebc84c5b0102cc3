/** Exports for tests and benchmarks outside of this folder; no other part of Kronos imports a service. */
export type { TaskMeters } from './meters.ts';
export { defaultTaskOptions, type TaskOptions } from './options.ts';
export { executorService } from './service.ts';
export type { Task } from './taskFacts.ts';
export type { TaskState } from './taskStages.ts';
