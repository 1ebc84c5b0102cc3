import {
  type Family,
  familyOf,
  type Message,
  type MessageOf,
  parseSubject,
  type SnapshotTaken,
  streamNames,
  subject as subjectOf,
  subjectsOf,
} from '@kronos/contracts';
import type { MsgRequest, StoredMsg } from '@nats-io/jetstream';
import { Closed, StreamUnavailable } from '../wire/errors.ts';
import { headersSafely, originalStamp, traceparentOf } from '../wire/headers.ts';
import type { Link } from '../wire/link.ts';
import { plainText } from '../wire/trouble.ts';
import type { Delivered, ReplayedEvent, TailOptions } from '../wire/types.ts';
import type { Wire } from '../wire/wire.ts';
import { Channel } from './channel.ts';
import { OrderedReader, type RawMessage, type ReaderStart } from './reader.ts';
import { LogParser, streamInfo } from './view.ts';

const decoder = new TextDecoder();
/** Messages held for an iteration that is slow to take them. */
const ROOM = 2_000;
const QUEUE_POLL_MS = 500;
/** So few events are asked for one by one: a consumer would cost the server more. */
const FEW = 4;

/** The stream on which a family's messages are kept. */
export const streamOf: Record<Family, string> = {
  snapshots: streamNames.snapshots,
  plans: streamNames.log,
  results: streamNames.log,
  controls: streamNames.log,
  migrations: streamNames.migrations,
  ledger: streamNames.checkpoints,
  inventory: streamNames.inventory,
  services: streamNames.services,
  custody: streamNames.log,
  alarms: streamNames.alarms,
};

type RawOptions = {
  readonly stream: string;
  readonly filter?: string;
  readonly start: ReaderStart;
  readonly contiguous: boolean;
  /** Ends after this sequence. */
  readonly to?: number;
  /** Ends before the first message for which this holds. */
  readonly beyond?: (message: RawMessage) => boolean;
  /** Ends when everything that the stream had at the beginning has been read. */
  readonly end?: boolean;
};

/** Everything that must end when the event log is closed. */
export type ReadScope = { add(end: () => void): () => void };

/** Messages of a stream, in order; holds few of them at a time. */
export function rawMessages(link: Link, scope: ReadScope, options: RawOptions): Channel<RawMessage> {
  const { to = Number.POSITIVE_INFINITY } = options;
  let reader: OrderedReader | null = null;
  const close = () => {
    forget();
    void reader?.stop();
  };
  const channel = new Channel<RawMessage>({
    take: () => {
      if (channel.length === ROOM / 2) reader?.more();
    },
    return: close,
  });
  const forget = scope.add(() => {
    channel.end(new Closed('the event log is closed'));
    void reader?.stop();
  });
  reader = new OrderedReader(link, {
    stream: options.stream,
    ...(options.filter === undefined ? {} : { filter: options.filter }),
    start: options.start,
    contiguous: options.contiguous,
    room: () => channel.length <= ROOM / 2,
    onMessage: (raw) => {
      if (options.beyond?.(raw) === true) channel.end();
      if (raw.sequence <= to) channel.push(raw);
      if (raw.sequence >= to) channel.end();
    },
    ...(options.end === true ? { onCaughtUp: () => channel.end() } : {}),
    onFailure: (error) => channel.end(error),
  });
  return channel;
}

export async function* replay(
  link: Link,
  scope: ReadScope,
  range: { readonly from?: number; readonly to?: number } = {},
): AsyncGenerator<ReplayedEvent, void, undefined> {
  let from = range.from ?? 1;
  const to = range.to ?? (await streamInfo(link, streamNames.log)).state.last_seq;
  const parser = new LogParser(link.wire);
  const parse = (raw: RawMessage): ReplayedEvent => ({
    ...parser.parse(raw),
    subject: raw.subject,
    get traceparent() {
      return traceparentOf(raw.headers());
    },
  });
  if (to - from < FEW)
    for (; from <= to; from++) {
      const raw = await oneMessage(link, streamNames.log, { seq: from });
      if (raw === null) break;
      yield parse(raw);
    }
  if (from > to) return;
  const options = { stream: streamNames.log, start: { at: 'sequence', sequence: from }, contiguous: true, to } as const;
  for await (const raw of rawMessages(link, scope, options)) yield parse(raw);
}

