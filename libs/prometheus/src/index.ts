export { createPrometheus, type Prometheus, type RangeSeries, type Sample } from './client.ts';
export * from './errors.ts';
export * from './health.ts';
export * from './match.ts';
export { isPlainSelector } from './selector.ts';
export type { KeystoneAccess } from './transport.ts';
