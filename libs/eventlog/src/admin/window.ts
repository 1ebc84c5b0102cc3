import type { MsgHdrs } from '@nats-io/transport-node';
import { type AppendAttempt, idOf, readPubAck, unsureAfter } from '../log/append.ts';
import { streamInfo } from '../log/view.ts';
import { AppendRefused, AppendUnknown, Closed, LogFull, StreamUnavailable } from '../wire/errors.ts';
import type { Link } from '../wire/link.ts';
import { troubleOf } from '../wire/trouble.ts';

const WINDOW = 1024;
/** After trouble: a message that does not follow the one before it makes all behind it fail. */
const SMALL_WINDOW = 8;
const EXPECTED_SEQUENCE = 'Nats-Expected-Last-Sequence';
/** It is given up if no message was stored for this time. */
const PATIENCE_MS = 30_000;

type Encoded = { readonly id: string; readonly subject: string; readonly body: Uint8Array; readonly headers: MsgHdrs };

/** Publishes a window at once, each message expecting the one before it, and waits for all answers; null: none came. */
async function publishWindow(link: Link, window: readonly Encoded[], last: number): Promise<(AppendAttempt | null)[]> {
  await link.ready(link.requestTimeoutMs);
  const results: (AppendAttempt | null)[] = window.map(() => null);
  const { promise, resolve } = Promise.withResolvers<void>();
  const inbox = link.inbox();
  let missing = window.length;
  let cancel = link.clock.after(link.requestTimeoutMs, resolve);
  const sub = link.nc.subscribe(`${inbox}.*`, {
    callback: (error, message) => {
      if (error !== null) {
        resolve();
        return;
      }
      const index = Number(message.subject.slice(inbox.length + 1));
      if (results[index] === null) missing--;
      results[index] =
        message.headers?.code === 503
          ? { kind: 'retry', unsure: false, text: 'no stream takes this subject, or it has no leader now' }
          : readPubAck(message.string());
      if (missing === 0) resolve();
      else {
        cancel();
        cancel = link.clock.after(link.requestTimeoutMs, resolve);
      }
    },
  });
  const unhook = link.onDisconnect(resolve);
  try {
    for (const [index, { subject, body, headers }] of window.entries()) {
      headers.set(EXPECTED_SEQUENCE, String(last + index));
      link.nc.publish(subject, body, { headers, reply: `${inbox}.${index}` });
    }
    await promise;
  } finally {
    cancel();
    unhook();
    if (!sub.isClosed()) sub.unsubscribe();
  }
  return results;
}

/** Ids of the messages from one sequence to another, asked of the leader. */
async function idsBetween(link: Link, stream: string, from: number, to: number): Promise<Set<string>> {
  const ids = new Set<string>();
  for (let sequence = from; sequence <= to; sequence++) {
    const message = await link.insist(() => link.jsm.streams.getMessage(stream, { seq: sequence }), stream);
    if (message !== null) ids.add(idOf(message));
  }
  return ids;
}

/**
 * Messages of one stream on their way: published in their order, many in flight at once. Each message expects the stream
 * sequence of the one before it: when one is lost on the way, none after it can take its place. Only a message of another
 * writer can: then the lost one follows later.
 */
export class Window {
  readonly #link: Link;
  readonly #stream: string;
  /** Last sequence of the stream, as far as known; null: to be asked for. */
  #last: number | null = null;
  #size = WINDOW;
  #waiting: Encoded[] = [];
  /** Messages whose answers did not come, and the sequence after which they may be stored; null when there are none. */
  #unsure: { readonly from: number; readonly messages: readonly Encoded[] } | null = null;
  appended = 0;
  duplicates = 0;

  constructor(link: Link, stream: string) {
    this.#link = link;
    this.#stream = stream;
  }

  async push(message: Encoded): Promise<void> {
    this.#waiting.push(message);
    if (this.#waiting.length >= WINDOW) await this.flush();
  }

  /** Publishes all waiting messages, also through short outages. @throws Closed, AppendUnknown */
  async flush(): Promise<void> {
    let until = this.#link.clock.monotonic() + PATIENCE_MS;
    while (this.#waiting.length > 0) {
      const before = this.#waiting.length;
      const outage = await this.#round().then(() => null, outageOf);
      if (this.#waiting.length < before) until = this.#link.clock.monotonic() + PATIENCE_MS;
      else if (this.#link.closed) throw new Closed('the connection to NATS is closed');
      else if (this.#link.clock.monotonic() > until)
        throw new AppendUnknown(`${this.#stream} does not answer: ${before} messages may be stored or not`, {
          cause: outage,
        });
      else await this.#link.clock.sleep(50);
    }
  }

  async #round(): Promise<void> {
    await this.#sort();
    if (this.#waiting.length === 0) return;
    const last = this.#last ?? (await streamInfo(this.#link, this.#stream)).state.last_seq;
    this.#last = last;
    const sent = this.#waiting.slice(0, this.#size);
    const results = await publishWindow(this.#link, sent, last);
    const left: Encoded[] = [];
    let silent = false;
    for (const { subject } of sent) {
      const refused = this.#link.refusedOn(subject);
      if (refused !== null) throw this.#link.refusal(`publish on ${subject}`, refused);
    }
    for (const [index, message] of sent.entries()) {
      const result = results[index] ?? null;
      if (result !== null) checkTaken(message, result);
      if (this.#isStored(result)) continue;
      left.push(message);
      silent ||= result === null || unsureAfter(false, result);
    }
    this.#waiting = [...left, ...this.#waiting.slice(sent.length)];
    this.#size = left.length === 0 ? Math.min(WINDOW, this.#size * 2) : SMALL_WINDOW;
    if (left.length > 0) this.#last = null;
    if (silent) this.#unsure = { from: last + 1, messages: left };
    await this.#sort();
  }

  /** Counts an answer; whether its message is stored. */
  #isStored(result: AppendAttempt | null): boolean {
    if (result?.kind !== 'stored') return false;
    if (result.duplicate) this.duplicates++;
    else {
      this.appended++;
      this.#last = result.sequence;
    }
    return true;
  }

  /** Looks which of the messages without an answer are stored all the same. */
  async #sort(): Promise<void> {
    if (this.#unsure === null) return;
    const { from, messages } = this.#unsure;
    const now = (await streamInfo(this.#link, this.#stream)).state.last_seq;
    const stored = await idsBetween(this.#link, this.#stream, from, now);
    const ours = new Set(messages.filter((message) => stored.has(message.id)));
    this.#unsure = null;
    this.appended += ours.size;
    this.#waiting = this.#waiting.filter((message) => !ours.has(message));
  }
}

/** @throws LogFull, AppendRefused when the server will not take the message */
function checkTaken({ id, subject }: Encoded, result: AppendAttempt): void {
  if (result.kind === 'full') throw new LogFull(`${subject}: ${result.text}`, result);
  if (result.kind === 'refused') throw new AppendRefused(`the server refused ${id} on ${subject}: ${result.text}`);
}

/** Returns an error after which the next round may succeed. @throws any other error */
function outageOf(error: unknown): Error {
  if (error instanceof StreamUnavailable) return error;
  if (error instanceof Error && troubleOf(error) === 'notConnected') return error;
  throw error;
}
