import { parseSubject, readLogEvent, type StoredEvent, streamNames } from '@kronos/contracts';
import type { StreamInfo } from '@nats-io/jetstream';
import { lastMessageOf } from './append.ts';
import { Closed, LogGap } from './errors.ts';
import { type Link, plainText } from './link.ts';
import { Queue } from './queue.ts';
import { OrderedReader, type RawMessage } from './reader.ts';
import type { Health, LogPosition, LogView, ViewOptions } from './types.ts';

const decoder = new TextDecoder();
const LOG = streamNames.log;
/** While someone waits for the view and nothing comes for this long, its consumer is made anew. */
const STALL_MS = 1_500;

/** Parses bodies of the log. What is no JSON, or does not fit, becomes an event that says so. */
export class LogParser {
  /** By subject: there are as many as aggregates, times three. */
  readonly #aggregates = new Map<string, string>();

  parse(raw: RawMessage): StoredEvent {
    let aggregate = this.#aggregates.get(raw.subject);
    if (aggregate === undefined) {
      aggregate = parseSubject(raw.subject)?.name ?? raw.subject;
      this.#aggregates.set(raw.subject, aggregate);
    }
    return { sequence: raw.sequence, storedAt: raw.storedAt, event: this.#event(raw.data, aggregate) };
  }

  #event(data: Uint8Array, aggregate: string): StoredEvent['event'] {
    let body: unknown;
    try {
      body = JSON.parse(decoder.decode(data));
    } catch {
      return {
        type: 'unreadable',
        aggregate,
        claimedType: 'unknown',
        claimedVersion: null,
        problem: 'the body is no JSON',
      };
    }
    const event = readLogEvent(body, aggregate);
    // Who appends under one aggregate's subject and another's name would be folded into the wrong state.
    if (event.type !== 'unreadable' && event.aggregate !== aggregate)
      return {
        type: 'unreadable',
        aggregate,
        claimedType: event.type,
        claimedVersion: event.version,
        problem: `the body names the aggregate ${JSON.stringify(event.aggregate)}`,
      };
    return event;
  }
}

/** The leader's word on a stream. @throws StreamUnavailable, NatsRefused, NotProvisioned */
export const streamInfo = (link: Link, stream: string, subjects?: string): Promise<StreamInfo> =>
  link.insist(
    () => link.jsm.streams.info(stream, subjects === undefined ? undefined : { subjects_filter: subjects }),
    `stream ${stream}`,
  );

type Waiter = { readonly sequence: number; readonly resolve: () => void; readonly reject: (error: Error) => void };

export class View<F, S> implements LogView<S> {
  readonly #link: Link;
  readonly #evolve: ViewOptions<F, S>['evolve'];
  readonly #snapshot: ViewOptions<F, S>['snapshot'];
  readonly #parser = new LogParser();
  #lastBySubject = new Map<string, number>();
  /** The position that was given out since the last event; it shares `#lastBySubject`. */
  #at: LogPosition<S> | null = null;
  readonly #listeners = new Set<Queue<StoredEvent>>();
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
    const info = await streamInfo(this.#link, LOG, first > 1 ? '>' : undefined);
    this.#created = info.created;
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
    // What is folded while the question is on its way may be newer than the answer.
    const before = this.#sequence;
    const info = await streamInfo(this.#link, LOG);
    const last = info.state.last_seq;
    if (info.created !== this.#created || last < before) {
      const error = new LogGap(
        `${LOG} is another log than the one that was read: it ends at ${last} and was created at ${info.created}`,
      );
      this.#fail(error);
      throw error;
    }
    await this.upTo(last);
    return this.at();
  }

  async upTo(sequence: number): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    if (this.#sequence >= sequence) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiters.push({ sequence, resolve, reject });
    this.#next = Math.min(this.#next, sequence);
    const cancel = this.#link.clock.every(STALL_MS, () => this.#reader?.nudge(STALL_MS));
    try {
      await promise;
    } finally {
      cancel();
    }
  }

  changes(): AsyncIterable<StoredEvent> {
    const queue: Queue<StoredEvent> = new Queue({ return: () => this.#listeners.delete(queue) });
    this.#listeners.add(queue);
    if (this.#failure !== null) this.#endListener(queue, this.#failure);
    return queue;
  }

  #endListener(listener: Queue<StoredEvent>, error: Error): void {
    if (error instanceof Closed) listener.end();
    else listener.end(error);
  }

  healthy(): Health {
    if (this.#failure !== null) return { ok: false, detail: plainText(this.#failure) };
    return this.#reader?.healthy() ?? { ok: false, detail: `${LOG}: not started` };
  }

  async close(): Promise<void> {
    this.#fail(new Closed('the view of the log is closed'));
    this.#onClose(this);
    await this.#reader?.stop();
  }
}
