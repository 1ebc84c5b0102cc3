import type { ServerReading } from '@kronos/clock';
import type {
  Actor,
  Family,
  LogMark,
  Message,
  MigrationRequested,
  ObjectRef,
  Reason,
  Snapshot,
  SnapshotTaken,
  StorageLimits,
  StoredEvent,
} from '@kronos/contracts';
import type { Capabilities } from './capabilities.ts';
import type { NotifyStream } from './definitions.ts';

export type NatsOptions = {
  readonly servers: readonly string[];
  /** The connection's name: the service, as the server shows it. */
  readonly name: string;
  readonly user?: string;
  readonly password?: string;
  /** Path of a file with a seed (`SU...`), or with JWT and seed; a file is read again at each reconnect. */
  readonly nkeySeedFile?: string;
  readonly credentialsFile?: string;
  /** Present: TLS is required. */
  readonly tls?: {
    readonly caFile?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
    readonly handshakeFirst?: boolean;
  };
  /** Default `_INBOX_<name>`: replies to one service cannot be read by another's user. */
  readonly inboxPrefix?: string;
  /** Copies of each stream in this installation; above 1 old servers are refused. Default 1. */
  readonly replicas?: number;
  /** Limit of one request. Default 10 000 ms. */
  readonly requestTimeoutMs?: number;
  /** Limit of the first connection. Default 10 000 ms. Later ones are retried for ever. */
  readonly connectTimeoutMs?: number;
  /**
   * For commands, whose user waits: a read fails when its stream is not there, or when it has not yet come to the end of the
   * stream and got nothing for this time. Absent: reads wait for their stream for ever, as services do. ms
   */
  readonly readPatienceMs?: number;
  /** Ask each server once instead of until the time is over: for commands, whose user waits. */
  readonly connectOnce?: boolean;
};

export type EventLogHooks = {
  /** `type`: connected, disconnected, reconnected, closed, error, slow. */
  readonly onStatus?: (status: { type: string; detail: string }) => void;
  readonly onWarning?: (warning: Reason) => void;
};

export type StreamHealth = { readonly ok: boolean; readonly detail: string };

export type ProvisionOptions = {
  readonly limits: StorageLimits;
  readonly replicas: number;
  /** Aggregates in scope (`UNASSIGNED` for the unassigned pool): one durable each. */
  readonly aggregates: readonly string[];
  /** `[nats] ack_wait`; default of the contract: 30 s. */
  readonly ackWaitSeconds?: number;
  /** Sinks of notifications: a durable each on the log and on the alarms. Default: none. */
  readonly sinks?: readonly string[];
};

export type ProvisionReport = {
  /** `stream KRONOS_LOG`, `consumer KRONOS_MIGRATIONS/tasks-gpu`, `bucket kronos-snapshots`. */
  readonly created: readonly string[];
  readonly changed: readonly { readonly what: string; readonly fields: readonly string[] }[];
  readonly unchanged: readonly string[];
  /** Fields that this server cannot change on what is there, as sentences. */
  readonly kept: readonly string[];
  /** Durables of aggregates that are not in scope, and of sinks that are not configured; left as they are. */
  readonly extra: readonly string[];
};

export type Need = {
  readonly streams: readonly string[];
  readonly buckets: readonly string[];
  /** Aggregates whose durable is needed. */
  readonly taskConsumers: readonly string[];
  /** Sinks whose durables are needed. Default: none. */
  readonly sinks?: readonly string[];
  /** When given, sizes and ages are compared too. */
  readonly limits?: StorageLimits;
  /** When given, the durables' ack wait is compared with it: for who takes tasks. */
  readonly ackWaitSeconds?: number;
};

export type AppendOptions = {
  /**
   * Last sequence of that exact subject; 0: the subject must be empty. Absent: no check. Once a view reads the log, such an append is
   * sent only to the log that the view reads: LogGap when it is another one.
   */
  readonly expectedLastSequence?: number;
  /** Limit over all retries. Default 30 000 ms. */
  readonly timeoutMs?: number;
  /**
   * Asked right before the bytes leave, at each attempt, however long the connection was away before. A text says why the
   * message must not leave any more: AppendWithdrawn.
   */
  readonly veto?: () => string | null;
};
/** `duplicate`: the same message (by id) was stored before, at `sequence`. */
export type Appended = { readonly sequence: number; readonly duplicate: boolean };

export type ReplayedEvent = StoredEvent & { readonly subject: string; readonly traceparent: string | null };

