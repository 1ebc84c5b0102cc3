import { readFileSync } from 'node:fs';
import { type Clock, within } from '@kronos/clock';
import {
  type ClusterInfo,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StreamInfo,
} from '@nats-io/jetstream';
import {
  type Authenticator,
  AuthorizationError,
  credsAuthenticator,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type NodeConnectionOptions,
  nkeyAuthenticator,
  PermissionViolationError,
  UserAuthenticationExpiredError,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node';
import { judgeNatsServer } from './capabilities.ts';
import { transientCodes } from './codes.ts';
import { backoffMs, Deadline } from './deadline.ts';
import {
  Closed,
  EventLogError,
  NatsRefused,
  NatsUnreachable,
  NotProvisioned,
  ServerTooOld,
  StreamUnavailable,
} from './errors.ts';
import { KnownLog } from './knownLog.ts';
import { Disconnected, isNotFound, NoLeader, NotConnected, plainText, troubleOf, wrappedIn } from './trouble.ts';
import type { EventLogHooks, NatsOptions } from './types.ts';
import { natsWire, type Wire } from './wire.ts';

const DEFAULT_PORT = 4222;
/** A silent connection is noticed after two of these. The client's default is two minutes. */
const PING_INTERVAL_MS = 10_000;
const RECONNECT_WAIT_MS = 500;
const REQUEST_TIMEOUT_MS = 10_000;
/** Time for one answer: servers that are electing a leader do not answer, and to ask again soon is faster than to wait. */
const patienceMs = (requestTimeoutMs: number): number => Math.ceil(requestTimeoutMs / 3);
const MAX_REFUSED = 1_000;
const DRAIN_MS = 5_000;

/** Says that the copies of a stream have no leader; null when they have one, or there is only one copy. */
function leaderless({ leader, replicas = [] }: ClusterInfo): string | null {
  if (replicas.length === 0 || (leader !== undefined && leader !== '')) return null;
  const away = replicas.filter(({ current }) => !current).map(({ name }) => name);
  // Without a leader, the list has the copy that answers, too.
  const needed = Math.floor(replicas.length / 2) + 1;
  return away.length === 0
    ? 'its copies have no leader at the moment'
    : `its copies have no leader: ${needed} of ${replicas.length} are needed, and those on ${away.sort().join(', ')} do not take part`;
}

const isRefusal = (error: unknown): boolean =>
  error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;

/** `host:port` of a server URL; user information is dropped. */
export function hostPort(server: string): string {
  const url = new URL(server.includes('://') ? server : `nats://${server}`);
  return `${url.hostname}:${url.port === '' ? DEFAULT_PORT : url.port}`;
}

/** The prefix of a connection's reply subjects; what a subject token may not hold becomes `-`. */
export const inboxPrefixOf = (name: string): string => `_INBOX_${name.replace(/[^A-Za-z0-9_-]/g, '-')}`;

/** Reads a file at each connect, so that a renewed credential is used; while it cannot be read, the last one that could. */
function rereading(path: string): () => string {
  let last = readFileSync(path, 'utf8');
  return () => {
    try {
      last = readFileSync(path, 'utf8');
    } catch {
      // The server will say whether the old one still serves.
    }
    return last;
  };
}

function authenticatorOf(options: NatsOptions): Authenticator | undefined {
  const { credentialsFile, nkeySeedFile, user, password } = options;
  const source = (file: string): (() => Uint8Array) => {
    const read = rereading(file);
    return () => new TextEncoder().encode(read().trim());
  };
  if (credentialsFile !== undefined) return credsAuthenticator(source(credentialsFile));
  if (nkeySeedFile !== undefined) return nkeyAuthenticator(source(nkeySeedFile));
  return user === undefined ? undefined : usernamePasswordAuthenticator(user, password);
}

/** The authenticator, tried once, so that a file that is missing or holds something else is said at once. */
function checkedAuthenticator(options: NatsOptions): Authenticator | undefined {
  try {
    const authenticator = authenticatorOf(options);
    authenticator?.('nonce');
    return authenticator;
  } catch (error) {
    throw new NatsRefused(`the NATS credentials of ${options.name} cannot be used: ${plainText(error)}`);
  }
}

/** Connects once: every server of the list is tried until one answers or the time is over. */
async function firstConnection(
  options: NatsOptions,
  client: NodeConnectionOptions,
  { clock, connect }: Wire,
): Promise<NatsConnection> {
  const until = clock.monotonic() + (options.connectTimeoutMs ?? 10_000);
  for (;;) {
    const left = until - clock.monotonic();
    try {
      return await connect({ ...client, timeout: Math.max(250, left) });
    } catch (error) {
      if (isRefusal(error))
        throw new NatsRefused(`NATS refused the credentials of ${options.name}: ${plainText(error)}`, { cause: error });
      if (options.connectOnce === true || clock.monotonic() + RECONNECT_WAIT_MS >= until)
        throw new NatsUnreachable(options.servers.map(hostPort), plainText(error), { cause: error });
      await clock.sleep(RECONNECT_WAIT_MS);
    }
  }
}

/** One connection to NATS, kept for ever, and what the rest of the library needs to know about it. */
export class Link {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly requestTimeoutMs: number;
  /** See NatsOptions; null: for ever. */
  readonly readPatienceMs: number | null;
  readonly name: string;
  readonly hooks: EventLogHooks;
  readonly wire: Wire;
  readonly knownLog = new KnownLog();
  #connected = true;
  #closing = false;
  /** Requests that wait for an answer: told when the connection is lost. */
  readonly #waiting = new Set<(error: Error) => void>();
  #back = Promise.withResolvers<void>();
  readonly #inboxPrefix: string;
  /** Subject -> the server's words, of what it refused since the last {@link refusedOn} of each. */
  readonly #refused = new Map<string, string>();
  readonly #onReconnect = new Set<() => void>();
  readonly #onDisconnect = new Set<() => void>();

  private constructor(
    { nc, jsm }: { readonly nc: NatsConnection; readonly jsm: JetStreamManager },
    options: NatsOptions,
    hooks: EventLogHooks,
    wire: Wire,
  ) {
    this.nc = nc;
    this.wire = wire;
    this.requestTimeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
    this.readPatienceMs = options.readPatienceMs ?? null;
    this.js = jetstream(nc, { timeout: this.requestTimeoutMs, checkAPI: false });
    this.jsm = jsm;
    this.name = options.name;
    this.#inboxPrefix = options.inboxPrefix ?? inboxPrefixOf(options.name);
    this.hooks = hooks;
    this.#back.resolve();
  }

  /** @throws NatsUnreachable, NatsRefused, ServerTooOld */
  static async open(options: NatsOptions, hooks: EventLogHooks = {}, wire: Wire = natsWire): Promise<Link> {
    if (options.servers.length === 0) throw new NatsUnreachable([], 'the list of servers is empty');
    const { tls } = options;
    const authenticator = checkedAuthenticator(options);
    const client = {
      servers: [...options.servers],
      name: `kronos-${options.name}`,
      inboxPrefix: options.inboxPrefix ?? inboxPrefixOf(options.name),
      ...(authenticator === undefined ? {} : { authenticator }),
      ...(tls === undefined ? {} : { tls: { ...tls } }),
      // The defaults give up after ten attempts, and after the second refusal in a row.
      maxReconnectAttempts: -1,
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: RECONNECT_WAIT_MS,
      reconnectJitter: RECONNECT_WAIT_MS,
      pingInterval: PING_INTERVAL_MS,
    };
    const nc = await firstConnection(options, client, wire);
    const timeout = patienceMs(options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS);
    const jsm = await jetstreamManager(nc, { timeout, checkAPI: false });
    const link = new Link({ nc, jsm }, options, hooks, wire);
    const { verdict, text } = judgeNatsServer(link.version, options.replicas ?? 1);
    if (verdict === 'refuse') {
      await nc.close();
      throw new ServerTooOld(text);
    }
    if (verdict === 'warn') hooks.onWarning?.({ code: 'nats_server_version', text });
    link.#restorePool(options.servers);
    void link.#watch();
    hooks.onStatus?.({ type: 'connected', detail: nc.getServer() });
    return link;
  }

  /** A new reply subject under this connection's own prefix. */
  inbox(): string {
    return `${this.#inboxPrefix}.${this.wire.unique()}`;
  }

  /** The server's words when it refused the subject since this was asked last: servers do not answer such a publish. */
  refusedOn(subject: string): string | null {
    const words = this.#refused.get(subject) ?? null;
    this.#refused.delete(subject);
    return words;
  }

  /**
   * The error for an act that the server refused.
   *
   * @param act completes "NAME may not", such as `publish on kronos.plans.gpu`
   * @param reason the server's words, or the error that holds them
   */
  refusal(act: string, reason: unknown): NatsRefused {
    let cause = reason;
    while (!(cause instanceof PermissionViolationError) && wrappedIn(cause) !== undefined) cause = wrappedIn(cause);
    const ownInbox =
      cause instanceof PermissionViolationError &&
      cause.operation === 'subscription' &&
      cause.subject.startsWith(`${this.#inboxPrefix}.`);
    const remedy = ownInbox
      ? `it listens for answers under ${this.#inboxPrefix}: set [nats] inbox_prefix to what its NATS user may subscribe to, such as _INBOX_viewer for the user viewer`
      : 'its NATS user lacks the permission; after an upgrade, give the NATS servers the users of this version: docs/runbook.md#upgrades';
    return new NatsRefused(`${this.name} may not ${act}: ${plainText(cause)}; ${remedy}`, { cause: reason });
  }

  /**
   * Deletes a consumer of one's own that is not needed any more. Waits for no answer: the server forgets an unused one
   * by itself, only later.
   */
  forget(stream: string, consumer: string): void {
    if (!this.connected) return;
    try {
      this.nc.publish(`$JS.API.CONSUMER.DELETE.${stream}.${consumer}`, '', { reply: this.inbox() });
    } catch {
      // The connection is being closed.
    }
  }

  get clock(): Clock {
    return this.wire.clock;
  }

  get version(): string {
    return this.nc.info?.version ?? '0.0.0';
  }

  /** Bytes of the largest message that the server takes; null before the first connection. */
  get maxPayload(): number | null {
    return this.nc.info?.max_payload ?? null;
  }

  get connected(): boolean {
    return this.#connected && !this.nc.isClosed();
  }

  get closed(): boolean {
    return this.nc.isClosed();
  }

  /** The client forgets servers that did not answer the very first attempt; they may come later. */
  #restorePool(servers: readonly string[]): void {
    const pool = this.nc.getServers().map((s) => s.listen);
    const missing = servers.filter((s) => !pool.includes(hostPort(s)));
    if (missing.length > 0) this.nc.setServers([...pool, ...missing]);
  }

  async #watch(): Promise<void> {
    const say = (type: string, detail: string) => this.hooks.onStatus?.({ type, detail });
    for await (const status of this.nc.status()) {
      switch (status.type) {
        case 'disconnect':
          this.#connected = false;
          this.#back = Promise.withResolvers<void>();
          this.#back.promise.catch(() => undefined);
          this.#giveUpWaiting(new Disconnected());
          for (const tell of [...this.#onDisconnect]) tell();
          say('disconnected', plainText(status.server));
          break;
        case 'reconnect':
          this.#connected = true;
          this.#back.resolve();
          for (const tell of [...this.#onReconnect]) tell();
          say('reconnected', plainText(status.server));
          break;
        case 'error':
          if (status.error instanceof PermissionViolationError && this.#refused.size < MAX_REFUSED)
            this.#refused.set(status.error.subject, plainText(status.error));
          say('error', plainText(status.error));
          break;
        case 'slowConsumer':
          say('slow', `${status.pending} messages wait to be read`);
          break;
        default:
      }
    }
    this.#connected = false;
    this.#giveUpWaiting(new Closed('the connection to NATS is closed'));
    this.#back.reject(new Closed('the connection to NATS is closed'));
    if (!this.#closing)
      this.hooks.onWarning?.({ code: 'nats_closed', text: 'the connection to NATS was closed for good' });
    say('closed', '');
  }

  /** Called after each reconnect, until the returned function is called. */
  onReconnect(tell: () => void): () => void {
    this.#onReconnect.add(tell);
    return () => this.#onReconnect.delete(tell);
  }

  onDisconnect(tell: () => void): () => void {
    this.#onDisconnect.add(tell);
    return () => this.#onDisconnect.delete(tell);
  }

  /** Waits for the connection. @throws NotConnected, Closed */
  async ready(timeoutMs: number): Promise<void> {
    if (this.nc.isClosed()) throw new Closed('the connection to NATS is closed');
    if (this.#connected) return;
    await within(this.clock, this.#back.promise, Math.max(1, timeoutMs), () => new NotConnected());
  }

  /**
   * Runs a request and stops waiting for its answer when the connection is lost. What is asked while there is no
   * connection would only be thrown away by the client, so this waits for one first.
   */
  async ask<T>(act: () => Promise<T>, timeoutMs: number = this.requestTimeoutMs): Promise<T> {
    await this.ready(timeoutMs);
    const answer = Promise.withResolvers<T>();
    this.#waiting.add(answer.reject);
    act().then(answer.resolve, answer.reject);
    try {
      return await answer.promise;
    } finally {
      this.#waiting.delete(answer.reject);
    }
  }

  /**
   * Asks until there is an answer, while asking again is of use and there is time.
   *
   * @throws StreamUnavailable, or what {@link fatal} makes of the server's answer
   */
  async insist<T>(act: () => Promise<T>, what: string): Promise<T> {
    const deadline = new Deadline(this.clock, this.requestTimeoutMs);
    for (let tries = 0; ; tries++) {
      try {
        await this.ready(Math.max(100, deadline.leftMs));
        return await deadline.attempt(patienceMs(this.requestTimeoutMs), () => this.ask(act));
      } catch (error) {
        const fatal = this.fatal(error, what);
        if (fatal !== null) throw fatal;
        if (this.lacksJetStream(error))
          throw new StreamUnavailable(
            `${what}: JetStream is not enabled on the NATS server ${this.nc.getServer()}: add a jetstream block to its configuration`,
            { cause: error },
          );
        if (deadline.leftMs <= 50) throw new StreamUnavailable(`${what}: ${plainText(error)}`, { cause: error });
        await this.clock.sleep(backoffMs(tries, 500));
      }
    }
  }

  /**
   * The leader's word on a stream. Without a leader, newer servers (2.14 and 2.15 do) let a follower answer.
   *
   * @param subjects filter of the subjects whose counts are wanted; none without it
   * @throws NoLeader, and what the request throws
   */
  async streamInfo(stream: string, subjects?: string): Promise<StreamInfo> {
    const info = await this.jsm.streams.info(
      stream,
      subjects === undefined ? undefined : { subjects_filter: subjects },
    );
    const trouble = info.cluster === undefined ? null : leaderless(info.cluster);
    if (trouble !== null) throw new NoLeader(trouble);
    return info;
  }

  /** Nobody answers, and the server says that it has no JetStream: it does not come by waiting. */
  lacksJetStream(error: unknown): boolean {
    const { info } = this.nc;
    return troubleOf(error) === 'noResponders' && info?.server_id !== undefined && info.jetstream !== true;
  }

  #giveUpWaiting(error: Error): void {
    for (const reject of [...this.#waiting]) reject(error);
  }

  /**
   * @param timeoutMs for the answer, at least 1
   * @param options `mayLeave` is called right before the bytes leave; when it throws, nothing is sent
   */
  request(
    subject: string,
    body: Uint8Array | string,
    timeoutMs: number,
    { headers, mayLeave }: { readonly headers?: MsgHdrs; readonly mayLeave?: (() => void) | undefined } = {},
  ): Promise<Msg> {
    return this.ask(async () => {
      mayLeave?.();
      const answer = this.nc.request(subject, body, {
        timeout: Math.max(1, timeoutMs),
        ...(headers === undefined ? {} : { headers }),
      });
      // The client writes to its socket in a later microtask; another one may occupy the process before that.
      if (mayLeave !== undefined) void this.nc.flush().catch(() => undefined);
      return answer;
    }, timeoutMs);
  }

  /** The error to throw when asking again is of no use; null when it may help. */
  fatal(error: unknown, what: string): Error | null {
    if (error instanceof EventLogError) return error;
    switch (troubleOf(error)) {
      case 'refused':
        return this.refusal(`ask for ${what}`, error);
      case 'closed':
        return new Closed(`${what}: the connection to NATS is closed`, { cause: error });
      case 'other':
        if (isNotFound(error)) return new NotProvisioned([`${what}: ${plainText(error)}`]);
        if (error instanceof JetStreamApiError && transientCodes.includes(error.code)) return null;
        return error instanceof Error ? error : new Error(String(error));
      default:
        return null;
    }
  }

  warn(code: string, text: string): void {
    this.hooks.onWarning?.({ code, text });
  }

  async close(): Promise<void> {
    this.#closing = true;
    if (this.nc.isClosed()) return;
    if (!this.#connected) {
      await this.nc.close();
      return;
    }
    try {
      await within(this.clock, this.nc.drain(), DRAIN_MS, () => new Error('not drained'));
    } catch {
      await this.nc.close();
    }
  }
}
