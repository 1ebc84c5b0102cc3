/**
 * RabbitMQ of the simulation: two brokers with one queue, which the scorers share. It stands below `@kronos/notifications`, in the
 * place of amqplib: how Kronos connects again, acknowledges and stores is the real code.
 */
import { errorText } from '@kronos/contracts';
import type { BrokerChannel, BrokerConnection, BrokerMessage, ConnectBroker } from '@kronos/notifications';
import type { Chance } from './chance.ts';
import { fineWeather, MessageLink } from './network.ts';
import type { Process, World } from './world.ts';

/** For `[inventory] transport_url`. */
export const TRANSPORT_URL = 'rabbit://nova:secret@rabbit-1:5672,nova:secret@rabbit-2:5672/';
export const BROKERS = ['rabbit-1', 'rabbit-2'] as const;
/** An end that hears nothing closes the connection after at most two heartbeats. */
const UNHEARD_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

/** How messages travel from Nova to the queue now. */
export interface Post {
  /** Share of messages that never arrive, and of those that come twice. */
  lost: number;
  doubled: number;
  /** Mean delay, ms: they arrive in any order. */
  delayMs: number;
}
const finePost = (): Post => ({ lost: 0, doubled: 0, delayMs: 20 });

/** One message of the queue; each delivery is an object of its own. */
class Delivery implements BrokerMessage {
  readonly content: Uint8Array;
  constructor(content: Uint8Array) {
    this.content = content;
  }
}

interface Consumer {
  readonly tag: string;
  readonly link: Link;
  readonly give: (message: Delivery | null) => void;
  readonly unacked: Set<Delivery>;
  prefetch: number;
}

export class SimulatedRabbit {
  readonly post = finePost();
  /** Told when a consumer of a process begins to take messages, and when that process learns that it no longer does. */
  onConsumer: (process: string, takes: boolean) => void = () => undefined;
  readonly #world: World;
  readonly #chance: Chance;
  readonly #travel: Chance;
  readonly #down = new Set<string>();
  readonly #links = new Set<Link>();
  /** Notifications that Nova's services keep until a broker takes them. */
  #held: Uint8Array[] = [];
  #ready: Delivery[] = [];
  /** Null: nobody has declared the queue, and the exchange drops what it is given. */
  #consumers: Consumer[] | null = null;
  #turn = 0;
  #serial = 0;

  constructor(world: World, chance: Chance) {
    this.#world = world;
    this.#chance = chance.fork('rabbit');
    this.#travel = this.#chance.fork('post');
  }

  /** A service of Nova publishes a message. */
  publish(content: Uint8Array): void {
    const { lost, doubled, delayMs } = this.post;
    const [fate, again] = [this.#travel.next(), this.#travel.next()];
    if (fate < lost) return;
    for (let copies = again < doubled ? 2 : 1; copies > 0; copies--)
      this.#world.after(this.#travel.exponential(delayMs), () => this.#arrive(content));
  }

  #arrive(content: Uint8Array): void {
    if (this.#down.size === BROKERS.length) this.#held.push(content);
    else if (this.#consumers !== null) {
      this.#ready.push(new Delivery(content));
      this.pump();
    }
  }

  /** How a process reaches the brokers. */
  connect(process: Process): ConnectBroker {
    return (_, { host }) => {
      const chance = this.#chance.fork(`${process.name}/${this.#serial++}`);
      const { promise, resolve, reject } = Promise.withResolvers<BrokerConnection>();
      const refused = (code: string): void => reject(new Error(`connect ${code} ${host}`));
      this.#world.after(0.2 + chance.exponential(2), () => {
        if (!this.#down.has(host)) {
          const link = new Link(this, this.#world, { process, host, chance });
          this.#links.add(link);
          process.onKilled(() => link.lost(0));
          process.enter(() => resolve(link.connection));
          return;
        }
        // Nobody answers, or the machine says that nobody listens.
        const afterMs = chance.flip(0.5) ? CONNECT_TIMEOUT_MS : chance.exponential(2);
        this.#world.after(afterMs, () => process.enter(() => refused(afterMs > 1000 ? 'ETIMEDOUT' : 'ECONNREFUSED')));
      });
      return promise;
    };
  }

