import {
  bucketNames,
  eventTimeMs,
  instanceName,
  type Message,
  type SnapshotTaken,
  serviceNames,
  streamNames,
  timeMs,
} from '@kronos/contracts';
import {
  bucketStream,
  type Delivered,
  type EventLog,
  NatsRefused,
  NatsUnreachable,
  NotProvisioned,
  StreamUnavailable,
} from '@kronos/eventlog';
import { type AggregateState, aggregateState, type LogState } from '@kronos/projections';
import type {
  AggregateInput,
  Facts,
  Heartbeat,
  NatsFacts,
  NewestSnapshot,
  ServiceFacts,
  StreamFacts,
} from './facts.ts';
import { mixedSinceMs, settledAfterMs } from './samples.ts';
import { alive } from './serviceFindings.ts';

type Source = Pick<EventLog, 'tail' | 'replay' | 'replaySnapshots' | 'usage'>;

/** A snapshot's stamp may be earlier than its time by the difference of two clocks. */
const CLOCKS_MS = 60_000;

export type StatusReads = {
  readonly log: Source;
  /** The log, folded just now. */
  readonly state: LogState;
  /** Aggregates in scope. */
  readonly scope: readonly string[];
  readonly maxClockSkewMs: number;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** A decision that the caller has in memory; null: it is read from the log. */
  readonly decision?: (aggregate: string, sequence: number) => AggregateInput['lastDecision'];
};

/** Collects the facts of the event log at one moment. @throws the errors of the event log */
export async function collectFacts(look: StatusReads): Promise<Facts> {
  const { log, maxClockSkewMs, clock } = look;
  const [aggregates, streams, services] = await Promise.all([
    inputs(look),
    Promise.all(watched.map((stream) => streamFacts(log, stream))),
    heartbeats(log),
  ]);
  return { nowMs: clock(), maxClockSkewMs, nats: { state: 'ok' }, aggregates, streams, services };
}

/** The facts when the event log cannot be read for this reason; null for an error that is a defect. */
export function unreadableFacts(error: unknown, nowMs: number): Facts | null {
  const nats = natsFacts(error);
  return nats === null
    ? null
    : {
        nowMs,
        maxClockSkewMs: 0,
        nats,
        streams: [],
        services: { known: false, text: 'NATS is not read' },
        aggregates: [],
      };
}

function natsFacts(error: unknown): NatsFacts | null {
  if (error instanceof NatsUnreachable) return { state: 'unreachable', text: error.message };
  if (error instanceof NatsRefused) return { state: 'refused', text: error.message };
  if (error instanceof NotProvisioned) return { state: 'notProvisioned', text: error.message };
  if (error instanceof StreamUnavailable) return { state: 'unavailable', text: error.message };
  return null;
}

/** Aggregates that are read at the same time: each takes a consumer for a moment, and a stream has a limited number. */
const AT_ONCE = 8;

async function inputs(look: StatusReads): Promise<AggregateInput[]> {
  const { log, scope, state } = look;
  const newest = new Map<string, Newest>();
  for await (const one of log.tail({ families: ['snapshots'], aggregates: scope, since: 'last', end: true }))
    if (one.problem === undefined && one.message.type === 'snapshot.taken')
      newest.set(one.message.aggregate, { message: one.message, storedAt: one.storedAt });
  const found: AggregateInput[] = [];
  for (let i = 0; i < scope.length; i += AT_ONCE)
    found.push(
      ...(await Promise.all(
        scope
          .slice(i, i + AT_ONCE)
          .map((aggregate) => inputOf(look, aggregateState(state, aggregate), newest.get(aggregate) ?? null)),
      )),
    );
  return found;
}

type Newest = { readonly message: SnapshotTaken; readonly storedAt: number };

async function inputOf(
  { log, decision }: StatusReads,
  state: AggregateState,
  newest: Newest | null,
): Promise<AggregateInput> {
  const { aggregate, decided } = state;
  const snapshot = newest === null ? null : seen(newest);
  const [undecidedSinceMs, policies, lastDecision] = await Promise.all([
    newest === null ? null : undecidedSince(log, state, newest),
    snapshot === null ? null : policiesBeforeMoves(log, state, snapshot),
    decided === null ? null : (decision?.(aggregate, decided.sequence) ?? decisionAt(log, aggregate, decided.sequence)),
  ]);
  return { aggregate, state, newest: snapshot, beforeMoves: policies, undecidedSinceMs, lastDecision };
}

const seen = ({ message, storedAt }: Newest): NewestSnapshot => ({
  ...message.data,
  timeMs: eventTimeMs(message.time, storedAt),
  storedAtMs: storedAt,
});

/** @see AggregateInput.beforeMoves */
async function policiesBeforeMoves(
  log: Source,
  state: AggregateState,
  newest: NewestSnapshot,
): Promise<AggregateInput['beforeMoves']> {
  const sinceMs = mixedSinceMs(state, newest);
  if (sinceMs === null) return null;
  const since = new Date(sinceMs - settledAfterMs(newest) - CLOCKS_MS);
  const until = new Date(sinceMs + CLOCKS_MS);
  let found: NewestSnapshot['policies'] = [];
  for await (const { message, problem } of log.replaySnapshots({ aggregates: [state.aggregate], since, until }))
    if (problem === undefined && timeMs(message.time) < sinceMs) found = message.data.policies;
  return found;
}

