import type { Clock } from '@kronos/clock';
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import { matches, type StoredMessage, type Stream } from './stream.ts';

/** A message on its way to a client. */
export type Sent = {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  readonly reply: string | undefined;
};

/** A connection as the server sees it. */
export interface Client {
  /** Whether the client subscribes to the subject. */
  listens(subject: string): boolean;
  send(to: string, message: Sent): void;
}

type Pull = {
  readonly client: Client;
  readonly inbox: string;
  left: number;
  bytesLeft: number;
  readonly beatMs: number;
  over: boolean;
  stop: () => void;
  stopBeat: () => void;
};

type Pending = { deliveries: number; deadline: number };

/** Most of what an idle server sends. */
const idleHeartbeat = headers(100, 'Idle Heartbeat');
const empty = new Uint8Array();
const millis = (nanoseconds: number): number => nanoseconds / 1e6;

export type ConsumerSettings = {
  readonly name?: string;
  readonly durable_name?: string;
  readonly ack_policy: 'none' | 'explicit';
  readonly deliver_policy: 'all' | 'new' | 'last_per_subject' | 'by_start_sequence' | 'by_start_time';
  readonly opt_start_seq?: number;
  readonly opt_start_time?: string;
  readonly filter_subject?: string;
  readonly ack_wait?: number;
  readonly max_ack_pending?: number;
  readonly inactive_threshold?: number;
};

/** The first sequence that a consumer delivers in the order of the stream. */
function beginOf(settings: ConsumerSettings, stream: Stream): number {
  switch (settings.deliver_policy) {
    case 'by_start_sequence':
      return settings.opt_start_seq ?? 1;
    case 'by_start_time':
      return stream.nextAfter(Date.parse(settings.opt_start_time ?? ''));
    case 'new':
    case 'last_per_subject':
      return stream.last + 1;
    default:
      return 1;
  }
}

/** A pull consumer: without acks (ordered readers), or explicit (the durables of the work queue). */
export class Consumer {
  readonly name: string;
  settings: ConsumerSettings;
  activeAt: number;
  readonly #stream: Stream;
  readonly #clock: Clock;
  readonly #filter: string | null;
  readonly #pulls: Pull[] = [];
  /** Delivered before everything else, in this order: the last of each subject, and what is delivered again. */
  readonly #first: number[] = [];
  readonly #pending = new Map<number, Pending>();
  readonly #onDelivered: (reply: string) => void;
  #cursor: number;
  /** Messages that are counted twice: nats-server 2.9 does so with one that is stored while the consumer is made. */
  readonly #twice: number;
  #consumerSequence = 0;
  #delivered = 0;
  #alarm: { readonly at: number; readonly cancel: () => void } | null = null;

  constructor(stream: Stream, settings: ConsumerSettings, clock: Clock, onDelivered: (reply: string) => void) {
    this.#stream = stream;
    this.#onDelivered = onDelivered;
    this.#clock = clock;
    this.settings = settings;
    this.name = settings.durable_name ?? settings.name ?? '';
    this.activeAt = clock.now();
    const { filter_subject: filter } = settings;
    this.#filter = filter === undefined || filter === '' || filter === '>' ? null : filter;
    stream.expire(clock.now());
    if (settings.deliver_policy === 'last_per_subject')
      this.#first.push(
        ...stream
          .subjects(this.#filter ?? '>')
          .map((subject) => stream.lastOf(subject))
          .sort((a, b) => a - b),
      );
    this.#cursor = beginOf(settings, stream);
    this.#delivered = this.#cursor - 1;
    const newest = stream.get(stream.last);
    const counted = newest !== undefined && this.#cursor <= newest.sequence && this.#selects(newest.subject);
    this.#twice = counted && newest.storedAt === clock.now() && settings.ack_policy === 'none' ? 1 : 0;
  }

  get durable(): boolean {
    return this.settings.durable_name !== undefined;
  }

