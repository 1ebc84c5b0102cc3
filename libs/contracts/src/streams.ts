/** Streams, durables and buckets: what `kronos provision` makes and what services compare. Sizes in bytes, times in seconds. */

export type StreamDefinition = {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: 'limits' | 'workqueue';
  readonly discard: 'old' | 'new';
  /** 0: no limit. */
  readonly maxAgeSeconds: number;
  /** -1: no limit. */
  readonly maxBytes: number;
  readonly maxMessagesPerSubject: number;
  readonly maxMessageBytes: number;
  readonly denyDelete: boolean;
  readonly denyPurge: boolean;
  readonly duplicateWindowSeconds: number;
  readonly description: string;
};

export const streamNames = {
  snapshots: 'KRONOS_SNAPSHOTS',
  log: 'KRONOS_LOG',
  migrations: 'KRONOS_MIGRATIONS',
  checkpoints: 'KRONOS_CHECKPOINTS',
  inventory: 'KRONOS_INVENTORY',
} as const;

export const bucketNames = {
  snapshots: 'kronos-snapshots',
  details: 'kronos-details',
  checkpoints: 'kronos-checkpoints',
} as const;

export type StorageLimits = {
  readonly snapshotMaxAgeSeconds: number;
  readonly snapshotMaxBytes: number;
  readonly logMaxBytes: number;
};

export const defaultStorageLimits: StorageLimits = {
  snapshotMaxAgeSeconds: 3 * 86_400,
  snapshotMaxBytes: 2 * 1024 ** 3,
  logMaxBytes: 8 * 1024 ** 3,
};

const MIB = 1024 ** 2;

/** Every stream, with the limits of this installation. */
export function streamDefinitions(limits: StorageLimits): StreamDefinition[] {
  const common = {
    maxMessagesPerSubject: -1,
    maxMessageBytes: MIB,
    denyDelete: false,
    denyPurge: false,
    duplicateWindowSeconds: 120,
  };
  return [
    {
      ...common,
      name: streamNames.snapshots,
      subjects: ['kronos.snapshots.*'],
      retention: 'limits',
      discard: 'old',
      maxAgeSeconds: limits.snapshotMaxAgeSeconds,
      maxBytes: 256 * MIB,
      description: 'What was seen: the complete input of each decision',
    },
    {
      ...common,
      name: streamNames.log,
      subjects: ['kronos.plans.*', 'kronos.results.*', 'kronos.controls.*'],
      retention: 'limits',
      discard: 'new',
      maxAgeSeconds: 0,
      maxBytes: limits.logMaxBytes,
      denyDelete: true,
      denyPurge: true,
      description: 'The event log: what was decided, what happened, what people asked',
    },
    {
      ...common,
      name: streamNames.migrations,
      subjects: ['kronos.migrations.*'],
      retention: 'workqueue',
      discard: 'new',
      maxAgeSeconds: 0,
      maxBytes: 512 * MIB,
      description: 'Tasks to be done',
    },
    {
      ...common,
      name: streamNames.checkpoints,
      subjects: ['kronos.ledger.*'],
      retention: 'limits',
      discard: 'old',
      maxAgeSeconds: 0,
      maxBytes: 512 * MIB,
      maxMessagesPerSubject: 8,
      description: 'Folded state, up to a log sequence',
    },
    {
      ...common,
      name: streamNames.inventory,
      subjects: ['kronos.inventory.*'],
      retention: 'limits',
      discard: 'old',
      maxAgeSeconds: 0,
      maxBytes: 512 * MIB,
      maxMessagesPerSubject: 1,
      description: 'Host to instances, from notifications of Nova',
    },
  ];
}

export type BucketDefinition = {
  readonly name: string;
  /** 0: as long as the log. */
  readonly maxAgeSeconds: number;
  readonly maxBytes: number;
  readonly description: string;
};

/** Object store buckets; snapshots are kept a day longer than the messages that refer to them. */
export function bucketDefinitions(limits: StorageLimits): BucketDefinition[] {
  return [
    {
      name: bucketNames.snapshots,
      maxAgeSeconds: limits.snapshotMaxAgeSeconds + 86_400,
      maxBytes: limits.snapshotMaxBytes,
      description: 'Snapshots in full, gzip',
    },
    {
      name: bucketNames.details,
      maxAgeSeconds: 0,
      maxBytes: limits.logMaxBytes,
      description: 'Details of large decisions, gzip',
    },
    {
      name: bucketNames.checkpoints,
      maxAgeSeconds: 30 * 86_400,
      maxBytes: 1024 * MIB,
      description: 'Folded states that are too large for a message, gzip',
    },
  ];
}

/** The durable consumer of one aggregate's tasks. */
export type TaskConsumerDefinition = {
  readonly ackWaitSeconds: number;
  readonly maxAckPending: number;
  /** -1: a task ends by its result, never by its count of deliveries. */
  readonly maxDeliver: -1;
};
export const taskConsumer: TaskConsumerDefinition = { ackWaitSeconds: 30, maxAckPending: 20_000, maxDeliver: -1 };
