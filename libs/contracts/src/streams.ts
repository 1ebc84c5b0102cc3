/** Streams, durables and buckets: `kronos provision` creates them and services compare them. Sizes in bytes, times in seconds. */

export type StreamDefinition = {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: 'limits' | 'workqueue';
  readonly discard: 'old' | 'new';
  /** Heartbeats stay in memory: they must arrive while the disks are full, and none is needed after a restart. */
  readonly storage: 'file' | 'memory';
  /** 0: no limit. */
  readonly maxAgeSeconds: number;
  /** -1: no limit. */
  readonly maxBytes: number;
  readonly maxMessagesPerSubject: number;
  readonly maxMessageBytes: number;
  readonly denyDelete: boolean;
  readonly denyPurge: boolean;
  readonly duplicateWindowSeconds: number;
  /** Consumers at once; -1: no limit. A reader that makes more is refused, so that none can fill the server. */
  readonly maxConsumers: number;
  readonly description: string;
};

export const streamNames = {
  snapshots: 'KRONOS_SNAPSHOTS',
  log: 'KRONOS_LOG',
  migrations: 'KRONOS_MIGRATIONS',
  checkpoints: 'KRONOS_CHECKPOINTS',
  inventory: 'KRONOS_INVENTORY',
  services: 'KRONOS_SERVICES',
  alarms: 'KRONOS_ALARMS',
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

/** The largest message that Kronos may send, headers included: what `max_payload` of the NATS servers must allow. */
export const MAX_MESSAGE_BYTES = MIB;

/**
 * Consumers of a stream that services and people read. Each process has two or three; this leaves room for a large
 * installation and for readers that were killed, whose consumers the server forgets after half a minute.
 */
const READERS = 512;
/** Kronos reads objects without consumers; other tools make one for each object. */
const OBJECT_READERS = 64;

/** The limit of the account in deploy/nats, per stream: it also holds for streams that were made without a limit. */
export const ACCOUNT_MAX_CONSUMERS = 1024;

/** The settings of a stream unless its definition has others. */
const COMMON = {
  retention: 'limits',
  discard: 'old',
  storage: 'file',
  maxAgeSeconds: 0,
  maxMessagesPerSubject: -1,
  maxMessageBytes: MAX_MESSAGE_BYTES,
  denyDelete: false,
  denyPurge: false,
  duplicateWindowSeconds: 120,
  maxConsumers: READERS,
} as const;

/** Every stream, with the limits of this installation. */
export function streamDefinitions(limits: StorageLimits): StreamDefinition[] {
  return [
    {
      ...COMMON,
      name: streamNames.snapshots,
      subjects: ['kronos.snapshots.*'],
      maxAgeSeconds: limits.snapshotMaxAgeSeconds,
      maxBytes: 256 * MIB,
      description: 'What was seen: the complete input of each decision',
    },
    {
      ...COMMON,
      name: streamNames.log,
      subjects: ['kronos.plans.*', 'kronos.results.*', 'kronos.controls.*', 'kronos.custody.*'],
      discard: 'new',
      maxBytes: limits.logMaxBytes,
      denyDelete: true,
      denyPurge: true,
      description: 'The event log: what was decided, what happened, what people asked',
    },
    {
      ...COMMON,
      name: streamNames.migrations,
      subjects: ['kronos.migrations.*'],
      retention: 'workqueue',
      discard: 'new',
      maxBytes: 512 * MIB,
      // One durable per aggregate, which only the provisioner may make.
      maxConsumers: -1,
      description: 'Tasks to be done',
    },
    {
      ...COMMON,
      name: streamNames.checkpoints,
      subjects: ['kronos.ledger.*'],
      maxBytes: 512 * MIB,
      maxMessagesPerSubject: 8,
      description: 'Folded state, up to a log sequence',
    },
    {
      ...COMMON,
      name: streamNames.inventory,
      subjects: ['kronos.inventory.*'],
      maxBytes: 512 * MIB,
      maxMessagesPerSubject: 1,
      description: 'Host to instances, from notifications of Nova',
    },
    {
      ...COMMON,
      name: streamNames.services,
      subjects: ['kronos.services.*.*'],
      storage: 'memory',
      maxAgeSeconds: 600,
      maxBytes: 16 * MIB,
      maxMessagesPerSubject: 1,
      description: 'Heartbeats of the services, for kronos status',
    },
    {
      ...COMMON,
      name: streamNames.alarms,
      subjects: ['kronos.alarms.*'],
      // An alarm that stays open for this time is raised, and sent, again.
      maxAgeSeconds: 30 * 86_400,
      maxBytes: 64 * MIB,
      maxMessagesPerSubject: 16,
      description: 'Alarms that were raised and resolved, for notifications',
    },
  ];
}

export type BucketDefinition = {
  readonly name: string;
  /** 0: as long as the log. */
  readonly maxAgeSeconds: number;
  readonly maxBytes: number;
  readonly maxConsumers: number;
  readonly description: string;
};

/** Object store buckets; snapshots are kept a day longer than the messages that refer to them. */
export function bucketDefinitions(limits: StorageLimits): BucketDefinition[] {
  return [
    {
      name: bucketNames.snapshots,
      maxConsumers: OBJECT_READERS,
      maxAgeSeconds: limits.snapshotMaxAgeSeconds + 86_400,
      maxBytes: limits.snapshotMaxBytes,
      description: 'Snapshots in full, gzip',
    },
    {
      name: bucketNames.details,
      maxConsumers: OBJECT_READERS,
      maxAgeSeconds: 0,
      maxBytes: limits.logMaxBytes,
      description: 'Details of large decisions, gzip',
    },
    {
      name: bucketNames.checkpoints,
      maxConsumers: OBJECT_READERS,
      maxAgeSeconds: 30 * 86_400,
      maxBytes: 1024 * MIB,
      description: 'Folded states that are too large for a message, gzip',
    },
  ];
}

/** Bytes that JetStream must be able to store per replica: the sum of the limits of all streams and buckets. */
export function storageNeeded(limits: StorageLimits): { readonly file: number; readonly memory: number } {
  const sum = (parts: readonly { readonly maxBytes: number }[]) =>
    parts.reduce((all, { maxBytes }) => all + maxBytes, 0);
  const { file = [], memory = [] } = Object.groupBy(streamDefinitions(limits), ({ storage }) => storage);
  return { file: sum(file) + sum(bucketDefinitions(limits)), memory: sum(memory) };
}

/** The durable consumer of one aggregate's tasks. */
export type TaskConsumerDefinition = {
  readonly ackWaitSeconds: number;
  readonly maxAckPending: number;
  /** -1: a task ends by its result, never by its count of deliveries. */
  readonly maxDeliver: -1;
};
export const taskConsumer: TaskConsumerDefinition = { ackWaitSeconds: 30, maxAckPending: 20_000, maxDeliver: -1 };
