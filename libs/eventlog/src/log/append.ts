import {
  excess,
  familyOf,
  type Message,
  nameOf,
  parseMessage,
  streamNames,
  subject as subjectOf,
} from '@kronos/contracts';
import { InvalidArgumentError, type MsgHdrs, headers as noHeaders } from '@nats-io/transport-node';
import { apiCodes, fullCodes, transientCodes } from '../wire/codes.ts';
import { backoffMs, Deadline } from '../wire/deadline.ts';
import {
  AppendConflict,
  AppendRefused,
  AppendUnknown,
  AppendWithdrawn,
  Closed,
  InvalidMessage,
  LogFull,
  LogGap,
  StreamUnavailable,
} from '../wire/errors.ts';
import { headersOf, headersSafely } from '../wire/headers.ts';
import type { Link } from '../wire/link.ts';
import { NO_ANSWER, plainText, type Trouble, troubleOf } from '../wire/trouble.ts';
import type { Appended, AppendOptions } from '../wire/types.ts';

export const MSG_ID = 'Nats-Msg-Id';
const EXPECTED = 'Nats-Expected-Last-Subject-Sequence';

/** The result of one attempt. `unsure`: the message may have been stored. */
export type AppendAttempt =
  | { readonly kind: 'stored'; readonly sequence: number; readonly duplicate: boolean }
  | { readonly kind: 'conflict'; readonly actual: number | null }
  | { readonly kind: 'full'; readonly text: string; readonly ofServer: boolean }
  | { readonly kind: 'refused' | 'withdrawn'; readonly text: string }
  | { readonly kind: 'retry'; readonly unsure: boolean; readonly text: string };

type ApiError = { readonly code?: number; readonly err_code?: number; readonly description?: string };
type PubAck = { stream?: string; seq?: number; duplicate?: boolean; error?: ApiError };

/** The operating system's words for a full disk, which the server quotes. */
const NO_SPACE = /no space left/i;

/** Reads the server's answer to a publish. */
export function readPubAck(text: string): AppendAttempt {
  let ack: PubAck;
  try {
    ack = JSON.parse(text) as PubAck;
  } catch {
    return { kind: 'retry', unsure: true, text: 'the answer is no JSON: does something else listen on this subject?' };
  }
  const { error } = ack;
  if (error === undefined) {
    if (typeof ack.seq !== 'number' || typeof ack.stream !== 'string')
      return { kind: 'retry', unsure: true, text: 'the answer names no stream and sequence' };
    return { kind: 'stored', sequence: ack.seq, duplicate: ack.duplicate === true };
  }
  const code = error.err_code ?? 0;
  const words = `${error.description ?? 'no description'} (${code})`;
  if (code === apiCodes.wrongLastSequence) {
    const said = /wrong last sequence: (\d+)/.exec(error.description ?? '');
    return { kind: 'conflict', actual: said === null ? null : Number(said[1]) };
  }
  if (code === apiCodes.wrongLastSequenceInFlight) return { kind: 'conflict', actual: null };
  // "store failed" is also the answer of a stream at its own limit.
  if (fullCodes.includes(code))
    return { kind: 'full', text: words, ofServer: code !== apiCodes.storeFailed || NO_SPACE.test(words) };
  if (transientCodes.includes(code) || error.code === 503) return { kind: 'retry', unsure: false, text: words };
  return { kind: 'refused', text: words };
}

const TROUBLE_TEXT: Record<Trouble, string> = {
  timeout: NO_ANSWER,
  noResponders: 'no stream takes this subject, or it has no leader now',
  noLeader: 'the stream has no leader now',
  notConnected: 'there is no connection to NATS',
  disconnected: 'the connection was lost',
  closed: 'the connection is closed',
  refused: 'refused',
  other: 'failed',
};

/** Limit of an append, over all attempts. */
const PATIENCE_MS = 30_000;

/** The `Nats-Msg-Id` of a stored message; empty where it has none. */
export const idOf = (message: { readonly header: MsgHdrs }): string =>
  headersSafely(() => message.header)?.get(MSG_ID) ?? '';

type Stored = { readonly sequence: number; readonly id: string };
type Query = { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string };

/** Sequence and id of one message, asked of the stream's leader; null when there is none. */
async function storedMessage(link: Link, stream: string, query: Query): Promise<Stored | null> {
  const message = await link.insist(() => link.jsm.streams.getMessage(stream, query), `messages of ${stream}`);
  return message === null ? null : { sequence: message.seq, id: idOf(message) };
}

/** The last message on a subject. */
export const lastMessageOf = (link: Link, stream: string, subject: string): Promise<Stored | null> =>
  storedMessage(link, stream, { last_by_subj: subject });

/** The subject of a message: its family, and what it is about. */
const subjectOfMessage = (message: Message): string => subjectOf(familyOf(message.type), nameOf(message));

