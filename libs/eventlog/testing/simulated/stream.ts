import type { MsgHdrs } from '@nats-io/transport-node';
import { apiCodes } from '../../src/wire/codes.ts';

/** A stream as nats-server 2.9 keeps it, with its refusals. Durations of a configuration are nanoseconds, as on the wire. */

export type StreamSettings = {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: 'limits' | 'workqueue';
  readonly discard: 'old' | 'new';
  readonly max_age: number;
  readonly max_bytes: number;
  readonly max_msgs_per_subject: number;
  readonly duplicate_window: number;
};

export type StoredMessage = {
  readonly sequence: number;
  readonly subject: string;
  readonly headers: MsgHdrs | undefined;
  readonly data: Uint8Array;
  /** ms since the epoch, by the server's clock */
  readonly storedAt: number;
};

/** A refusal in the form of the API. */
export type ApiError = { readonly code: number; readonly err_code: number; readonly description: string };
export const refusal = (code: number, errCode: number, description: string): { readonly error: ApiError } => ({
  error: { code, err_code: errCode, description },
});

/** Whether a subject matches a filter with `*` and `>`. */
export function matches(filter: string, subject: string): boolean {
  if (filter === subject || filter === '>') return true;
  if (!filter.includes('*') && !filter.endsWith('>')) return false;
  const want = filter.split('.');
  const have = subject.split('.');
  for (const [index, token] of want.entries()) {
    if (token === '>') return have.length > index;
    if (have[index] === undefined || (token !== '*' && token !== have[index])) return false;
  }
  return want.length === have.length;
}

const sizeOf = (message: StoredMessage): number => message.data.length + message.subject.length + 40;
const millis = (nanoseconds: number): number => nanoseconds / 1e6;

