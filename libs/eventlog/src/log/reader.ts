import type { Cancel } from '@kronos/clock';
import { type ConsumerConfig, JetStreamApiError } from '@nats-io/jetstream';
import { type Msg, type MsgHdrs, nanos, type Subscription } from '@nats-io/transport-node';
import { backoffMs } from '../wire/deadline.ts';
import { LogGap, NotProvisioned, StreamUnavailable } from '../wire/errors.ts';
import { headersSafely } from '../wire/headers.ts';
import type { Link } from '../wire/link.ts';
import { isNotFound, plainText, troubleOf } from '../wire/trouble.ts';
import type { StreamHealth } from '../wire/types.ts';

/** Messages asked for at once, and the bytes at which the server ends such a request: its buffer per client is limited. */
const BATCH = 4096;
const BATCH_BYTES = 8 * 1024 ** 2;
const LOW_WATER = BATCH / 2;
const silenceMs = ({ wire }: Link): number => 2 * wire.reading.heartbeatMs + 1_000;
/** The server forgets a consumer that its reader could not delete, because it was killed or cut off, after this. */
const INACTIVE_MS = 30_000;

/** The facts in the reply subject of a delivered message. */
export type DeliveryInfo = {
  readonly deliveries: number;
  readonly streamSequence: number;
  readonly consumerSequence: number;
  /** ms since the epoch */
  readonly storedAt: number;
  /** Messages of the consumer that are still to come. */
  readonly pending: number;
};

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<ns>.<pending>`, or the longer form with
 * domain and account hash before the stream (ADR-15). Null for any other subject.
 */
export function parseDelivery(reply: string): DeliveryInfo | null {
  if (!reply.startsWith('$JS.ACK.')) return null;
  let tokens = 1;
  for (let dot = reply.indexOf('.'); dot >= 0; dot = reply.indexOf('.', dot + 1)) tokens++;
  if (tokens !== 9 && tokens < 11) return null;
  let at = 0;
  for (let skip = tokens === 9 ? 4 : 6; skip > 0; skip--) at = reply.indexOf('.', at) + 1;
  const next = (): string => {
    const end = reply.indexOf('.', at);
    const token = end < 0 ? reply.slice(at) : reply.slice(at, end);
    at += token.length + 1;
    return token;
  };
  return {
    deliveries: Number(next()),
    streamSequence: Number(next()),
    consumerSequence: Number(next()),
    storedAt: Number(next().slice(0, -6)),
    pending: Number(next()),
  };
}

export type RawMessage = {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Decoded when asked for: that costs more than all the rest. */
  readonly headers: () => MsgHdrs | undefined;
  readonly sequence: number;
  readonly storedAt: number;
};

export type ReaderStart =
  | { readonly at: 'sequence'; readonly sequence: number }
  | { readonly at: 'time'; readonly time: Date }
  | { readonly at: 'new' }
  | { readonly at: 'lastPerSubject' };

export type ReaderOptions = {
  readonly stream: string;
  /** One subject or wildcard; absent: everything. */
  readonly filter?: string;
  readonly start: ReaderStart;
  /** Every stream sequence must follow the one before: for an unfiltered stream from which nothing is ever removed. */
  readonly contiguous: boolean;
  /** When the stream was created: one that was created at another time is another stream. Absent: not checked. */
  readonly created?: string;
  /** Called in order, once per message. An error it throws ends the reader. */
  readonly onMessage: (message: RawMessage) => void;
  /** The reader has, at this moment, everything that the stream has. */
  readonly onLevel?: () => void;
  /**
   * The reader has everything that the stream had when the reading began; of a stream that keeps one message per subject, the
   * newest of each subject. The server's count of pending messages alone does not say so: nats-server 2.9 counts a message twice
   * that is stored while the consumer is made.
   */
  readonly onCaughtUp?: () => void;
  /** The reader has ended and will bring nothing more. */
  readonly onFailure: (error: Error) => void;
  /** False: ask for no more until {@link OrderedReader.more}. */
  readonly room?: () => boolean;
};

type Ending = 'lost' | 'stopped' | 'gap';

/** A reader that ends must have handed over the last sequence, and one message of each of these subjects. */
type Goal = { readonly sequence: number; readonly unread: Set<string> };

/**
 * The end of the stream as it is now. Where the stream keeps one message per subject, a newer message removes one that the reader
 * has yet to reach, and comes after the last sequence of now: its subject is unread until then.
 */
async function goalOf(link: Link, { stream, filter }: ReaderOptions): Promise<Goal> {
  const info = await link.ask(() => link.streamInfo(stream));
  if (info.config.max_msgs_per_subject !== 1) return { sequence: info.state.last_seq, unread: new Set() };
  const { state } = await link.ask(() => link.streamInfo(stream, filter ?? '>'));
  return { sequence: state.last_seq, unread: new Set(Object.keys(state.subjects ?? {})) };
}

/**
 * An ordered reader of a stream: an ephemeral pull consumer without acks, created again from the next message whenever there
 * is a doubt (reconnect, silence, a delivery out of order). Each message is handed over once and in order.
 */
export class OrderedReader {
  readonly #link: Link;
  readonly #options: ReaderOptions;
  readonly #prefix: string;
  /** Sequence of the last message handed over; 0 before the first. */
  #last = 0;
  #serial = 0;
  #session: Session | null = null;
  /** The last consumer that was made, until it is deleted. */
  #consumer: string | null = null;
  #stopped = false;
  /** The end of the stream when the reading began; null: not asked yet. */
  #goal: Goal | null = null;
  /** Attempts since the last one that brought a message. */
  #failures = 0;
  /** When it last got something, or was level, ms of the monotonic clock; null once it was level. */
  #waitsSince: number | null;
  #trouble: string | null = 'not started';
  /** The last message before a gap that was seen; -1: none. */
  #gapAt = -1;
  readonly #done: Promise<void>;

  constructor(link: Link, options: ReaderOptions) {
    this.#link = link;
    this.#options = options;
    this.#prefix = link.wire.unique();
    if (options.start.at === 'sequence') this.#last = options.start.sequence - 1;
    this.#waitsSince = link.clock.monotonic();
    this.#done = this.#run();
  }

  healthy(): StreamHealth {
    return this.#trouble === null
      ? { ok: true, detail: `reading ${this.#options.stream}` }
      : { ok: false, detail: `${this.#options.stream}: ${this.#trouble}` };
  }

  /** There is room again. */
  more(): void {
    this.#session?.pullMore();
  }

  /**
   * Creates the consumer again if nothing has come for `idleMs`. Each attempt that brings nothing doubles this time: a server
   * that is slower than `idleMs` would never get to answer otherwise.
   */
  nudge(idleMs: number): void {
    this.#session?.doubt(Math.min(silenceMs(this.#link), idleMs * 2 ** this.#failures));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#session?.end('stopped');
    // Now and not when the loop has ended: the connection may be closed right after this call.
    this.#forget();
    await this.#done;
  }

  /** Deletes the consumer, if there is one and a connection. */
  #forget(): void {
    if (this.#consumer === null || !this.#link.connected) return;
    this.#link.forget(this.#options.stream, this.#consumer);
    this.#consumer = null;
  }

  #config(): Partial<ConsumerConfig> & { readonly name: string } {
    const { start, filter } = this.#options;
    const base = {
      name: `${this.#prefix}-${this.#serial}`,
      ack_policy: 'none' as const,
      replay_policy: 'instant' as const,
      max_deliver: 1,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanos(INACTIVE_MS),
      ...(filter === undefined ? {} : { filter_subject: filter }),
    };
    if (this.#last > 0 || start.at === 'sequence')
      return { ...base, deliver_policy: 'by_start_sequence', opt_start_seq: this.#last + 1 };
    switch (start.at) {
      case 'time':
        return { ...base, deliver_policy: 'by_start_time', opt_start_time: start.time.toISOString() };
      case 'new':
        return { ...base, deliver_policy: 'new' };
      case 'lastPerSubject':
        // Refused without a filter.
        return { ...base, deliver_policy: 'last_per_subject', filter_subject: filter ?? '>' };
    }
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        const consumer = await this.#create();
        if (consumer !== null) await this.#read(consumer);
      } catch (error) {
        if (!this.#stopped) await this.#recover(error);
      }
    }
  }

  #pause(): Promise<void> {
    return this.#link.clock.sleep(backoffMs(this.#failures++, 2_000));
  }

  /** The name of a new consumer; null: the reader has ended. */
  async #create(): Promise<string | null> {
    const { stream, start, created, onCaughtUp } = this.#options;
    this.#serial++;
    // One whose connection was lost could not be deleted then.
    this.#forget();
    if (onCaughtUp !== undefined) this.#goal ??= await goalOf(this.#link, this.#options);
    const config = this.#config();
    this.#consumer = config.name;
    const info = await this.#link.ask(() => this.#link.jsm.consumers.add(stream, config));
    this.#consumer = info.name;
    if (created !== undefined) {
      // Asked after the consumer was made: it is on this stream, or the answer is of one that came later.
      const now = await this.#link.ask(() => this.#link.streamInfo(stream));
      if (now.created !== created)
        this.#fail(new LogGap(`${stream} was created again at ${now.created}: it is another log`));
    }
    if (this.#stopped) {
      this.#forget();
      return null;
    }
    // A later attempt must not skip what comes between this one and its first message.
    if (this.#last === 0 && start.at === 'new') this.#last = info.delivered.stream_seq;
    this.#trouble = null;
    if (info.num_pending === 0) this.#level();
    return info.name;
  }

  /** Reads by one consumer until it ends. */
  async #read(consumer: string): Promise<void> {
    const { stream } = this.#options;
    const session = new Session(this.#link, this.#options, { consumer, last: this.#last }, this.#hooks());
    this.#session = session;
    const ending = await session.ended;
    this.#session = null;
    this.#forget();
    if (session.received > 0) {
      this.#failures = 0;
      if (this.#waitsSince !== null) this.#waitsSince = this.#link.clock.monotonic();
    } else if (ending !== 'stopped') await this.#pause();
    const refused = session.refusal ?? (ending === 'lost' ? this.#link.refusedOn(session.nextSubject) : null);
    if (refused !== null) this.#fail(this.#link.refusal(`read ${stream}`, refused));
    else if (ending === 'gap' && this.#gapAt === this.#last) {
      const place = `${stream}: after sequence ${this.#last} comes ${session.gapTo}`;
      this.#fail(new LogGap(`${place}: messages are missing. Restore the stream from a backup or an archive.`));
    } else if (ending === 'gap') this.#gapAt = this.#last;
    if (this.#stopped) return;
    this.#trouble = 'the consumer is being created again';
    this.#giveUp(null);
  }

  /** Ends the reader where trying again is of no use; else waits until it may help. */
  async #recover(error: unknown): Promise<void> {
    const { stream } = this.#options;
    const trouble = troubleOf(error);
    if (trouble === 'refused') {
      this.#consumer = null;
      this.#fail(this.#link.refusal(`read ${stream}`, error));
    } else if (trouble === 'closed' || (trouble === 'other' && !(error instanceof JetStreamApiError))) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    } else {
      this.#trouble = plainText(error);
      if (this.#giveUp(error)) return;
      if (this.#failures === 3)
        this.#link.warn('reader_waits', `cannot read ${stream}: ${plainText(error)}; trying on`);
      await this.#pause();
    }
  }

  /** Fails the reader of a command whose user has waited long enough; whether it did. */
  #giveUp(error: unknown): boolean {
    const { readPatienceMs } = this.#link;
    if (readPatienceMs === null) return false;
    const { stream } = this.#options;
    if (isNotFound(error)) this.#fail(new NotProvisioned([`stream ${stream}: ${plainText(error)}`]));
    else if (this.#waitsSince !== null && this.#link.clock.monotonic() - this.#waitsSince > readPatienceMs) {
      const why = error === null ? 'the server sends nothing' : plainText(error);
      const text = `waited ${readPatienceMs / 1000} s for messages of ${stream}: ${why}`;
      this.#fail(new StreamUnavailable(text, { cause: error }));
    }
    return this.#stopped;
  }

  #hooks(): SessionHooks {
    return {
      moved: (sequence) => {
        this.#last = sequence;
      },
      handedOver: (sequence, subject) => {
        this.#goal?.unread.delete(subject);
        if (this.#goal !== null && sequence >= this.#goal.sequence && this.#goal.unread.size === 0)
          this.#options.onCaughtUp?.();
      },
      level: () => this.#level(),
    };
  }

  #level(): void {
    this.#waitsSince = null;
    this.#options.onLevel?.();
    this.#options.onCaughtUp?.();
  }

  #fail(error: Error): void {
    this.#stopped = true;
    this.#forget();
    this.#trouble = plainText(error);
    this.#options.onFailure(error);
  }
}