/** One message, asked of the stream's leader; null when there is none. */
async function oneMessage(link: Link, stream: string, query: MsgRequest): Promise<RawMessage | null> {
  const found = await link.insist(() => link.jsm.streams.getMessage(stream, query), `messages of ${stream}`);
  return found === null ? null : rawOf(found);
}

const rawOf = (stored: StoredMsg): RawMessage => ({
  subject: stored.subject,
  data: stored.data,
  headers: () => headersSafely(() => stored.header),
  sequence: stored.seq,
  storedAt: stored.time.getTime(),
});

/** A message as it came, or what is wrong with it. Never throws. */
export function deliver<F extends Family>(
  { read }: Pick<Wire, 'read'>,
  raw: RawMessage,
  wanted: readonly F[],
): Delivered<MessageOf<F>> {
  const about = {
    subject: raw.subject,
    sequence: raw.sequence,
    storedAt: raw.storedAt,
    firstStoredAt: originalStamp(raw.headers()) ?? raw.storedAt,
    traceparent: traceparentOf(raw.headers()),
  };
  const found = read(raw.data, parseSubject(raw.subject));
  if (!found.ok) return { ...about, message: found.body ?? textOf(raw.data), problem: found.problem };
  const { message } = found;
  if (!wanted.includes(familyOf(message.type) as F))
    return { ...about, message, problem: `${message.type} was not asked for` };
  return { ...about, message: message as MessageOf<F> };
}

/** Characters of a body that is no message, for people. */
const SHOWN = 2_000;
const textOf = (data: Uint8Array): string => decoder.decode(data.subarray(0, SHOWN));

type Selection = { readonly filter?: string; readonly wanted: (subject: string) => boolean };

/** The narrowest filter that every server takes (one subject, or one family), and what is left to sort out here. */
function select(families: readonly Family[], aggregates: readonly string[] | undefined): Selection {
  const [family] = families;
  const subjects =
    aggregates === undefined ? null : new Set(families.flatMap((f) => aggregates.map((a) => subjectOf(f, a))));
  const wanted = (subject: string): boolean => {
    if (subjects !== null) return subjects.has(subject);
    const place = parseSubject(subject);
    return place !== null && families.includes(place.family);
  };
  if (family === undefined || families.length > 1) return { wanted };
  const only = subjects !== null && subjects.size === 1 ? [...subjects][0] : undefined;
  return { filter: only ?? subjectsOf(family), wanted };
}

export async function* snapshots(
  link: Link,
  scope: ReadScope,
  aggregates: readonly string[],
): AsyncGenerator<Delivered<SnapshotTaken>, void, undefined> {
  const { filter, wanted } = select(['snapshots'], aggregates);
  const options = {
    stream: streamNames.snapshots,
    ...(filter === undefined ? {} : { filter }),
    start: { at: 'lastPerSubject' },
    contiguous: false,
  } as const;
  for await (const raw of rawMessages(link, scope, options))
    if (wanted(raw.subject)) yield deliver(link.wire, raw, ['snapshots'] as const);
}

export async function* replaySnapshots(
  link: Link,
  scope: ReadScope,
  range: { readonly aggregates?: readonly string[]; readonly since?: Date; readonly until?: Date } = {},
): AsyncGenerator<Delivered<SnapshotTaken>, void, undefined> {
  const { filter, wanted } = select(['snapshots'], range.aggregates);
  const until = range.until?.getTime();
  const options: RawOptions = {
    stream: streamNames.snapshots,
    ...(filter === undefined ? {} : { filter }),
    start: range.since === undefined ? { at: 'sequence', sequence: 1 } : { at: 'time', time: range.since },
    contiguous: false,
    end: true,
    ...(until === undefined ? {} : { beyond: (raw) => raw.storedAt > until }),
  };
  for await (const raw of rawMessages(link, scope, options))
    if (wanted(raw.subject)) yield deliver(link.wire, raw, ['snapshots'] as const);
}