type Delivery = {
  readonly subject: string;
  /** Stream sequence. */
  readonly sequence: number;
  /** The server's stamp, ms since the epoch. */
  readonly storedAt: number;
  /**
   * The stamp before a restore, as the header of a restored event says; else `storedAt`. For display only: folds believe
   * the header only at the beginning of a log.
   */
  readonly firstStoredAt: number;
  readonly traceparent: string | null;
};
/** An event as the stream holds it. */
export type RawEvent = {
  /** Stream sequence in KRONOS_LOG. */
  readonly sequence: number;
  /** The server's stamp, ms since the epoch. */
  readonly storedAt: number;
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Uint8Array;
};

/** A message that fits its schema, or the body as it arrived (parsed JSON, or text that is not JSON) and its problem. */
export type Delivered<M> = Delivery &
  (
    | { readonly message: M; readonly problem?: undefined }
    | {
        readonly message: unknown;
        readonly problem: string;
      }
  );

/**
 * Where a fold stands: a state, and what an append that is decided on this state must expect. It never changes, so state
 * and expectation always belong together.
 */
export type LogPosition<S> = {
  readonly state: S;
  /** Folded up to this sequence of KRONOS_LOG: the `basis` of a decision. */
  readonly sequence: number;
  /** `expectedLastSequence` of an append on that exact subject; 0 while it has no event. */
  readonly expectedOn: (subject: string) => number;
};

export interface LogView<S> {
  /** The current position of the fold. */
  at(): LogPosition<S>;
  /**
   * Asks the leader for the log's last sequence, waits until folded at least that far, and returns where the fold stands
   * then.
   *
   * @throws LogGap when the log lost events or was replaced; StreamUnavailable when the leader does not answer; Closed.
   */
  refresh(): Promise<LogPosition<S>>;
  /** Waits until folded up to `sequence`. Rejects as refresh does. */
  upTo(sequence: number): Promise<void>;
  /** Each event after it was folded, from now on. Ends with the view. */
  changes(): AsyncIterable<StoredEvent>;
  /** Milliseconds since the view was last known to be level with the log. */
  readonly lagMs: number;
  healthy(): StreamHealth;
  close(): Promise<void>;
}

/** `F`: what is folded, which may change in place. `S`: an immutable state of it. */
export type ViewOptions<F, S> = {
  readonly initial: F;
  /** First sequence to fold; default: the first event of the log. */
  readonly from?: number;
  readonly evolve: (fold: F, stored: StoredEvent) => F;
  /** The state now, which later events must not change. */
  readonly snapshot: (fold: F) => S;
};

export type UnreadableTask = { readonly unreadable: string; readonly body: string };

export interface TaskDelivery {
  /** A message that fails its schema is delivered as such: the executor records DeadLetter. */
  readonly task: MigrationRequested | UnreadableTask;
  readonly aggregate: string;
  readonly subject: string;
  readonly sequence: number;
  /** 1 for the first delivery. */
  readonly deliveries: number;
  readonly traceparent: string | null;
  /** Aborted when the delivery was given up: from then on nothing is sent for it, whatever the handler returns. */
  readonly lost: AbortSignal;
  /**
   * Whether the delivery is still this worker's, by the monotonic clock now. `lost` follows from a timer, which a process that
   * was stopped runs late: ask this before anything that cannot be taken back.
   */
  readonly held: () => boolean;
  /** Aborted when the worker is asked to stop: return `handOver` soon. */
  readonly stopping: AbortSignal;
}
/** done: ackAck. later: nak with a delay (a hint). handOver: nak now. dead: term, only after the final result is on the log. */
export type TaskOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'later'; readonly delayMs: number }
  | { readonly kind: 'handOver' }
  | { readonly kind: 'dead' };

export interface TaskWorkerOptions {
  /** One durable each. */
  readonly aggregates: readonly string[];
  /** Deliveries held at once, over all aggregates. */
  readonly concurrency: number;
  /** The durables' ack wait; without a confirmed answer for this time a delivery is given up. */
  readonly ackWaitMs: number;
  /** A handler that throws counts as `later`, with a warning. */
  readonly handle: (delivery: TaskDelivery) => Promise<TaskOutcome>;
}

/** A message for a sink. */
export type SinkDelivery = Delivered<Message> & {
  /** 1 for the first delivery. */
  readonly deliveries: number;
  /** Aborted when the delivery was given up. */
  readonly lost: AbortSignal;
  /** Aborted when the worker is asked to stop: return `handOver` soon. */
  readonly stopping: AbortSignal;
};

export interface SinkWorkerOptions {
  readonly stream: NotifyStream;
  readonly sink: string;
  /** A handler that throws counts as `later`, with a warning. */
  readonly handle: (delivery: SinkDelivery) => Promise<TaskOutcome>;
}

/** Works from its creation until stop. */
export interface TaskWorker {
  /** Deliveries held now. */
  readonly held: number;
  healthy(): StreamHealth;
  /** Takes no more, asks the running handlers to hand over, hands over for those that do not within `graceMs` (3000). */
  stop(graceMs?: number): Promise<void>;
}