  /** A broker is gone for a while; its connections end. While both are gone, Nova's services keep what they send, or lose it. */
  stop(host: string, ms: number, keeps: boolean): void {
    if (this.#down.has(host)) return;
    this.#down.add(host);
    for (const link of this.#links) if (link.host === host) link.broken('RabbitMQ was stopped');
    this.#world.after(ms, () => this.#start(host, keeps));
  }

  #start(host: string, keeps: boolean): void {
    if (!this.#down.delete(host)) return;
    const held = this.#held;
    this.#held = [];
    if (keeps) for (const content of held) this.#arrive(content);
  }

  /** The connection of a process breaks; either end notices after a while of its own. */
  cut(process: string, chance: Chance): void {
    for (const link of this.#links)
      if (link.process === process) link.silent(chance.between(0, UNHEARD_MS), chance.between(0, UNHEARD_MS));
  }

  /** The queue is deleted, with what is in it. */
  dropQueue(): void {
    const consumers = this.#consumers ?? [];
    this.#consumers = null;
    this.#ready = [];
    for (const { give } of consumers) give(null);
  }

  calm(): void {
    Object.assign(this.post, finePost());
    for (const host of BROKERS) this.#start(host, true);
  }

  // ---------------------------------------------------------------- what a link asks for

  declare(): void {
    this.#consumers ??= [];
  }

  begin(link: Link, prefetch: number, give: Consumer['give']): string {
    if (this.#consumers === null) throw new Error("NOT_FOUND - no queue 'kronos'");
    const consumer = { tag: `ctag-${this.#serial++}`, link, give, unacked: new Set<Delivery>(), prefetch };
    this.#consumers.push(consumer);
    this.pump();
    return consumer.tag;
  }

  settle(link: Link, message: BrokerMessage): void {
    for (const { link: its, unacked } of this.#consumers ?? []) if (its === link) unacked.delete(message as Delivery);
    this.pump();
  }

  cancel(tag: string): void {
    for (const one of this.#consumers ?? []) if (one.tag === tag) one.prefetch = 0;
  }

  /** The broker takes a connection for ended: what was not acknowledged is delivered again, before the others. */
  gone(link: Link): void {
    this.#links.delete(link);
    if (this.#consumers === null) return;
    const its = this.#consumers.filter((one) => one.link === link);
    this.#consumers = this.#consumers.filter((one) => one.link !== link);
    this.#ready.unshift(...its.flatMap(({ unacked }) => [...unacked]).map(({ content }) => new Delivery(content)));
    this.pump();
  }

  pump(): void {
    for (;;) {
      const free = (this.#consumers ?? []).filter(({ unacked, prefetch }) => unacked.size < prefetch);
      const consumer = free[this.#turn++ % Math.max(1, free.length)];
      if (consumer === undefined) return;
      const message = this.#ready.shift();
      if (message === undefined) return;
      consumer.unacked.add(message);
      consumer.give(message);
    }
  }
}

/** Who connects to which broker, and the source of what is drawn for their connection. */
interface LinkEnds {
  readonly process: Process;
  readonly host: string;
  readonly chance: Chance;
}

/** One connection, seen from both ends. */
class Link {
  readonly host: string;
  readonly process: string;
  readonly connection: BrokerConnection;
  readonly #rabbit: SimulatedRabbit;
  readonly #world: World;
  readonly #process: Process;
  readonly #link: MessageLink;
  readonly #closed: ((error?: Error) => void)[] = [];
  readonly #waiting = new Set<(error: Error) => void>();
  /** The state of the connection as each end knows it. */
  #clientOpen = true;
  #serverOpen = true;
  /** Nothing arrives any more. */
  #silent = false;
  #takes = false;

  constructor(rabbit: SimulatedRabbit, world: World, { process, host, chance }: LinkEnds) {
    this.host = host;
    this.process = process.name;
    this.#rabbit = rabbit;
    this.#world = world;
    this.#process = process;
    this.#link = new MessageLink(world, process, chance, fineWeather());
    this.connection = {
      on: (event, listener) => event === 'close' && this.#closed.push(listener),
      createChannel: () => this.#call(() => this.#channel()),
      close: async () => this.#closeByClient(),
    };
  }

  #channel(): BrokerChannel {
    let prefetch = 0;
    const answer = (message: BrokerMessage): void => {
      if (!this.#clientOpen) throw new Error('Channel closed');
      this.#send(() => this.#rabbit.settle(this, message));
    };
    return {
      // A channel of the simulation ends with its connection only.
      on: () => undefined,
      prefetch: (count) =>
        this.#call(() => {
          prefetch = count;
        }),
      assertQueue: () => this.#call(() => this.#rabbit.declare()),
      bindQueue: () => this.#call(() => undefined),
      consume: (_, take) =>
        this.#call(() => {
          const give = (message: BrokerMessage | null): void => this.#receive(() => take(message));
          return { consumerTag: this.#rabbit.begin(this, prefetch, give) };
        }).then((reply) => {
          this.#takes = true;
          this.#rabbit.onConsumer(this.process, true);
          return reply;
        }),
      ack: answer,
      reject: answer,
      cancel: (tag) => this.#call(() => this.#rabbit.cancel(tag)),
      close: async () => undefined,
    };
  }

  #send(act: () => void): void {
    if (!this.#silent) this.#link.toServer(() => this.#serverOpen && !this.#silent && act());
  }

  #receive(act: () => void): void {
    if (!this.#silent) this.#link.toClient(() => this.#clientOpen && act());
  }

  /** A request and its answer. */
  #call<T>(act: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (!this.#clientOpen) {
      reject(new Error('Connection closed'));
      return promise;
    }
    this.#waiting.add(reject);
    this.#send(() => {
      try {
        const value = act();
        this.#receive(() => {
          this.#waiting.delete(reject);
          resolve(value);
        });
      } catch (error) {
        this.broken(errorText(error));
      }
    });
    return promise;
  }

