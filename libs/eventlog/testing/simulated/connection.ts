import type { Clock } from '@kronos/clock';
import {
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type NodeConnectionOptions,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  type Status,
  type Subscription,
  type SubscriptionOptions,
  TimeoutError,
} from '@nats-io/transport-node';
import { Channel } from '../../src/log/channel.ts';
import type { Client, Sent } from './consumer.ts';
import type { SimulatedServer } from './server.ts';

/** The fate of a message that expects an answer. `lost`: it never arrives. `unanswered`: its answer never arrives. */
export type Fate = 'answered' | 'lost' | 'unanswered';

/** The way between one client and the server. What is sent in one direction arrives in the order in which it was sent. */
export interface Path {
  toServer(act: () => void): void;
  toClient(act: () => void): void;
  fate(subject: string): Fate;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const none = new Uint8Array();
const bytesOf = (payload: Uint8Array | string | undefined): Uint8Array => {
  if (payload === undefined) return none;
  return typeof payload === 'string' ? encoder.encode(payload) : payload;
};

const messageOf = (sent: Sent): Msg =>
  ({
    subject: sent.subject,
    sid: 0,
    reply: sent.reply,
    data: sent.data,
    headers: sent.headers,
    respond: () => false,
    json: <T>() => JSON.parse(decoder.decode(sent.data)) as T,
    string: () => decoder.decode(sent.data),
  }) as unknown as Msg;

/** Messages that the server sends to a client at one moment. They arrive together, like those of one read from a socket. */
type Packet = { readonly sentAt: number; readonly messages: (readonly [to: string, sent: Sent])[] };
const MOST_AT_ONCE = 32;

type Callback = (error: Error | null, message: Msg) => void;

/** The client's end of a connection to a {@link SimulatedServer}, in the form of nats.js. */
export class SimulatedConnection {
  readonly options: { readonly inboxPrefix: string };
  readonly info: { readonly version: string; readonly max_payload: number };
  /** The client asks this before it uses a feature that the oldest server lacks. */
  readonly features = { get: (name: string) => ({ ok: name === 'js_new_consumer_create', min: 'a newer version' }) };
  readonly #server: SimulatedServer;
  readonly #clock: Clock;
  readonly #path: Path;
  readonly #subscriptions = new Map<string, Set<Callback>>();
  readonly #requests = new Map<string, (message: Msg) => void>();
  readonly #statuses = new Channel<Status>();
  readonly #denied = new Set<string>();
  #client: Client | null = null;
  #closed = false;
  #serial = 0;

  constructor(server: SimulatedServer, options: NodeConnectionOptions, clock: Clock, path: Path) {
    this.#server = server;
    this.#clock = clock;
    this.#path = path;
    this.options = { inboxPrefix: options.inboxPrefix ?? '_INBOX' };
    this.info = { version: server.version, max_payload: 1024 ** 2 };
    this.#open();
  }