export type TailOptions = {
  readonly families: readonly Family[];
  readonly aggregates?: readonly string[];
  /** A time, a sequence (one family's stream), only new messages, all, or the last one of each subject. Default `new`. */
  readonly since?: Date | number | 'new' | 'all' | 'last';
  /** End when everything that was there at the start has been delivered. Default false: follow. */
  readonly end?: boolean;
};

type StreamUsage = {
  readonly messages: number;
  readonly bytes: number;
  /** -1: no limit. */
  readonly maxBytes: number;
  readonly lastSequence: number;
};

/** Storage limits of the user's account, over all replicas, in bytes; null: no limit but the servers' own. */
export type AccountLimits = { readonly file: number | null; readonly memory: number | null };

export type ObjectStore = {
  /**
   * Stores gzip of `body` under its digest, which makes it idempotent. `label` is for people only.
   *
   * @throws LogFull, StreamUnavailable
   */
  put(bucket: string, label: string, body: Uint8Array): Promise<ObjectRef>;
  /** @throws MissingObject, BadObject, StreamUnavailable */
  get(ref: ObjectRef): Promise<Uint8Array>;
};

export type SnapshotEnvelope = {
  readonly by: Actor;
  readonly correlationId?: string;
  readonly causationId: string | null;
  /** The log when the snapshot was taken. */
  readonly log?: LogMark;
};

export interface EventLog {
  /** Of the server connected to now. */
  readonly server: { readonly version: string; readonly capabilities: Capabilities };
  /** @throws ProvisionRefused, PayloadTooSmall, NatsRefused, StreamUnavailable */
  provision(options: ProvisionOptions): Promise<ProvisionReport>;
  /** @throws NotProvisioned with every difference, PayloadTooSmall */
  verify(need: Need): Promise<void>;
  /**
   * @throws AppendConflict, LogFull, AppendRefused, AppendWithdrawn, StreamUnavailable, InvalidMessage: it was not stored.
   *   AppendUnknown, NatsRefused, Closed: it may be stored.
   */
  append(message: Message, options?: AppendOptions): Promise<Appended>;
  /** The stream's last sequence, asked of its leader. */
  lastSequence(stream: string): Promise<number>;
  /** Last sequence of one subject, asked of the leader; 0: none. */
  lastSequenceOf(family: Family, aggregate: string): Promise<number>;
  usage(stream: string): Promise<StreamUsage>;
  /** @throws StreamUnavailable (also without JetStream), NatsRefused */
  accountLimits(): Promise<AccountLimits>;
  /** The server's clock, between two moments of the own one. @throws StreamUnavailable, NatsRefused, NotProvisioned */
  readClock(): Promise<ServerReading>;
  /** KRONOS_LOG in order; ends at `to` (default: the last sequence at the start). @throws LogGap */
  replay(options?: { readonly from?: number; readonly to?: number }): AsyncIterable<ReplayedEvent>;
  /** KRONOS_LOG as it is stored, for an independent copy; ends at `to` (default: the last sequence at the start). @throws LogGap */
  copy(options?: { readonly from?: number; readonly to?: number }): AsyncIterable<RawEvent>;
  /** Publishes a copy again, each event with the sequence it had. Goes on after an interruption. @throws RestoreRefused */
  restore(events: Iterable<RawEvent> | AsyncIterable<RawEvent>): Promise<{ restored: number; skipped: number }>;
  view<F, S>(options: ViewOptions<F, S>): Promise<LogView<S>>;
  /** The newest of each aggregate, then every new one, in order. */
  snapshots(options: { readonly aggregates: readonly string[] }): AsyncIterable<Delivered<SnapshotTaken>>;
  replaySnapshots(options?: {
    readonly aggregates?: readonly string[];
    readonly since?: Date;
    readonly until?: Date;
  }): AsyncIterable<Delivered<SnapshotTaken>>;
  tail(options: TailOptions): AsyncIterable<Delivered<Message>>;
  tasks(options: TaskWorkerOptions): TaskWorker;
  /** A stream's messages for one sink, one by one and in order, each until it is done; replicas share them. */
  sink(options: SinkWorkerOptions): TaskWorker;
  readonly objects: ObjectStore;
  /** The object first, the message second. @throws as append does */
  putSnapshot(
    snapshot: Snapshot,
    envelope: SnapshotEnvelope,
    options?: Pick<AppendOptions, 'veto'>,
  ): Promise<Appended & { readonly message: SnapshotTaken }>;
  /** @throws MissingObject, BadObject (also when the body is no snapshot) */
  getSnapshot(taken: SnapshotTaken): Promise<Snapshot>;
  healthy(): StreamHealth;
  /** Stops workers (which hand over), ends views and iterations, drains. */
  close(): Promise<void>;
}
