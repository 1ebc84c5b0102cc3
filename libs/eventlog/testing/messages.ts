import {
  type Actor,
  ALL,
  type Control,
  type LogEventOf,
  type MigrationRequested,
  messageId,
  type ServiceName,
  type ServiceReported,
  type Snapshot,
  type StorageLimits,
  taskId,
} from '@kronos/contracts';

/** Messages for tests of the event log itself. */

const TIME = '2026-01-02T03:04:05.678Z';
export const actor: Actor = { service: 'operator', instance: 'test-1', version: '0.1.0' };

/** Limits that fit a small disk. */
export const testLimits: StorageLimits = {
  snapshotMaxAgeSeconds: 3600,
  snapshotMaxBytes: 64 * 1024 ** 2,
  logMaxBytes: 1024 ** 3,
};

/** A command that a person gives now. */
export const commandEvent = <T extends Control['type']>(
  type: T,
  aggregate: string,
  commandId: string,
  data: Omit<LogEventOf<T>['data'], 'commandId' | 'comment'> & { readonly comment?: string | null },
): LogEventOf<T> =>
  ({
    type,
    version: 1,
    id: messageId.control(commandId),
    time: new Date().toISOString(),
    aggregate,
    by: actor,
    correlationId: commandId,
    causationId: null,
    data: { commandId, comment: null, ...data },
  }) as unknown as LogEventOf<T>;

/** A control event with its own id. */
export const pausedEvent = (
  id: string,
  aggregate = 'gpu',
  comment: string | null = null,
): LogEventOf<'aggregate.paused'> => ({ ...commandEvent('aggregate.paused', aggregate, id, { comment }), time: TIME });

/** A heartbeat of an instance that runs and sends one every 10 s. */
export const reportedEvent = (
  service: ServiceName,
  instance: string,
  time: string,
  data: Partial<ServiceReported['data']> = {},
): ServiceReported => ({
  type: 'service.reported',
  version: 1,
  id: messageId.reported(service, instance, Date.parse(time)),
  time,
  aggregate: ALL,
  by: { service, instance, version: '0.1.0' },
  correlationId: `${service}/${instance}`,
  causationId: null,
  data: {
    ...{ state: 'running', failing: [], startedAt: time, intervalSeconds: 10, aggregates: ['gpu'], options: {} },
    ...data,
  },
});

export const startedEvent = (n: number, aggregate = 'gpu'): LogEventOf<'migration.started'> => {
  const task = taskId(`${aggregate}-${n}`, 1);
  return {
    type: 'migration.started',
    version: 1,
    id: messageId.started(task, 1),
    time: TIME,
    aggregate,
    by: { service: 'executor', instance: 'executor-1', version: '0.1.0' },
    correlationId: `${aggregate}-${n}`,
    causationId: messageId.requested(task, 1),
    data: {
      taskId: task,
      planId: `${aggregate}-${n}`,
      serverId: '7d1e8f8c-5a0f-4a70-8a53-2f5b6b7d9f01',
      attempt: 1,
      from: 'compute-001',
      destination: 'compute-002',
      groups: [],
      newestMigrationId: n,
      forced: false,
      ramMb: 4096,
      diskGb: 20,
    },
  };
};

export const taskMessage = (n: number, aggregate = 'gpu'): MigrationRequested => {
  const planId = `${aggregate}-${n}`;
  const task = taskId(planId, 1);
  return {
    type: 'migration.requested',
    version: 1,
    id: messageId.requested(task, 1),
    time: TIME,
    aggregate,
    by: { service: 'planner', instance: 'planner-1', version: '0.1.0' },
    correlationId: planId,
    causationId: messageId.decided(planId),
    data: {
      step: 1,
      taskId: task,
      phase: 'spread',
      parking: false,
      serverId: '7d1e8f8c-5a0f-4a70-8a53-2f5b6b7d9f01',
      serverName: 'web-1',
      from: 'compute-001',
      to: 'compute-002',
      alternates: [],
      dependsOn: [],
      groups: [],
      resources: { VCPU: 2, MEMORY_MB: 4096 },
      ramMb: 4096,
      diskGb: 20,
      weights: { cpu: { source: 0.1, destination: 0.1 } },
      planId,
      attempt: 1,
      destination: 'compute-002',
      notBefore: TIME,
      notAfter: TIME,
    },
  };
};

export const emptySnapshot = (id: string, aggregate = 'gpu'): Snapshot => ({
  version: 1,
  id,
  aggregate,
  purpose: 'cycle',
  cycle: 1,
  intervalSeconds: 60,
  observedFrom: TIME,
  time: TIME,
  policies: [],
  hosts: [],
  servers: [],
  serverGroups: [],
  migrations: [],
  hostReadings: [],
  vmReadings: [],
  problems: [],
  notes: [],
  scores: { policies: [], combined: null },
});