/** Callbacks from a session to its reader. */
type SessionHooks = {
  readonly moved: (sequence: number) => void;
  readonly handedOver: (sequence: number, subject: string) => void;
  readonly level: () => void;
};

/** One consumer's life. */
class Session {
  readonly ended: Promise<Ending>;
  gapTo = 0;
  received = 0;
  /** Why the server let it listen to no answer; null while it did not refuse. */
  refusal: Error | null = null;
  readonly #link: Link;
  readonly #options: ReaderOptions;
  readonly nextSubject: string;
  readonly #inbox: string;
  readonly #sub: Subscription;
  #watch: Cancel = () => undefined;
  readonly #unhook: () => void;
  readonly #hooks: SessionHooks;
  readonly #silenceMs: number;
  readonly #end: (ending: Ending) => void;
  #over = false;
  #last: number;
  #consumerSequence = 0;
  #outstanding = 0;
  #heard: number;

  constructor(
    link: Link,
    options: ReaderOptions,
    { consumer, last }: { readonly consumer: string; readonly last: number },
    hooks: SessionHooks,
  ) {
    const { promise, resolve } = Promise.withResolvers<Ending>();
    this.ended = promise;
    this.#end = resolve;
    this.#link = link;
    this.#silenceMs = silenceMs(link);
    this.#options = options;
    this.#last = last;
    this.#heard = link.clock.monotonic();
    this.#hooks = hooks;
    this.nextSubject = `$JS.API.CONSUMER.MSG.NEXT.${options.stream}.${consumer}`;
    this.#inbox = link.inbox();
    this.#sub = link.nc.subscribe(this.#inbox, {
      callback: (error, message) => {
        if (error === null) this.#receive(message);
        else {
          if (troubleOf(error) === 'refused') this.refusal = error;
          this.end('lost');
        }
      },
    });
    this.#unhook = link.onDisconnect(() => this.end('lost'));
    this.#watchFor(this.#silenceMs);
    this.pullMore();
  }

  end(ending: Ending): void {
    if (this.#over) return;
    this.#over = true;
    this.#watch();
    this.#unhook();
    if (!this.#link.closed) this.#sub.unsubscribe();
    this.#end(ending);
  }

  /** Ends the session when the server has been silent for too long; looks again when that can be the case next. */
  #watchFor(ms: number): void {
    this.#watch = this.#link.clock.after(ms + 1, () => {
      const idleMs = this.#link.clock.monotonic() - this.#heard;
      if (this.#outstanding > 0) this.doubt(this.#silenceMs);
      if (!this.#over) this.#watchFor(this.#silenceMs - (this.#outstanding > 0 ? idleMs : 0));
    });
  }

  doubt(idleMs: number): void {
    if (this.#link.clock.monotonic() - this.#heard > idleMs) this.end('lost');
  }

  pullMore(): void {
    if (this.#over || this.#outstanding > LOW_WATER || this.#options.room?.() === false) return;
    const batch = BATCH - this.#outstanding;
    if (this.#outstanding === 0) this.#heard = this.#link.clock.monotonic();
    this.#outstanding += batch;
    const { expiresMs, heartbeatMs } = this.#link.wire.reading;
    const request = JSON.stringify({
      batch,
      max_bytes: BATCH_BYTES,
      expires: nanos(expiresMs),
      idle_heartbeat: nanos(heartbeatMs),
    });
    try {
      this.#link.nc.publish(this.nextSubject, request, { reply: this.#inbox });
    } catch {
      // The connection is being closed.
      this.end('lost');
    }
  }

  #receive(message: Msg): void {
    if (this.#over) return;
    this.#heard = this.#link.clock.monotonic();
    const { reply } = message;
    const info = reply === undefined || reply === '' ? null : parseDelivery(reply);
    if (info === null) {
      this.#status(message);
      return;
    }
    if (info.consumerSequence !== this.#consumerSequence + 1) {
      this.end('lost');
      return;
    }
    const sequence = info.streamSequence;
    if (this.#options.contiguous && sequence !== this.#last + 1) {
      this.gapTo = sequence;
      this.end('gap');
      return;
    }
    this.received++;
    this.#consumerSequence++;
    this.#outstanding--;
    // nats-server 2.9 delivers the last message of a subject again when a newer one removes another that it has yet to deliver.
    if (sequence <= this.#last) {
      this.pullMore();
      return;
    }
    this.#last = sequence;
    this.#hooks.moved(sequence);
    this.#options.onMessage({
      subject: message.subject,
      data: message.data,
      headers: () => headersSafely(() => message.headers),
      sequence,
      storedAt: info.storedAt,
    });
    this.#hooks.handedOver(sequence, message.subject);
    if (info.pending === 0) this.#hooks.level();
    this.pullMore();
  }

  /** Heartbeats, and the ends of pull requests, which say how much of them was left. */
  #status(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 100) {
      this.#hooks.level();
      return;
    }
    const left = message.headers?.get('Nats-Pending-Messages');
    if ((code === 408 || code === 409) && left !== undefined && left !== '') {
      this.#outstanding = Math.max(0, this.#outstanding - Number(left));
      this.pullMore();
      return;
    }
    // Deleted, another leader, no responders, or a refused request.
    this.end('lost');
  }
}
