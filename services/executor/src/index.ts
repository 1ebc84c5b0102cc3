/** What tests and benchmarks outside of this folder use; no other part of Kronos imports a service. */
export { systemClock } from './clock.ts';
export { type TaskMeters, taskMeters } from './meters.ts';
export { defaultTaskOptions, type TaskOptions, taskOptions } from './options.ts';
export { providers } from './providers.ts';
export { executorService, servedAggregates } from './service.ts';
export type { StageName, Task, TaskState } from './task.ts';
export { createExecutor, type Executor, type ExecutorDeps } from './worker.ts';
