import { familyOf, type Message } from '@kronos/contracts';
import type { MsgHdrs } from '@nats-io/transport-node';
import { type Attempt, encodeMessage, readPubAck } from './append.ts';
import { AppendRefused, AppendUnknown, Closed, LogFull } from './errors.ts';
import { streamOf } from './iterate.ts';
import type { Link } from './link.ts';
import { streamInfo } from './view.ts';

const WINDOW = 1024;
const EXPECTED_SEQUENCE = 'Nats-Expected-Last-Sequence';
/** Without a message stored for so long it is given up. */
const PATIENCE_MS = 30_000;

type Encoded = { readonly id: string; readonly subject: string; readonly body: Uint8Array; readonly headers: MsgHdrs };

/** Publishes a window at once, each message expecting the one before it, and waits for all answers; null: none came. */
async function publishWindow(link: Link, window: readonly Encoded[], last: number): Promise<(Attempt | null)[]> {
  await link.ready(link.requestTimeoutMs);
  const results: (Attempt | null)[] = window.map(() => null);
  const { promise, resolve } = Promise.withResolvers<void>();
  const inbox = link.inbox();
  let missing = window.length;
  const timer = setTimeout(resolve, link.requestTimeoutMs);
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
      else timer.refresh();
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
    clearTimeout(timer);
    unhook();
    if (!sub.isClosed()) sub.unsubscribe();
  }
  return results;
}

/**
 * Appends messages of one stream in their order, a window of them in flight at once. Each message expects the stream
 * sequence of the one before it: when one is lost on the way, none after it can take its place.
 */
export async function appendMany(
  link: Link,
  messages: Iterable<Message> | AsyncIterable<Message>,
): Promise<{ appended: number; duplicates: number }> {
  let appended = 0;
  let duplicates = 0;
  let stream: string | null = null;
  let last: number | null = null;
  let window: Encoded[] = [];

  const flush = async (target: string) => {
    let until = performance.now() + PATIENCE_MS;
    while (window.length > 0) {
      last ??= (await streamInfo(link, target)).state.last_seq;
      const results = await publishWindow(link, window, last);
      const left: Encoded[] = [];
      for (const [index, result] of results.entries()) {
        const message = window[index];
        if (message === undefined) continue;
        if (result?.kind === 'full') throw new LogFull(`${message.subject}: ${result.text}`);
        if (result?.kind === 'refused')
          throw new AppendRefused(`the server refused ${message.id} on ${message.subject}: ${result.text}`);
        if (result?.kind !== 'stored') {
          left.push(message);
          last = null;
        } else if (result.duplicate) duplicates++;
        else {
          appended++;
          if (last !== null) last = result.sequence;
        }
      }
      if (left.length < window.length) until = performance.now() + PATIENCE_MS;
      else if (link.closed) throw new Closed('the connection to NATS is closed');
      else if (performance.now() > until)
        throw new AppendUnknown(`${target} does not answer: ${left.length} messages may be stored or not`);
      else await new Promise((resolve) => setTimeout(resolve, 100));
      window = left;
    }
  };

  for await (const message of messages) {
    const target = streamOf[familyOf(message.type)];
    stream ??= target;
    if (target !== stream) throw new RangeError(`messages of ${stream} and of ${target} cannot be appended together`);
    window.push({ id: message.id, ...encodeMessage(message) });
    if (window.length >= WINDOW) await flush(stream);
  }
  if (stream !== null) await flush(stream);
  return { appended, duplicates };
}
