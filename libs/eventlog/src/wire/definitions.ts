import { createHash } from 'node:crypto';
import {
  aggregateToken,
  type BucketDefinition,
  encodeToken,
  type StreamDefinition,
  streamNames,
  subject as subjectOf,
  taskConsumer,
} from '@kronos/contracts';
import type { ConsumerConfig, StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';

/** Streams, durables and buckets as JetStream's own configurations, and how two of them are compared. */

const seconds = (value: number) => nanos(value * 1000);

export const streamConfig = (definition: StreamDefinition, replicas: number) =>
  ({
    name: definition.name,
    description: definition.description,
    subjects: [...definition.subjects],
    retention: definition.retention,
    storage: definition.storage,
    discard: definition.discard,
    max_age: seconds(definition.maxAgeSeconds),
    max_bytes: definition.maxBytes,
    max_msgs: -1,
    max_msgs_per_subject: definition.maxMessagesPerSubject,
    max_msg_size: definition.maxMessageBytes,
    max_consumers: definition.maxConsumers,
    num_replicas: replicas,
    duplicate_window: seconds(definition.duplicateWindowSeconds),
    deny_delete: definition.denyDelete,
    deny_purge: definition.denyPurge,
    allow_direct: true,
  }) as const satisfies Partial<StreamConfig>;

/** The name of the stream behind an object store bucket. */
export const bucketStream = (bucket: string): string => `OBJ_${bucket}`;

/**
 * The stream behind an object store bucket, as clients and the `nats` tool expect it. Where objects age, the oldest go
 * first when it is full; what is to be kept as long as the log is never dropped.
 */
export const bucketConfig = (definition: BucketDefinition, replicas: number) =>
  ({
    name: bucketStream(definition.name),
    description: definition.description,
    subjects: [`$O.${definition.name}.C.>`, `$O.${definition.name}.M.>`],
    retention: 'limits',
    storage: 'file',
    discard: definition.maxAgeSeconds > 0 ? 'old' : 'new',
    max_age: seconds(definition.maxAgeSeconds),
    max_bytes: definition.maxBytes,
    max_consumers: definition.maxConsumers,
    num_replicas: replicas,
    allow_rollup_hdrs: true,
    allow_direct: true,
  }) as const satisfies Partial<StreamConfig>;

const MAX_TOKEN = 200;

/**
 * The durable of an aggregate's tasks. JetStream takes names of up to 255 characters: a longer token is cut and gets its
 * hash; `=sha256` cannot be part of a token, so no two aggregates share a name.
 */
export function taskConsumerName(aggregate: string): string {
  const token = aggregateToken(aggregate);
  if (token.length <= MAX_TOKEN) return `tasks-${token}`;
  const hash = createHash('sha256').update(token).digest('hex');
  return `tasks-${token.slice(0, 100)}=sha256-${hash}`;
}

export const taskConsumerConfig = (aggregate: string, replicas: number, ackWaitSeconds = taskConsumer.ackWaitSeconds) =>
  ({
    name: taskConsumerName(aggregate),
    durable_name: taskConsumerName(aggregate),
    deliver_policy: 'all',
    ack_policy: 'explicit',
    ack_wait: seconds(ackWaitSeconds),
    max_deliver: taskConsumer.maxDeliver,
    max_ack_pending: taskConsumer.maxAckPending,
    filter_subject: subjectOf('migrations', aggregate),
    replay_policy: 'instant',
    num_replicas: replicas,
  }) as const satisfies Partial<ConsumerConfig>;

/** The streams from which notifications are sent. */
export const NOTIFY_STREAMS = [streamNames.log, streamNames.alarms] as const;
export type NotifyStream = (typeof NOTIFY_STREAMS)[number];

const SINK_PREFIX = 'notify-';

/** The durable of a sink, on each of {@link NOTIFY_STREAMS}. The configuration bounds the names of sinks. */
export const sinkConsumerName = (sink: string): string => `${SINK_PREFIX}${encodeToken(sink)}`;
export const isSinkConsumer = (name: string): boolean => name.startsWith(SINK_PREFIX);

/** One message at a time, which keeps the order over all replicas; a new sink starts with the next message. */
export const sinkConsumerConfig = (sink: string, replicas: number) =>
  ({
    name: sinkConsumerName(sink),
    durable_name: sinkConsumerName(sink),
    deliver_policy: 'new',
    ack_policy: 'explicit',
    ack_wait: seconds(SINK_ACK_WAIT_SECONDS),
    max_deliver: -1,
    max_ack_pending: 1,
    replay_policy: 'instant',
    num_replicas: replicas,
  }) as const satisfies Partial<ConsumerConfig>;

export const SINK_ACK_WAIT_SECONDS = 30;

export const TASK_STREAM = streamNames.migrations;

type Fields = Readonly<Record<string, unknown>>;
export type DefinitionDifference = { readonly field: string; readonly want: unknown; readonly have: unknown };

const plain = (value: unknown): string => JSON.stringify(value) ?? 'nothing';

/** Servers leave out what has its zero value, and some say 0 where others say nothing. */
const isZero = (value: unknown): boolean => value === undefined || value === 0 || value === false || value === '';

/** The fields of `want` that `have` lacks or has otherwise; what `want` does not name is not looked at. */
export function definitionDifferences(
  want: Fields,
  have: Fields,
  ignore: readonly string[] = [],
): DefinitionDifference[] {
  return Object.keys(want)
    .filter((field) => !ignore.includes(field))
    .filter((field) => !(isZero(want[field]) && isZero(have[field])) && plain(want[field]) !== plain(have[field]))
    .map((field) => ({ field, want: want[field], have: have[field] }));
}

export const render = (what: string, { field, want, have }: DefinitionDifference): string =>
  `${what}: ${field} is ${plain(have)}, and must be ${plain(want)}`;

/** Servers before 2.14 cannot change this field of an existing stream. The account's own limit holds for such a stream. */
export const FIXED_FIELD = 'max_consumers';

/** Sizes and ages belong to an installation: compared only by who knows its limits. */
export const LIMIT_FIELDS: readonly string[] = ['max_age', 'max_bytes', 'description'];
