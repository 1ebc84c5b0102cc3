import type { Clock } from '@kronos/clock';
import { type MsgHdrs, headers as makeHeaders } from '@nats-io/transport-node';
import { parseDelivery } from '../../src/log/reader.ts';
import { apiCodes } from '../../src/wire/codes.ts';
import { type Client, Consumer, type ConsumerSettings } from './consumer.ts';
import { type Published, refusal, type StoredMessage, Stream } from './stream.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const API = '$JS.API.';

export type SimulatedServerOptions = {
  /** The server's clock. */
  readonly clock: Clock;
  /** Default 2.9.10, whose behaviour is modelled. */
  readonly version?: string;
  /**
   * Whether a message id is looked up before the expected sequence is compared, as 2.9 does; a single server of the 2.15
   * series compares first, and stamps its answers about streams. Default true.
   */
  readonly idsFirst?: boolean;
  /** The body of the answer to a publish that is not stored; null: it is stored as usual. Called once a publish. */
  readonly refuse?: (subject: string) => object | null;
  /** Called after each message was stored. */
  readonly onStored?: (stream: string, message: StoredMessage) => void;
  /** Called with the reply subject of each message that a consumer delivers to be acked. */
  readonly onDelivered?: (reply: string) => void;
  /** Called before an answer to a delivery (`+ACK`, `+WPI`, ...) takes effect. */
  readonly onAnswered?: (reply: string, answer: string) => void;
};

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const noStream = refusal(404, apiCodes.streamNotFound, 'stream not found');
const noConsumer = refusal(404, apiCodes.consumerNotFound, 'consumer not found');
const noMessage = refusal(404, 10037, 'no message found');

/**
 * JetStream of one nats-server 2.9, in memory: as much of the wire protocol as the event log uses. Everything above the
 * wire is the real library.
 */
export class SimulatedServer {
  readonly clock: Clock;
  readonly version: string;
  readonly #streams = new Map<string, Stream>();
  readonly #consumers = new Map<string, Map<string, Consumer>>();
  readonly #clients = new Set<Client>();
  readonly #idsFirst: boolean;
  readonly #refuse: NonNullable<SimulatedServerOptions['refuse']>;
  readonly #onStored: NonNullable<SimulatedServerOptions['onStored']>;
  readonly #onDelivered: NonNullable<SimulatedServerOptions['onDelivered']>;
  readonly #onAnswered: NonNullable<SimulatedServerOptions['onAnswered']>;

  constructor({
    clock,
    version = '2.9.10',
    idsFirst = true,
    refuse = () => null,
    onStored = () => undefined,
    onDelivered = () => undefined,
    onAnswered = () => undefined,
  }: SimulatedServerOptions) {
    this.#idsFirst = idsFirst;
    this.#refuse = refuse;
    this.clock = clock;
    this.version = version;
    this.#onStored = onStored;
    this.#onDelivered = onDelivered;
    this.#onAnswered = onAnswered;
  }

  stream(name: string): Stream | undefined {
    return this.#streams.get(name);
  }