/** A message as it travels: what no reader would read is not appended. @throws InvalidMessage */
export function encodeMessage(message: Message): { subject: string; body: Uint8Array; headers: MsgHdrs } {
  const body = new TextEncoder().encode(JSON.stringify(message));
  const parsed = parseMessage(message);
  const problem = parsed.ok ? excess(body) : parsed.problem;
  if (problem !== null) throw new InvalidMessage(`${message.type} ${message.id} cannot be appended: ${problem}`);
  const headers = headersOf(message);
  headers.set(MSG_ID, message.id);
  return { subject: subjectOfMessage(message), body, headers };
}

/** The message that each attempt of an append sends, with its headers. */
type Sending = {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly headers: MsgHdrs;
  /** Called right before the bytes leave; when it throws, nothing is sent. */
  readonly mayLeave?: (() => void) | undefined;
};

/** An append waited until the log had to be confirmed again: nothing was sent. */
class Unconfirmed extends Error {
  constructor() {
    super(`${streamNames.log} has to be confirmed again`);
    this.name = 'Unconfirmed';
  }
}

/**
 * Has the server confirm the log that an expectation is about.
 *
 * @returns why it did not; null: it did
 * @throws LogGap when it is another log, NatsRefused, Closed
 */
async function confirm(link: Link, ms: number): Promise<AppendAttempt | null> {
  const askedMs = link.clock.monotonic();
  try {
    const { created } = await link.ask(() => link.streamInfo(streamNames.log), ms);
    link.knownLog.confirm(created, askedMs);
    return null;
  } catch (error) {
    if (error instanceof LogGap) throw error;
    const trouble = troubleOf(error);
    if (trouble === 'refused') throw link.refusal(`ask for stream ${streamNames.log}`, error);
    if (trouble === 'closed')
      throw new Closed(`${streamNames.log}: the connection to NATS is closed`, { cause: error });
    return { kind: 'retry', unsure: false, text: trouble === 'other' ? plainText(error) : TROUBLE_TEXT[trouble] };
  }
}

async function attempt(link: Link, { subject, body, ...rest }: Sending, ms: number): Promise<AppendAttempt> {
  try {
    return readPubAck((await link.request(subject, body, ms, rest)).string());
  } catch (error) {
    if (error instanceof AppendWithdrawn) return { kind: 'withdrawn', text: error.message };
    if (error instanceof Unconfirmed) return { kind: 'retry', unsure: false, text: error.message };
    if (error instanceof InvalidArgumentError || error instanceof RangeError)
      return { kind: 'refused', text: plainText(error) };
    const trouble = troubleOf(error);
    if (trouble === 'refused') throw link.refusal(`publish on ${subject}`, error);
    if (trouble === 'closed') throw new Closed(`${subject}: the connection to NATS is closed`, { cause: error });
    if (trouble === 'other') throw error;
    return { kind: 'retry', unsure: trouble === 'timeout' || trouble === 'disconnected', text: TROUBLE_TEXT[trouble] };
  }
}

/** The message that follows the expected sequence on the subject: this one, another one, or none that is known. */
export type FoundMessage =
  | { readonly kind: 'this'; readonly sequence: number }
  | { readonly kind: 'another' | 'nothing' };

/**
 * How an append ends that was answered, or given up, without being called stored. What an attempt left open, no later
 * answer closes: the server may have stored that attempt, or store it yet. Only the log itself says more.
 *
 * @param unsure some attempt may have been stored
 */
export function endOf({
  unsure,
  found,
}: {
  readonly unsure: boolean;
  readonly found: FoundMessage['kind'];
}): 'stored' | 'notStored' | 'unknown' {
  if (found === 'this') return 'stored';
  return unsure && found === 'nothing' ? 'unknown' : 'notStored';
}

/** Whether any attempt so far may have been stored. */
export const unsureAfter = (unsure: boolean, result: AppendAttempt): boolean =>
  unsure || (result.kind === 'retry' && result.unsure);

const NOTHING: FoundMessage = { kind: 'nothing' };

/** The message on a subject that follows the expected sequence. */
async function storedAfter(
  link: Link,
  stream: string,
  expected: number | undefined,
  { subject, id }: { readonly subject: string; readonly id: string },
): Promise<FoundMessage> {
  if (expected === undefined) return NOTHING;
  const next = await storedMessage(link, stream, { seq: expected + 1, next_by_subj: subject }).catch(() => null);
  if (next === null) return NOTHING;
  return next.id === id ? { kind: 'this', sequence: next.sequence } : { kind: 'another' };
}

/** @throws `notStored`, or AppendUnknown */
function end(unsure: boolean, found: FoundMessage, notStored: Error): Appended {
  if (endOf({ unsure, found: found.kind }) === 'unknown')
    throw new AppendUnknown(
      `${notStored.message}; an earlier attempt may be stored: it is safe to append the same message again`,
      { cause: notStored },
    );
  if (found.kind !== 'this') throw notStored;
  return { sequence: found.sequence, duplicate: true };
}

