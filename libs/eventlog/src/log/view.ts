import { logEventOf, type MessagePlace, parseSubject, type StoredEvent, streamNames } from '@kronos/contracts';
import type { StreamInfo } from '@nats-io/jetstream';
import { Closed, LogGap, StreamUnavailable } from '../wire/errors.ts';
import { originalStamp } from '../wire/headers.ts';
import type { Link } from '../wire/link.ts';
import { plainText } from '../wire/trouble.ts';
import type { LogPosition, LogView, StreamHealth, ViewOptions } from '../wire/types.ts';
import type { Wire } from '../wire/wire.ts';
import { lastMessageOf } from './append.ts';
import { Channel } from './channel.ts';
import { OrderedReader, type RawMessage } from './reader.ts';

const LOG = streamNames.log;
/** While someone waits for the view and nothing comes for this long, its consumer is created again. */
const STALL_MS = 1_500;

/** Parses events of the log. Never throws: what cannot be read becomes an event that says so. */
export class LogParser {
  /** By subject: there are as many as aggregates, times the families of the log. */
  readonly #places = new Map<string, MessagePlace | null>();
  /** A restore publishes the first events of a log; after one that it did not publish, no header is looked at. */
  #restored = true;
  readonly #read: Wire['read'];

  constructor({ read }: Pick<Wire, 'read'>) {
    this.#read = read;
  }

  parse(raw: RawMessage): StoredEvent {
    const { subject, sequence, storedAt, data } = raw;
    let place = this.#places.get(subject);
    if (place === undefined) {
      place = parseSubject(subject);
      this.#places.set(subject, place);
    }
    const event = logEventOf(this.#read(data, place), place?.name ?? subject);
    const original = this.#restored ? originalStamp(raw.headers()) : null;
    if (original === null) {
      this.#restored = false;
      return { sequence, storedAt, event };
    }
    return { sequence, storedAt, originallyStoredAt: original, event };
  }
}

/** The leader's word on a stream. @throws StreamUnavailable, NatsRefused, NotProvisioned */
export const streamInfo = (link: Link, stream: string, subjects?: string): Promise<StreamInfo> =>
  link.insist(() => link.streamInfo(stream, subjects), `stream ${stream}`);

type Waiter = { readonly sequence: number; readonly resolve: () => void; readonly reject: (error: Error) => void };

export class View<F, S> implements LogView<S> {
  readonly #link: Link;
  readonly #evolve: ViewOptions<F, S>['evolve'];
  readonly #snapshot: ViewOptions<F, S>['snapshot'];
  readonly #parser: LogParser;
  #lastBySubject = new Map<string, number>();
  /** The position that was given out since the last event; it shares `#lastBySubject`. */
  #at: LogPosition<S> | null = null;
  readonly #listeners = new Set<Channel<StoredEvent>>();
  #reader: OrderedReader | null = null;
  #waiters: Waiter[] = [];
  /** The smallest sequence that anyone waits for. */
  #next = Number.POSITIVE_INFINITY;
  #folded: F;
  #sequence: number;
  #levelAt: number;
  #failure: Error | null = null;
  #created: string | null = null;
  readonly #onClose: (view: View<F, S>) => void;

  private constructor(link: Link, options: ViewOptions<F, S>, onClose: (view: View<F, S>) => void) {
    this.#link = link;
    this.#parser = new LogParser(link.wire);
    this.#onClose = onClose;
    this.#evolve = options.evolve;
    this.#snapshot = options.snapshot;
    this.#folded = options.initial;
    this.#sequence = (options.from ?? 1) - 1;
    this.#levelAt = this.#link.clock.monotonic();
  }

  /** Folded up to the log's last sequence at the call. @throws LogGap, StreamUnavailable, NatsRefused */
  static async open<F, S>(
    link: Link,
    options: ViewOptions<F, S>,
    onClose: (view: View<F, S>) => void = () => undefined,
  ): Promise<View<F, S>> {
    const view = new View(link, options, onClose);
    try {
      await view.#start(options.from);
      await view.refresh();
    } catch (error) {
      await view.close();
      throw error;
    }
    return view;
  }

  async #start(from: number | undefined): Promise<void> {
    const first = from ?? 1;
    const askedMs = this.#link.clock.monotonic();
    const info = await streamInfo(this.#link, LOG, first > 1 ? '>' : undefined);
    this.#created = info.created;
    this.#link.knownLog.begin(info.created, askedMs);
    if (first > info.state.last_seq + 1)
      throw new LogGap(
        `${LOG} ends at ${info.state.last_seq}, before the event ${first} to start from: is it another log?`,
      );
    // Subjects that were not written to since `from` have a last sequence too.
    await Promise.all(
      Object.keys(info.state.subjects ?? {}).map(async (subject) => {
        const last = await lastMessageOf(this.#link, LOG, subject);
        if (last !== null && last.sequence < first) this.#lastBySubject.set(subject, last.sequence);
      }),
    );
    this.#reader = new OrderedReader(this.#link, {
      stream: LOG,
      start: { at: 'sequence', sequence: first },
      contiguous: true,
      created: info.created,
      onMessage: (raw) => this.#fold(raw),
      onLevel: () => {
        this.#levelAt = this.#link.clock.monotonic();
      },
      onFailure: (error) => this.#fail(error),
    });
  }