  #closeByClient(): void {
    if (!this.#clientOpen) return;
    this.#send(() => this.#closeAtServer());
    this.#closeAtClient(null);
  }

  #closeAtServer(): void {
    if (!this.#serverOpen) return;
    this.#serverOpen = false;
    this.#rabbit.gone(this);
  }

  #closeAtClient(error: Error | null): void {
    if (!this.#clientOpen) return;
    this.#clientOpen = false;
    if (this.#takes) this.#rabbit.onConsumer(this.process, false);
    for (const reject of this.#waiting) reject(error ?? new Error('Connection closed'));
    this.#waiting.clear();
    for (const listener of this.#closed) listener(error ?? undefined);
  }

  /** The broker ends it, and says why. */
  broken(reason: string): void {
    this.#closeAtServer();
    this.#receive(() => this.#closeAtClient(new Error(reason)));
  }

  /** Nothing passes any more. */
  silent(serverAfterMs: number, clientAfterMs: number): void {
    if (this.#silent) return;
    this.#silent = true;
    this.#world.after(serverAfterMs, () => this.#closeAtServer());
    this.#world.after(clientAfterMs, () =>
      this.#process.enter(() => this.#closeAtClient(new Error('Heartbeat timeout'))),
    );
  }

  /** Its process is dead: the broker learns of it from its machine. */
  lost(afterMs: number): void {
    this.#silent = true;
    this.#world.after(afterMs, () => this.#closeAtServer());
  }
}