/** @throws AppendWithdrawn when the caller does not want the message any more */
function checkVeto(veto: () => string | null, what: string): void {
  const no = veto();
  if (no !== null) throw new AppendWithdrawn(`${what} was withdrawn: ${no}`);
}

function sendingOf(
  message: Message,
  { expectedLastSequence: expected, veto }: AppendOptions,
  isDue: () => boolean,
): Sending {
  const encoded = encodeMessage(message);
  if (expected !== undefined) encoded.headers.set(EXPECTED, String(expected));
  if (expected === undefined && veto === undefined) return encoded;
  const mayLeave = (): void => {
    if (isDue()) throw new Unconfirmed();
    if (veto !== undefined) checkVeto(veto, `${message.id} on ${encoded.subject}`);
  };
  return { ...encoded, mayLeave };
}

/** The error of an answer after which no further attempt is made. */
function notStored(
  result: Extract<AppendAttempt, { readonly kind: 'full' | 'refused' | 'withdrawn' }>,
  what: string,
  subject: string,
): Error {
  if (result.kind === 'withdrawn') return new AppendWithdrawn(result.text);
  if (result.kind === 'full') return new LogFull(`${subject}: ${result.text}`, result);
  return new AppendRefused(`the server refused ${what}: ${result.text}`);
}

/**
 * Appends one message. An attempt without an answer is repeated as it was. If it was stored after all, the server either
 * knows the id (within its window of ids) and says duplicate, or says conflict: from 2.12 on, a single server looks at the
 * expected sequence first and then at the id; older ones and clusters look at the id first. So an end that is no success is
 * looked into: what was stored with this expectation is the first message of the subject after it.
 */
export async function append(link: Link, stream: string, message: Message, options: AppendOptions): Promise<Appended> {
  const { clock } = link;
  const { expectedLastSequence: expected } = options;
  const isDue = (): boolean =>
    expected !== undefined && stream === streamNames.log && link.knownLog.isDue(clock.monotonic());
  const sending = sendingOf(message, options, isDue);
  const { subject } = sending;
  const what = `${message.id} on ${subject}`;
  const deadline = new Deadline(clock, options.timeoutMs ?? PATIENCE_MS);
  let unsure = false;
  /** Why the attempt before was not answered. */
  let trouble = '';
  const find = (): Promise<FoundMessage> => storedAfter(link, stream, expected, { subject, id: message.id });

  for (let tries = 0; ; tries++) {
    const left = deadline.leftMs;
    const ms = Math.min(link.requestTimeoutMs, Math.max(left, 100));
    const result: AppendAttempt =
      left > 0 || tries === 0
        ? await deadline.attempt(
            ms,
            async () => (isDue() ? await confirm(link, ms) : null) ?? attempt(link, sending, ms),
          )
        : { kind: 'retry', unsure: false, text: trouble };
    unsure = unsureAfter(unsure, result);
    switch (result.kind) {
      case 'stored':
        return { sequence: result.sequence, duplicate: result.duplicate };
      case 'conflict':
        // Without a number another append was in flight: perhaps this very message, by an earlier attempt.
        trouble = 'another append is in flight';
        if (result.actual === null && unsure && left > 0) break;
        return end(unsure, await find(), new AppendConflict(subject, expected ?? 0, result.actual));
      case 'retry':
        trouble = result.text;
        if (deadline.leftMs > 0) break;
        return end(unsure, NOTHING, new StreamUnavailable(`${what}: ${result.text}`));
      default:
        return end(unsure, unsure ? await find() : NOTHING, notStored(result, what, subject));
    }
    await clock.sleep(Math.min(backoffMs(tries, 1000), Math.max(1, deadline.leftMs)));
  }
}

/** Publishes one message without id or expectation, for bodies whose repetition does no harm. @throws as append does */
export async function publish(
  link: Link,
  subject: string,
  body: Uint8Array,
  headers: MsgHdrs = noHeaders(),
): Promise<void> {
  const { clock } = link;
  const deadline = new Deadline(clock, PATIENCE_MS);
  const ms = link.requestTimeoutMs;
  for (let tries = 0; ; tries++) {
    const result = await deadline.attempt(ms, () => attempt(link, { subject, body, headers }, ms));
    if (result.kind === 'stored') return;
    if (result.kind === 'full') throw new LogFull(`${subject}: ${result.text}`, result);
    if (result.kind !== 'retry')
      throw new AppendRefused(
        `the server refused a message on ${subject}: ${result.kind === 'refused' ? result.text : 'another append was first'}`,
      );
    if (deadline.leftMs < 0) throw new StreamUnavailable(`${subject}: ${result.text}`);
    await clock.sleep(backoffMs(tries, 1000));
  }
}