  at(): LogPosition<S> {
    if (this.#at !== null) return this.#at;
    const lastBySubject: ReadonlyMap<string, number> = this.#lastBySubject;
    this.#at = {
      state: this.#snapshot(this.#folded),
      sequence: this.#sequence,
      expectedOn: (subject) => lastBySubject.get(subject) ?? 0,
    };
    return this.#at;
  }

  get lagMs(): number {
    return this.#link.clock.monotonic() - this.#levelAt;
  }

  #fold(raw: RawMessage): void {
    if (this.#failure !== null) return;
    const stored = this.#parser.parse(raw);
    try {
      this.#folded = this.#evolve(this.#folded, stored);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#sequence = raw.sequence;
    if (this.#at !== null) {
      this.#at = null;
      this.#lastBySubject = new Map(this.#lastBySubject);
    }
    this.#lastBySubject.set(raw.subject, raw.sequence);
    for (const listener of this.#listeners) listener.push(stored);
    if (raw.sequence >= this.#next) this.#wake();
  }

  #wake(): void {
    const ready = this.#waiters.filter((w) => w.sequence <= this.#sequence);
    this.#waiters = this.#waiters.filter((w) => w.sequence > this.#sequence);
    this.#next = this.#waiters.reduce((least, w) => Math.min(least, w.sequence), Number.POSITIVE_INFINITY);
    for (const waiter of ready) waiter.resolve();
  }

  #fail(error: Error): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    const waiters = this.#waiters;
    this.#waiters = [];
    this.#next = Number.POSITIVE_INFINITY;
    for (const waiter of waiters) waiter.reject(error);
    for (const listener of this.#listeners) this.#endListener(listener, error);
    if (!(error instanceof Closed)) this.#link.warn('log_view', plainText(error));
  }

  async refresh(): Promise<LogPosition<S>> {
    if (this.#failure !== null) throw this.#failure;
    // Events that are folded while the question is on its way may be newer than the answer.
    const before = this.#sequence;
    const askedMs = this.#link.clock.monotonic();
    const info = await streamInfo(this.#link, LOG);
    const last = info.state.last_seq;
    if (info.created !== this.#created || last < before) {
      const error = new LogGap(
        `${LOG} is another log than the one that was read: it ends at ${last} and was created at ${info.created}`,
      );
      this.#fail(error);
      throw error;
    }
    this.#link.knownLog.confirm(info.created, askedMs);
    await this.upTo(last);
    return this.at();
  }

  async upTo(sequence: number): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    if (this.#sequence >= sequence) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { sequence, resolve, reject };
    this.#waiters.push(waiter);
    this.#next = Math.min(this.#next, sequence);
    const stalled = this.#stalls(waiter);
    const cancel = this.#link.clock.every(STALL_MS, () => {
      this.#reader?.nudge(STALL_MS);
      stalled();
    });
    try {
      await promise;
    } finally {
      cancel();
    }
  }

  /**
   * Called each {@link STALL_MS}, it rejects the waiter of a command whose user has waited long enough for the next event. The view goes
   * on: it catches up when there is a connection again. Calls are counted, as the clock goes on while the process does not run.
   */
  #stalls(waiter: Waiter): () => void {
    const { readPatienceMs } = this.#link;
    let before = this.#sequence;
    let idle = 0;
    return () => {
      idle = this.#sequence === before ? idle + 1 : 0;
      before = this.#sequence;
      if (readPatienceMs === null || idle * STALL_MS <= readPatienceMs) return;
      this.#waiters = this.#waiters.filter((one) => one !== waiter);
      const { detail } = this.healthy();
      waiter.reject(new StreamUnavailable(`waited ${readPatienceMs / 1000} s for messages of ${LOG}: ${detail}`));
    };
  }

  changes(): AsyncIterable<StoredEvent> {
    const channel: Channel<StoredEvent> = new Channel({ return: () => this.#listeners.delete(channel) });
    this.#listeners.add(channel);
    if (this.#failure !== null) this.#endListener(channel, this.#failure);
    return channel;
  }

  #endListener(listener: Channel<StoredEvent>, error: Error): void {
    if (error instanceof Closed) listener.end();
    else listener.end(error);
  }

  healthy(): StreamHealth {
    if (this.#failure !== null) return { ok: false, detail: plainText(this.#failure) };
    return this.#reader?.healthy() ?? { ok: false, detail: `${LOG}: not started` };
  }

  async close(): Promise<void> {
    this.#fail(new Closed('the view of the log is closed'));
    this.#onClose(this);
    await this.#reader?.stop();
  }
}