  /** The stream goes with its messages, its consumers and the ids that it knew. */
  delete(name: string): void {
    for (const consumer of this.#consumers.get(name)?.values() ?? []) consumer.close(true);
    this.#consumers.delete(name);
    this.#streams.delete(name);
  }

  connect(client: Client): void {
    this.#clients.add(client);
  }

  disconnect(client: Client): void {
    this.#clients.delete(client);
    for (const consumers of this.#consumers.values())
      for (const consumer of consumers.values()) consumer.forget(client);
  }

  /** A message from a client. */
  receive(client: Client, message: Published & { readonly reply: string | undefined }): void {
    const { subject, data, reply } = message;
    const answer = (body: object | null): void => {
      if (reply === undefined) return;
      const bytes = body === null ? new Uint8Array() : encoder.encode(JSON.stringify(body));
      client.send(reply, { subject: reply, data: bytes, headers: undefined, reply: undefined });
    };
    if (subject.startsWith(`${API}CONSUMER.MSG.NEXT.`)) {
      this.#pull(client, subject.slice(`${API}CONSUMER.MSG.NEXT.`.length), data, reply);
    } else if (subject.startsWith(API)) {
      const answered = this.#api(subject.slice(API.length), data);
      if (answered === null) this.#nobody(client, reply);
      else answer(answered);
    } else if (subject.startsWith('$JS.ACK.')) {
      this.#answered(subject, data);
      answer(null);
    } else {
      const ack = this.#publish(message);
      if (ack === null) this.#nobody(client, reply);
      else answer(ack);
    }
  }

  /** An answer to a delivery. */
  #answered(subject: string, data: Uint8Array): void {
    const [, , stream = '', consumer = ''] = subject.split('.');
    const info = parseDelivery(subject);
    const found = this.#consumers.get(stream)?.get(consumer);
    const text = decoder.decode(data);
    this.#onAnswered(subject, text);
    if (info !== null) found?.answer(info.streamSequence, text);
  }

  /** Stores a message in the stream that takes it. The body of the answer; null: no stream does. */
  #publish(message: Published): object | null {
    const stream = [...this.#streams.values()].find((each) => each.takes(message.subject));
    if (stream === undefined) return null;
    const refused = this.#refuse(message.subject);
    if (refused !== null) return refused;
    const { stored, ack } = stream.publish(message, this.clock.now(), this.#idsFirst);
    if (stored !== null) {
      this.#onStored(stream.settings.name, stored);
      for (const consumer of [...(this.#consumers.get(stream.settings.name)?.values() ?? [])]) consumer.stored(stored);
    }
    return ack;
  }

  #nobody(client: Client, reply: string | undefined): void {
    if (reply === undefined) return;
    const headers = makeHeaders(503, 'No Responders');
    client.send(reply, { subject: reply, data: new Uint8Array(), headers, reply: undefined });
  }

  #pull(client: Client, place: string, data: Uint8Array, reply: string | undefined): void {
    const dot = place.indexOf('.');
    const consumer = this.#consumers.get(place.slice(0, dot))?.get(place.slice(dot + 1));
    if (consumer === undefined || reply === undefined) {
      this.#nobody(client, reply);
      return;
    }
    consumer.pull(client, reply, JSON.parse(decoder.decode(data)) as Record<string, number | boolean>);
  }

  #api(call: string, data: Uint8Array): object | null {
    const body = (data.length === 0 ? {} : JSON.parse(decoder.decode(data))) as Record<string, unknown>;
    const [kind, verb = '', name = '', consumerName = ''] = call.split('.');
    if (kind === 'STREAM') return this.#streamApi(verb, { name, target: verb === 'MSG' ? consumerName : name }, body);
    if (kind !== 'CONSUMER') return null;
    const stream = this.#streams.get(name);
    if (stream === undefined) return noStream;
    const consumers = this.#consumers.get(name) ?? new Map<string, Consumer>();
    this.#consumers.set(name, consumers);
    for (const [each, consumer] of consumers)
      if (consumer.stale) {
        consumer.close();
        consumers.delete(each);
      }
    if (verb === 'CREATE')
      return this.#createConsumer(stream, consumers, consumerName, body.config as ConsumerSettings);
    return consumerApi(verb, consumers, consumerName);
  }

  #streamApi(
    verb: string,
    { name, target }: { readonly name: string; readonly target: string },
    body: Record<string, unknown>,
  ): object | null {
    if (verb === 'CREATE' || verb === 'UPDATE') return this.#configure(name, body);
    const stream = this.#streams.get(target);
    if (stream === undefined) return noStream;
    if (verb === 'DELETE') {
      this.delete(name);
      return { type: 'io.nats.jetstream.api.v1.stream_delete_response', success: true };
    }
    stream.expire(this.clock.now());
    if (verb === 'INFO')
      return {
        ...streamInfo(stream, body.subjects_filter as string | undefined),
        ...(this.#idsFirst ? {} : { ts: new Date(this.clock.now()).toISOString() }),
      };
    return verb === 'MSG' ? messageOf(stream, body) : null;
  }

  #createConsumer(stream: Stream, consumers: Map<string, Consumer>, name: string, settings: ConsumerSettings): object {
    const existing = consumers.get(name);
    if (existing !== undefined) {
      existing.settings = settings;
      return existing.info();
    }
    const consumer = new Consumer(stream, settings, this.clock, this.#onDelivered);
    consumers.set(name, consumer);
    return consumer.info();
  }

  #configure(name: string, config: Record<string, unknown>): object {
    const existing = this.#streams.get(name);
    if (existing === undefined) this.#streams.set(name, new Stream(config, this.clock.now()));
    else existing.configure(config);
    return streamInfo(this.#streams.get(name) as Stream, undefined);
  }
}

/** Answers a request about the consumers of a stream. Null: the verb is unknown. */
function consumerApi(verb: string, consumers: Map<string, Consumer>, name: string): object | null {
  const consumer = consumers.get(name);
  switch (verb) {
    case 'INFO':
      return consumer?.info() ?? noConsumer;
    case 'LIST':
      return {
        type: 'io.nats.jetstream.api.v1.consumer_list_response',
        total: consumers.size,
        offset: 0,
        limit: 256,
        consumers: [...consumers.values()].map((each) => each.info()),
      };
    case 'DELETE':
      if (consumer === undefined) return noConsumer;
      consumer.close();
      consumers.delete(name);
      return { success: true };
    default:
      return null;
  }
}

function streamInfo(stream: Stream, filter: string | undefined): object {
  const subjects = filter === undefined ? undefined : stream.subjects(filter);
  const { follower } = stream;
  return {
    type: 'io.nats.jetstream.api.v1.stream_info_response',
    ...(follower === null ? {} : { cluster: { replicas: follower.replicas } }),
    config: stream.config,
    created: stream.created,
    state: {
      messages: stream.size,
      bytes: stream.bytes,
      first_seq: stream.first,
      last_seq: follower?.last ?? stream.last,
      consumer_count: 0,
      ...(subjects === undefined
        ? {}
        : { subjects: Object.fromEntries(subjects.map((each) => [each, stream.sequencesOf(each).length])) }),
    },
  };
}

function messageOf(stream: Stream, query: Record<string, unknown>): object {
  let sequence = 0;
  if (typeof query.last_by_subj === 'string') sequence = stream.lastOf(query.last_by_subj);
  else if (typeof query.next_by_subj === 'string') sequence = stream.next(Number(query.seq ?? 1), query.next_by_subj);
  else sequence = Number(query.seq);
  const message = stream.get(sequence);
  if (message === undefined) return noMessage;
  const { headers } = message;
  return {
    type: 'io.nats.jetstream.api.v1.stream_msg_get_response',
    message: {
      subject: message.subject,
      seq: message.sequence,
      time: new Date(message.storedAt).toISOString(),
      data: base64(message.data),
      ...(headers === undefined ? {} : { hdrs: base64((headers as MsgHdrs & { encode(): Uint8Array }).encode()) }),
    },
  };
}
