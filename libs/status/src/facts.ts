import type { Failover, Foreign, ObjectRef, Reason, ServiceName, SnapshotTaken, Stuck } from '@kronos/contracts';
import type { AggregateState } from '@kronos/projections';

/** Everything that the judgement reads. Times are milliseconds since the epoch. */
export type Facts = {
  /** The reader's clock. */
  readonly nowMs: number;
  /** `[engine] max_clock_skew` of the reader. */
  readonly maxClockSkewMs: number;
  readonly nats: NatsFacts;
  readonly streams: readonly StreamFacts[];
  readonly services: ServiceFacts;
  readonly aggregates: readonly AggregateInput[];
};

/** Whether the event log can be read at all. `text`: the error's own words. */
export type NatsFacts =
  | { readonly state: 'ok' }
  | { readonly state: 'unreachable' | 'refused' | 'unavailable' | 'notProvisioned'; readonly text: string };

export type StreamFacts = {
  readonly stream: string;
  readonly messages: number;
  readonly bytes: number;
  /** -1: no limit. */
  readonly maxBytes: number;
  /** A full stream that discards new messages refuses them; one that discards old messages forgets. */
  readonly discard: 'old' | 'new';
};

/** The newest heartbeat of each instance, or why there is none to read. */
export type ServiceFacts =
  | { readonly known: true; readonly heartbeats: readonly Heartbeat[] }
  | { readonly known: false; readonly text: string };

export type Heartbeat = {
  readonly service: ServiceName;
  /** The process: host name and pid. */
  readonly instance: string;
  readonly version: string;
  readonly state: 'starting' | 'running' | 'stopping' | 'stopped';
  /** Readiness checks that do not pass. */
  readonly failing: readonly {
    readonly check: string;
    readonly reason: string;
    /** Absent: the check has one meaning, or the service is of Kronos 0.1. */
    readonly parts?: readonly {
      readonly code: string;
      readonly part: string;
      readonly text: string;
      readonly sinceMs: number | null;
    }[];
  }[];
  /** Aggregates that it serves. */
  readonly aggregates: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
  /** Sinks of notifications that take nothing, and since when. */
  readonly sinks: readonly { readonly sink: string; readonly sinceMs: number; readonly reason: string }[];
  /** The checkpoint that its fold started from (sequence), and how far the log confirms it; null: none. */
  readonly checkpoint: { readonly sequence: number; readonly verifiedTo: number } | null;
  /** The next heartbeat comes within this time. */
  readonly intervalSeconds: number;
  /** The sender's clock, and the server's stamp. */
  readonly timeMs: number;
  readonly storedAtMs: number;
};

/** The facts about one aggregate beside its folded state. */
export type AggregateInput = {
  readonly aggregate: string;
  readonly state: AggregateState;
  /** The newest snapshot on the stream; null when there is none. */
  readonly newest: NewestSnapshot | null;
  /**
   * The policies of the last snapshot before moves whose samples the newest one still mixes; empty: there is none. Null: the newest mixes
   * none. See `mixedSinceMs`.
   */
  readonly beforeMoves: NewestSnapshot['policies'] | null;
  /** Server's stamp of the first snapshot that can be planned and is later than the last decided one; null when there is none. */
  readonly undecidedSinceMs: number | null;
  /** The parts of the last decision that were not possible. */
  readonly lastDecision: {
    readonly stuck: readonly Stuck[];
    readonly warnings: readonly Reason[];
    readonly failover?: Failover | undefined;
    readonly foreign?: Foreign | undefined;
  } | null;
};

export type NewestSnapshot = Omit<SnapshotTaken['data'], 'body'> & {
  readonly body?: ObjectRef;
  /** The scorer's clock, and the server's stamp. */
  readonly timeMs: number;
  readonly storedAtMs: number;
};
