import type { Task } from './taskStages.ts';

/** When the sample task was asked for. */
export const SAMPLE_MS = Date.parse('2026-03-01T12:00:00.000Z');

/** A task for tests: `vm` from h1 to h2, with h3 and h4 as alternates, for an hour. */
export const sampleTask = (changes: Partial<Task> = {}): Task => ({
  step: 1,
  taskId: 'p-s1',
  planId: 'p',
  phase: 'spread',
  parking: false,
  serverId: 'vm',
  serverName: 'vm',
  from: 'h1',
  to: 'h2',
  alternates: ['h3', 'h4'],
  dependsOn: [],
  groups: [],
  resources: { VCPU: 2 },
  ramMb: 4096,
  diskGb: 0,
  weights: {},
  attempt: 1,
  destination: 'h2',
  notBefore: new Date(SAMPLE_MS).toISOString(),
  notAfter: new Date(SAMPLE_MS + 3_600_000).toISOString(),
  aggregate: 'gpu',
  ...changes,
});
