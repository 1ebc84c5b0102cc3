import type { Aggregate, ComputeService, Server } from '@kronos/openstack';
import { server } from '@kronos/openstack/testing';
import type { CheckOptions } from '../src/preflightRules.ts';
import type { PreflightVerdict, Task } from '../src/taskFacts.ts';

/** The time at which the sample task was requested, ms since the epoch. */
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

/** A server for tests: `vm`, ACTIVE on h1. */
export const sampleServer = (changes: Partial<Server> = {}): Server =>
  server('vm', 'h1', { name: 'vm', flavor: null, availabilityZone: 'az1', ...changes });

export const sampleService = (host: string, changes: Partial<ComputeService> = {}): ComputeService => ({
  id: host,
  host,
  binary: 'nova-compute',
  zone: 'az1',
  status: 'enabled',
  state: 'up',
  cellDown: false,
  forcedDown: false,
  disabledReason: null,
  updatedAt: null,
  ...changes,
});

export const sampleAggregate = (name: string, ...hosts: string[]): Aggregate => ({
  id: 1,
  uuid: name,
  name,
  availabilityZone: null,
  hosts,
  metadata: {},
});

export const sampleOptions: CheckOptions = {
  aggregates: ['gpu'],
  optOut: ['kronos:exclude'],
  restrictToAz: false,
  softRules: 'veto',
  force: false,
  timezone: { name: 'UTC', since: [], offsetSeconds: [] },
  evacuationIgnoresWindows: false,
  awaited: false,
  moveUnknownTopology: false,
  movableDevices: [],
  refusals: [],
  nowMs: Date.parse('2026-11-23T12:00:00Z'),
};

/** A verdict in a few words: code, type, who is to blame, and the host for the breaker. */
export const wordsOf = (verdict: PreflightVerdict | null): string => {
  if (verdict === null) return 'nothing against it';
  if (verdict.kind !== 'no') return verdict.kind;
  const { reason, errorType, fault, hostAtFault } = verdict.failure;
  return `${reason.code} ${errorType} ${fault}${hostAtFault === null ? '' : ` ${hostAtFault}`}`;
};