  /** Gone, as nobody has asked for anything for its inactive threshold. */
  get stale(): boolean {
    const limit = millis(this.settings.inactive_threshold ?? 0);
    return limit > 0 && this.#pulls.every((pull) => pull.over) && this.#clock.now() - this.activeAt > limit;
  }

  get waiting(): number {
    return this.#first.length + this.#stream.count(this.#cursor, this.#filter) + this.#twice;
  }

  #selects(subject: string): boolean {
    return this.#filter === null || matches(this.#filter, subject);
  }

  info(): Readonly<Record<string, unknown>> {
    return {
      type: 'io.nats.jetstream.api.v1.consumer_info_response',
      stream_name: this.#stream.settings.name,
      name: this.name,
      created: new Date(this.activeAt).toISOString(),
      config: this.settings,
      delivered: { consumer_seq: this.#consumerSequence, stream_seq: this.#delivered },
      ack_floor: { consumer_seq: 0, stream_seq: 0 },
      num_ack_pending: this.#pending.size,
      num_redelivered: 0,
      num_waiting: this.#pulls.length,
      num_pending: this.waiting,
    };
  }

  pull(client: Client, inbox: string, request: Readonly<Record<string, number | boolean>>): void {
    this.activeAt = this.#clock.now();
    const expiresMs = millis(Number(request.expires ?? 0));
    const pull: Pull = {
      client,
      inbox,
      left: Number(request.batch ?? 1),
      bytesLeft: Number(request.max_bytes ?? 0) || Number.POSITIVE_INFINITY,
      beatMs: millis(Number(request.idle_heartbeat ?? 0)),
      over: false,
      stop: () => undefined,
      stopBeat: () => undefined,
    };
    this.#pulls.push(pull);
    this.pump();
    if (pull.over) return;
    if (request.no_wait === true) {
      this.#end(pull, 404, 'No Messages');
      return;
    }
    if (expiresMs > 0) pull.stop = this.#clock.after(expiresMs, () => this.#end(pull, 408, 'Request Timeout'));
    this.#beat(pull);
  }

  #beat(pull: Pull): void {
    pull.stopBeat();
    if (pull.over || pull.beatMs <= 0) return;
    pull.stopBeat = this.#clock.after(pull.beatMs, () => {
      this.#status(pull, 100);
      this.#beat(pull);
    });
  }

  #status(pull: Pull, code: number, text?: string): void {
    const h = code === 100 ? idleHeartbeat : headers(code, text);
    if (code === 408) {
      h.set('Nats-Pending-Messages', String(pull.left));
      h.set('Nats-Pending-Bytes', '0');
    }
    pull.client.send(pull.inbox, { subject: pull.inbox, data: empty, headers: h, reply: undefined });
  }

  #end(pull: Pull, code: number | null, text = ''): void {
    if (pull.over) return;
    pull.over = true;
    pull.stop();
    pull.stopBeat();
    this.#pulls.splice(this.#pulls.indexOf(pull), 1);
    this.activeAt = this.#clock.now();
    if (code !== null) this.#status(pull, code, text);
  }

  /** The client is gone: its requests go with it. */
  forget(client: Client): void {
    for (const pull of [...this.#pulls]) if (pull.client === client) this.#end(pull, null);
  }

  /** The consumer is deleted; `told`: those who wait for messages are told. */
  close(told = false): void {
    for (const pull of [...this.#pulls])
      if (told) this.#end(pull, 409, 'Consumer Deleted');
      else this.#end(pull, null);
    this.#alarm?.cancel();
  }

  stored(message: StoredMessage): void {
    if (this.#pulls.length > 0 && this.#selects(message.subject)) this.pump();
  }

  #next(): StoredMessage | null {
    for (;;) {
      const again = this.#first[0];
      if (again !== undefined) {
        const message = this.#stream.get(again);
        this.#first.shift();
        if (message !== undefined) return message;
        this.#pending.delete(again);
        continue;
      }
      const most = this.settings.max_ack_pending ?? 0;
      if (this.settings.ack_policy === 'explicit' && most > 0 && this.#pending.size >= most) return null;
      const sequence = this.#stream.next(this.#cursor, this.#filter);
      if (sequence === 0) return null;
      this.#cursor = sequence + 1;
      return this.#stream.get(sequence) ?? null;
    }
  }

  pump(): void {
    for (;;) {
      // Requests of subscribers that are gone are thrown away.
      for (;;) {
        const head = this.#pulls[0];
        if (head === undefined || head.client.listens(head.inbox)) break;
        this.#end(head, null);
      }
      const [pull] = this.#pulls;
      if (pull === undefined) return;
      const message = this.#next();
      if (message === null) return;
      this.#deliver(pull, message);
    }
  }

  #deliver(pull: Pull, message: StoredMessage): void {
    const { sequence, storedAt, subject } = message;
    let deliveries = 1;
    if (this.settings.ack_policy === 'explicit') {
      const deadline = this.#clock.now() + millis(this.settings.ack_wait ?? 30e9);
      const pending = this.#pending.get(sequence) ?? { deliveries: 0, deadline };
      pending.deliveries++;
      pending.deadline = deadline;
      deliveries = pending.deliveries;
      this.#pending.set(sequence, pending);
      this.#arm(deadline);
    }
    this.#consumerSequence++;
    this.#delivered = Math.max(this.#delivered, sequence);
    const place = `${this.#stream.settings.name}.${this.name}.${deliveries}.${sequence}.${this.#consumerSequence}`;
    const reply = `$JS.ACK.${place}.${storedAt}000000.${this.waiting}`;
    pull.left--;
    pull.bytesLeft -= message.data.length;
    if (this.settings.ack_policy === 'explicit') this.#onDelivered(reply);
    pull.client.send(pull.inbox, { subject, data: message.data, headers: message.headers, reply });
    this.activeAt = this.#clock.now();
    if (pull.left <= 0) this.#end(pull, null);
    else if (pull.bytesLeft <= 0) this.#end(pull, 408, 'Request Timeout');
    else this.#beat(pull);
  }

  /** An answer to a delivery; it counts for any current holder of the message. */
  answer(sequence: number, body: string): void {
    const pending = this.#pending.get(sequence);
    if (pending === undefined) return;
    if (body === '' || body === '+ACK' || body === '+TERM') {
      this.#pending.delete(sequence);
      const again = this.#first.indexOf(sequence);
      if (again >= 0) this.#first.splice(again, 1);
      if (this.#stream.settings.retention === 'workqueue') this.#stream.remove(sequence);
      this.pump();
    } else if (body === '+WPI') {
      pending.deadline = this.#clock.now() + millis(this.settings.ack_wait ?? 30e9);
    } else if (body.startsWith('-NAK')) {
      const text = body.slice(4).trim();
      const delayMs = text === '' ? 0 : millis((JSON.parse(text) as { delay?: number }).delay ?? 0);
      pending.deadline = this.#clock.now() + delayMs;
      if (delayMs > 0) this.#arm(pending.deadline);
      else this.#again(sequence, pending);
    }
  }

  #again(sequence: number, pending: Pending): void {
    pending.deadline = Number.POSITIVE_INFINITY;
    if (!this.#first.includes(sequence)) this.#first.push(sequence);
    this.pump();
  }

  #arm(at: number): void {
    if (this.#alarm !== null && this.#alarm.at <= at) return;
    this.#alarm?.cancel();
    const cancel = this.#clock.after(Math.max(0, at - this.#clock.now()), () => this.#ring());
    this.#alarm = { at, cancel };
  }

  #ring(): void {
    this.#alarm = null;
    const now = this.#clock.now();
    for (const [sequence, pending] of [...this.#pending]) if (pending.deadline <= now) this.#again(sequence, pending);
    let soonest = Number.POSITIVE_INFINITY;
    for (const { deadline } of this.#pending.values()) soonest = Math.min(soonest, deadline);
    if (soonest < Number.POSITIVE_INFINITY) this.#arm(soonest);
  }
}