/** First index of a sorted list whose value is at least `least`. */
function lowerBound(sorted: readonly number[], least: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A message as a client publishes it. */
export type Published = Pick<StoredMessage, 'subject' | 'data' | 'headers'>;

/** The result of a publish: the message as it was stored (null: it was not), and the body of the answer. */
type Outcome = { readonly stored: StoredMessage | null; readonly ack: Readonly<Record<string, unknown>> };

const refused = (errCode: number, description: string, code: number): Outcome => ({
  stored: null,
  ack: refusal(code, errCode, description),
});

export class Stream {
  settings: StreamSettings;
  /** The configuration as it was sent. */
  config: Readonly<Record<string, unknown>>;
  readonly created: string;
  last = 0;
  bytes = 0;
  /** There is no room on the server's disk: nothing is stored. */
  full = false;
  /** It has no leader, and a copy that knows the stream up to `last` answers questions about it. */
  follower: { readonly last: number; readonly replicas: readonly { name: string; current: boolean }[] } | null = null;
  #first = 1;
  readonly #messages = new Map<number, StoredMessage>();
  readonly #bySubject = new Map<string, number[]>();
  /** Subjects that match a filter with wildcards, since the last time that a subject came or went. */
  readonly #matching = new Map<string, readonly string[]>();
  /** Message id -> its sequence and when it was stored, in the order of storing. */
  readonly #ids = new Map<string, { readonly sequence: number; readonly at: number }>();

  constructor(config: Readonly<Record<string, unknown>>, createdMs: number) {
    this.config = config;
    this.settings = config as StreamSettings;
    this.created = new Date(createdMs).toISOString();
  }

  configure(config: Readonly<Record<string, unknown>>): void {
    this.config = config;
    this.settings = config as StreamSettings;
  }

  get size(): number {
    return this.#messages.size;
  }

  get first(): number {
    while (this.#first <= this.last && !this.#messages.has(this.#first)) this.#first++;
    return this.#first;
  }

  takes(subject: string): boolean {
    return this.settings.subjects.some((filter) => matches(filter, subject));
  }

  /** Stores a message, or says why not: the body of the PubAck. @param idsFirst ids are looked up before expectations are compared */
  publish({ subject, data, headers }: Published, nowMs: number, idsFirst: boolean): Outcome {
    this.expire(nowMs);
    const id = headers?.get('Nats-Msg-Id') ?? '';
    const known = this.#known(id);
    if (known !== null && idsFirst) return known;
    const wrong = this.#wrongExpectation(subject, headers);
    if (wrong !== null) return refused(apiCodes.wrongLastSequence, `wrong last sequence: ${wrong}`, 400);
    if (known !== null) return known;

    const message: StoredMessage = { sequence: this.last + 1, subject, headers, data, storedAt: nowMs };
    const noRoom = this.#makeRoom(sizeOf(message));
    if (noRoom !== null) return refused(apiCodes.storeFailed, noRoom, 503);
    if (headers?.get('Nats-Rollup') === 'sub') for (const old of [...this.sequencesOf(subject)]) this.remove(old);
    this.#add(message);
    if (id !== '') this.#ids.set(id, { sequence: message.sequence, at: nowMs });
    const most = this.settings.max_msgs_per_subject;
    const kept = this.sequencesOf(subject);
    if (most > 0 && kept.length > most) this.remove(kept[0] ?? 0);
    return { stored: message, ack: { stream: this.settings.name, seq: message.sequence } };
  }

  /** The answer to a message whose id is known; null: it is not. */
  #known(id: string): Outcome | null {
    const before = id === '' ? undefined : this.#ids.get(id);
    if (before === undefined) return null;
    return { stored: null, ack: { stream: this.settings.name, seq: before.sequence, duplicate: true } };
  }

  /** The sequence that is there instead of the expected one; null: there is no other. */
  #wrongExpectation(subject: string, headers: MsgHdrs | undefined): number | null {
    const expected = headers?.get('Nats-Expected-Last-Sequence') ?? '';
    if (expected !== '' && Number(expected) !== this.last) return this.last;
    const onSubject = headers?.get('Nats-Expected-Last-Subject-Sequence') ?? '';
    const lastOfSubject = this.lastOf(subject);
    return onSubject !== '' && Number(onSubject) !== lastOfSubject ? lastOfSubject : null;
  }

  /** Removes the oldest messages where the stream may, so that a message has room. Returns why it has none, or null. */
  #makeRoom(size: number): string | null {
    if (this.full) return 'insufficient storage resources available';
    const { max_bytes: maxBytes, discard } = this.settings;
    if (maxBytes <= 0 || this.bytes + size <= maxBytes) return null;
    if (discard === 'new') return 'maximum bytes exceeded';
    while (this.size > 0 && this.bytes + size > maxBytes) this.remove(this.first);
    return null;
  }

  #add(message: StoredMessage): void {
    const { sequence, subject } = message;
    this.last = sequence;
    this.bytes += sizeOf(message);
    this.#messages.set(sequence, message);
    const sequences = this.#bySubject.get(subject);
    if (sequences === undefined) {
      this.#bySubject.set(subject, [sequence]);
      this.#matching.clear();
    } else sequences.push(sequence);
  }

  /** Forgets what is older than the limits allow. */
  expire(nowMs: number): void {
    const window = millis(this.settings.duplicate_window);
    for (const [id, { at }] of this.#ids) {
      if (nowMs - at < window) break;
      this.#ids.delete(id);
    }
    const age = millis(this.settings.max_age);
    if (age <= 0) return;
    for (;;) {
      const oldest = this.#messages.get(this.first);
      if (oldest === undefined || nowMs - oldest.storedAt <= age) return;
      this.remove(oldest.sequence);
    }
  }

  remove(sequence: number): void {
    const message = this.#messages.get(sequence);
    if (message === undefined) return;
    this.#messages.delete(sequence);
    this.bytes -= sizeOf(message);
    const sequences = this.#bySubject.get(message.subject) ?? [];
    const at = lowerBound(sequences, sequence);
    if (sequences[at] === sequence) sequences.splice(at, 1);
    if (sequences.length > 0) return;
    this.#bySubject.delete(message.subject);
    this.#matching.clear();
  }

  get(sequence: number): StoredMessage | undefined {
    return this.#messages.get(sequence);
  }

  sequencesOf(subject: string): readonly number[] {
    return this.#bySubject.get(subject) ?? [];
  }

  lastOf(subject: string): number {
    return this.sequencesOf(subject).at(-1) ?? 0;
  }

  subjects(filter: string): readonly string[] {
    let found = this.#matching.get(filter);
    if (found === undefined) {
      found = [...this.#bySubject.keys()].filter((subject) => matches(filter, subject));
      this.#matching.set(filter, found);
    }
    return found;
  }

  #listsOf(filter: string): (readonly number[])[] {
    const exact = this.#bySubject.get(filter);
    if (exact !== undefined) return [exact];
    if (!filter.includes('*') && !filter.endsWith('>')) return [];
    return this.subjects(filter).map((subject) => this.sequencesOf(subject));
  }

  /** The first message at or after a sequence that matches the filter (null: all); 0: none. */
  next(from: number, filter: string | null): number {
    if (filter === null) {
      for (let sequence = Math.max(from, this.first); sequence <= this.last; sequence++)
        if (this.#messages.has(sequence)) return sequence;
      return 0;
    }
    let least = 0;
    for (const list of this.#listsOf(filter)) {
      const found = list[lowerBound(list, from)] ?? 0;
      if (found > 0 && (least === 0 || found < least)) least = found;
    }
    return least;
  }

  /** Number of messages at or after a sequence that match the filter (null: all). */
  count(from: number, filter: string | null): number {
    if (filter === null) {
      const whole = this.last - Math.max(from, this.first) + 1;
      if (whole <= 0) return 0;
      if (this.size === this.last - this.first + 1) return whole;
      return this.count(from, '>');
    }
    return this.#listsOf(filter).reduce((sum, list) => sum + list.length - lowerBound(list, from), 0);
  }

  /** The first message stored at or after a time. */
  nextAfter(timeMs: number): number {
    for (let sequence = this.first; sequence <= this.last; sequence++) {
      const message = this.#messages.get(sequence);
      if (message !== undefined && message.storedAt >= timeMs) return sequence;
    }
    return this.last + 1;
  }
}