/** The stamp of the first snapshot that waits for a decision: to be planned, and later than the last decided one. */
async function undecidedSince(
  log: Source,
  { aggregate, decided }: AggregateState,
  newest: Newest,
): Promise<number | null> {
  const decidedMs = decided?.snapshotMs ?? Number.NEGATIVE_INFINITY;
  if (timeMs(newest.message.time) <= decidedMs) return null;
  const since = decided === null ? {} : { since: new Date(decidedMs - CLOCKS_MS) };
  for await (const { message, problem, storedAt } of log.replaySnapshots({ aggregates: [aggregate], ...since })) {
    if (problem !== undefined || message.data.purpose === 'record') continue;
    if (timeMs(message.time) > decidedMs) return storedAt;
  }
  return null;
}

async function decisionAt(log: Source, aggregate: string, sequence: number): Promise<AggregateInput['lastDecision']> {
  for await (const { event } of log.replay({ from: sequence, to: sequence }))
    if (event.type === 'cycle.decided' && event.aggregate === aggregate) return event.data;
  return null;
}

/** Streams whose room is looked at, the event log first. */
const watched = [
  { stream: streamNames.log, discard: 'new' },
  { stream: streamNames.snapshots, discard: 'old' },
  { stream: streamNames.migrations, discard: 'new' },
  { stream: bucketStream(bucketNames.details), discard: 'new' },
] as const;

async function streamFacts(log: Source, { stream, discard }: (typeof watched)[number]): Promise<StreamFacts> {
  const { messages, bytes, maxBytes } = await log.usage(stream);
  return { stream, messages, bytes, maxBytes, discard };
}

/** The newest heartbeat of each instance. @throws what the event log throws, except for a stream that cannot be read */
async function heartbeats(log: Pick<Source, 'tail'>): Promise<ServiceFacts> {
  const found: Heartbeat[] = [];
  try {
    for await (const delivered of log.tail({ families: ['services'], since: 'all', end: true })) {
      const one = heartbeatOf(delivered);
      if (one !== null) found.push(one);
    }
  } catch (error) {
    if (error instanceof NatsRefused || error instanceof StreamUnavailable || error instanceof NotProvisioned)
      return { known: false, text: error.message };
    throw error;
  }
  return { known: true, heartbeats: found };
}

/**
 * The instances that are at work, for a process that asks again and again: after it has read the stream once, the heartbeats are
 * kept as they come, instead of being read again, each time with a consumer of its own. When none of them is left, or they cannot
 * be followed, the next call reads the stream again.
 */
export class LivingInstances {
  readonly #log: Pick<Source, 'tail'>;
  readonly #newest = new Map<string, Heartbeat>();
  #following = false;

  constructor(log: Pick<Source, 'tail'>) {
    this.#log = log;
  }

  /** Null: their stream cannot be read. @throws what the event log throws, except for a stream that cannot be read */
  async at(nowMs: number): Promise<Heartbeat[] | null> {
    const kept = this.#living(nowMs);
    if (this.#following && kept.length > 0) return kept;
    const found = await heartbeats(this.#log);
    if (!found.known) return null;
    for (const one of found.heartbeats) this.#keep(one);
    if (!this.#following) void this.#follow();
    return this.#living(nowMs);
  }

  #keep(one: Heartbeat): void {
    const name = instanceName(one.service, one.instance);
    const known = this.#newest.get(name);
    if (known === undefined || known.storedAtMs <= one.storedAtMs) this.#newest.set(name, one);
  }

  #living(nowMs: number): Heartbeat[] {
    const living = alive([...this.#newest.values()], nowMs);
    this.#newest.clear();
    for (const one of living) this.#keep(one);
    return living;
  }

  async #follow(): Promise<void> {
    this.#following = true;
    try {
      for await (const delivered of this.#log.tail({ families: ['services'], since: 'all' })) {
        const one = heartbeatOf(delivered);
        if (one !== null) this.#keep(one);
      }
    } catch {
      // The next call finds out what is wrong with the stream.
    } finally {
      this.#following = false;
    }
  }
}

/** A heartbeat of a service; null for anything else, and for a message that cannot be read. */
function heartbeatOf({ message, problem, storedAt }: Delivered<Message>): Heartbeat | null {
  if (problem !== undefined || message.type !== 'service.reported') return null;
  const { instance, version } = message.by;
  const service = serviceNames.find((name) => name === message.by.service);
  if (service === undefined) return null;
  const { state, failing, aggregates, options, intervalSeconds, checkpoint = null, sinks = [] } = message.data;
  return {
    service,
    instance,
    version,
    state,
    failing: failing.map(({ check, reason, parts }) => ({
      check,
      reason,
      ...(parts === undefined
        ? {}
        : {
            parts: parts.map(({ code, part, text, since }) => ({
              code,
              part,
              text,
              sinceMs: since === undefined ? null : timeMs(since),
            })),
          }),
    })),
    aggregates,
    options,
    checkpoint,
    sinks: sinks.map(({ sink, since, reason }) => ({ sink, sinceMs: timeMs(since), reason })),
    intervalSeconds,
    timeMs: eventTimeMs(message.time, storedAt),
    storedAtMs: storedAt,
  };
}
