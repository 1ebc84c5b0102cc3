export { callHooks } from './calls.ts';
export { type ClockCheck, checkClock, logClock } from './clockCheck.ts';
export { awaitTrustedLog, foldVerified, type GuardInput, holdThroughReplacement } from './guarded.ts';
export { type Heartbeats, reportService } from './heartbeat.ts';
export type { ServiceLog } from './instrumented.ts';
export { connectLog, healthCheck, natsOptions } from './nats.ts';
export { authOptions, type Cloud, openCloud } from './openstack.ts';
export { openPrometheus } from './prometheus.ts';
export { scrubbed } from './scrubbed.ts';