const startOf = (since: TailOptions['since']): ReaderStart => {
  if (since === undefined || since === 'new') return { at: 'new' };
  if (since === 'all') return { at: 'sequence', sequence: 1 };
  if (since === 'last') return { at: 'lastPerSubject' };
  return since instanceof Date ? { at: 'time', time: since } : { at: 'sequence', sequence: since };
};

/** Messages of several families as they come: in order per stream, the streams side by side. */
export async function* tail(
  link: Link,
  scope: ReadScope,
  options: TailOptions,
): AsyncGenerator<Delivered<Message>, void, undefined> {
  const byStream = Map.groupBy(options.families, (family) => streamOf[family]);
  const channel = new Channel<Delivered<Message>>();
  const sources = [...byStream].map(([stream, families]) => {
    const { filter, wanted } = select(families, options.aggregates);
    const source =
      stream === streamNames.migrations
        ? queuedTasks(link, scope, filter ?? subjectsOf('migrations'), options)
        : rawMessages(link, scope, {
            stream,
            ...(filter === undefined ? {} : { filter }),
            start: startOf(options.since),
            contiguous: false,
            end: options.end === true,
          });
    return { source, wanted, families };
  });
  let running = sources.length;
  for (const { source, wanted, families } of sources)
    void (async () => {
      for await (const raw of source) if (wanted(raw.subject)) channel.push(deliver(link.wire, raw, families));
      running--;
      if (running === 0) channel.end();
    })().catch((error: Error) => channel.end(error));
  try {
    yield* channel;
  } finally {
    await Promise.all(sources.map(({ source }) => source.return()));
  }
}

/**
 * Tasks on the work queue, read without taking them: a work queue allows no reader beside its durables, so the leader
 * is asked for one message after the other. It does not see what happens between two requests; the log has it.
 */
function queuedTasks(link: Link, scope: ReadScope, filter: string, options: TailOptions): Channel<RawMessage> {
  const { since } = options;
  let over = false;
  const close = () => {
    over = true;
    forget();
  };
  const channel = new Channel<RawMessage>({ return: close });
  const forget = scope.add(() => {
    over = true;
    channel.end(new Closed('the event log is closed'));
  });
  void (async () => {
    const { readPatienceMs } = link;
    let answeredAt = link.clock.monotonic();
    let next = 1;
    if (typeof since === 'number') next = since;
    if (since === undefined || since === 'new')
      next = (await streamInfo(link, streamNames.migrations)).state.last_seq + 1;
    while (!over) {
      const query = { seq: next, next_by_subj: filter };
      const found = await link
        .ask(() => link.jsm.streams.getMessage(streamNames.migrations, query))
        .catch((error: unknown) => {
          const fatal = link.fatal(error, `messages of ${streamNames.migrations}`);
          if (fatal !== null) throw fatal;
          if (readPatienceMs !== null && link.clock.monotonic() - answeredAt > readPatienceMs)
            throw new StreamUnavailable(
              `waited ${readPatienceMs / 1000} s for messages of ${streamNames.migrations}: ${plainText(error)}`,
              { cause: error },
            );
          return 'again' as const;
        });
      if (found !== 'again') answeredAt = link.clock.monotonic();
      if (found === null || found === 'again') {
        if (found === null && options.end === true) break;
        await link.clock.sleep(QUEUE_POLL_MS);
        continue;
      }
      next = found.seq + 1;
      if (since instanceof Date && found.time.getTime() < since.getTime()) continue;
      channel.push(rawOf(found));
    }
    channel.end();
  })().catch((error: Error) => channel.end(error));
  return channel;
}