  #open(): void {
    let packet: Packet | null = null;
    const client: Client = {
      listens: (subject) => this.#client === client && this.#listens(subject),
      send: (to, sent) => {
        const sentAt = this.#server.clock.monotonic();
        if (packet?.sentAt === sentAt && packet.messages.length < MOST_AT_ONCE) {
          packet.messages.push([to, sent]);
          return;
        }
        const own: Packet = { sentAt, messages: [[to, sent]] };
        packet = own;
        this.#path.toClient(() => {
          if (packet === own) packet = null;
          for (const message of own.messages) if (this.#client === client) this.#receive(...message);
        });
      },
    };
    this.#client = client;
    this.#server.connect(client);
  }

  /** Subjects that it subscribes to now. */
  get subscribed(): readonly string[] {
    return [...this.#subscriptions.keys()];
  }

  #listens(subject: string): boolean {
    return (
      this.#subscriptions.has(subject) || this.#subscriptions.has(`${subject.slice(0, subject.lastIndexOf('.'))}.*`)
    );
  }

  #receive(to: string, sent: Sent): void {
    const waiting = this.#requests.get(to);
    if (waiting !== undefined) {
      waiting(messageOf(sent));
      return;
    }
    const message = messageOf(sent);
    const exact = this.#subscriptions.get(to);
    const any = this.#subscriptions.get(`${to.slice(0, to.lastIndexOf('.'))}.*`);
    for (const callback of [...(exact ?? []), ...(any ?? [])]) callback(null, message);
  }

  /** The connection breaks: what is on its way is gone, in both directions. */
  break(): void {
    const client = this.#client;
    if (client === null) return;
    this.#client = null;
    this.#server.disconnect(client);
    this.#statuses.push({ type: 'disconnect', server: 'simulated' } as Status);
  }

  /** The client's process is gone: nothing reaches it any more, not even word of that. */
  sever(): void {
    this.#closed = true;
    if (this.#client !== null) this.#server.disconnect(this.#client);
    this.#client = null;
  }

  /** The connection is there again, with the subscriptions that it had. */
  restore(): void {
    if (this.#client !== null || this.#closed) return;
    this.#open();
    this.#statuses.push({ type: 'reconnect', server: 'simulated' } as Status);
  }

  /** From now on the server refuses what is published on the subject: it tells the connection, and answers nothing. */
  deny(subject: string): void {
    this.#denied.add(subject);
  }

  publish(
    subject: string,
    payload?: Uint8Array | string,
    options: { readonly reply?: string; readonly headers?: MsgHdrs } = {},
  ): void {
    if (this.#closed) throw new Error('closed connection');
    const client = this.#client;
    const fate = options.reply === undefined ? 'answered' : this.#path.fate(subject);
    if (client === null || fate === 'lost') return;
    if (this.#denied.has(subject)) {
      const words = `Permissions Violation for Publish to "${subject}"`;
      const error = new PermissionViolationError(words, 'publish', subject);
      this.#path.toClient(() => this.#statuses.push({ type: 'error', error } as Status));
      return;
    }
    const message = { subject, data: bytesOf(payload), headers: options.headers, reply: options.reply };
    this.#path.toServer(() => {
      if (this.#client !== client) return;
      this.#server.receive(fate === 'answered' ? client : { listens: () => false, send: () => undefined }, message);
    });
  }

  subscribe(subject: string, options: SubscriptionOptions = {}): Subscription {
    const callbacks = this.#subscriptions.get(subject) ?? new Set<Callback>();
    this.#subscriptions.set(subject, callbacks);
    const callback = (options.callback ?? (() => undefined)) as Callback;
    callbacks.add(callback);
    let closed = false;
    return {
      isClosed: () => closed || this.#closed,
      unsubscribe: () => {
        closed = true;
        callbacks.delete(callback);
        if (callbacks.size === 0) this.#subscriptions.delete(subject);
      },
    } as unknown as Subscription;
  }

  request(
    subject: string,
    payload?: Uint8Array | string,
    options: { readonly timeout?: number; readonly headers?: MsgHdrs } = {},
  ): Promise<Msg> {
    const { promise, resolve, reject } = Promise.withResolvers<Msg>();
    this.#serial++;
    const reply = `${this.options.inboxPrefix}.mux.${this.#serial}`;
    const done = (): void => {
      cancel();
      this.#requests.delete(reply);
    };
    const cancel = this.#clock.after(options.timeout ?? 1_000, () => {
      done();
      reject(new TimeoutError());
    });
    this.#requests.set(reply, (message) => {
      done();
      if (message.headers?.code === 503 && message.data.length === 0)
        reject(new RequestError('no responders', { cause: new NoRespondersError(subject) }));
      else resolve(message);
    });
    try {
      this.publish(subject, payload, { reply, ...(options.headers === undefined ? {} : { headers: options.headers }) });
    } catch (error) {
      done();
      reject(error as Error);
    }
    return promise;
  }

  status(): AsyncIterable<Status> {
    return this.#statuses;
  }

  isClosed(): boolean {
    return this.#closed;
  }

  getServer(): string {
    return 'simulated:4222';
  }

  getServers(): { readonly listen: string }[] {
    return [{ listen: 'simulated:4222' }];
  }

  setServers(): void {
    // There is one server.
  }

  /** Everything that was published has arrived, and been answered. */
  async flush(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#path.toServer(() => this.#path.toClient(resolve));
    });
  }

  async drain(): Promise<void> {
    if (this.#client !== null) await this.flush();
    await this.close();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#client !== null) this.#server.disconnect(this.#client);
    this.#client = null;
    this.#statuses.end();
  }

  /** This connection with the type that the library takes. */
  get nats(): NatsConnection {
    return this as unknown as NatsConnection;
  }
}
