import { gunzipSync, gzipSync } from 'node:zlib';
import {
  connectEventLog,
  type EventLog,
  type EventLogHooks,
  type NatsOptions,
  type Wire,
  type Wrap,
} from '@kronos/eventlog';
import { type Fate, type Path, SimulatedConnection, type SimulatedServer } from '@kronos/eventlog/simulated';
import type { HttpAttempt, Transport, Transported } from '@kronos/http';
import type { InProcessSim } from '@kronos/simcloud';
import type { Chance } from './chance.ts';
import { readOnce } from './readOnce.ts';
import { PROXY_PASSWORD } from './simulatedCloud.ts';
import type { Process, World } from './world.ts';

/** How messages travel now. Changed by faults. */
export interface Weather {
  /** Mean of the delay of one message, ms. */
  delayMs: number;
  /** Share of messages to JetStream that never arrive; share whose answers never do. */
  lost: number;
  unanswered: number;
}

export const fineWeather = (): Weather => ({ delayMs: 0.5, lost: 0, unanswered: 0 });

/** Slower than in production, because most simulated events would be heartbeats of idle readers. */
const READING = { expiresMs: 120_000, heartbeatMs: 30_000 };

/** Messages between one process and a server, in order in each direction. */
export class MessageLink {
  readonly #world: World;
  readonly #process: Process;
  readonly #chance: Chance;
  readonly #weather: Weather;
  #toServer = 0;
  #toClient = 0;
  /** Nothing arrives before. */
  stalledUntil = 0;

  constructor(world: World, process: Process, chance: Chance, weather: Weather) {
    this.#world = world;
    this.#process = process;
    this.#chance = chance;
    this.#weather = weather;
  }

  #arrival(last: number): number {
    const delay = 0.05 + this.#chance.exponential(this.#weather.delayMs);
    return Math.max(last + 1e-6, this.#world.now + delay, this.stalledUntil);
  }

  toServer(act: () => void): void {
    this.#toServer = this.#arrival(this.#toServer);
    this.#world.at(this.#toServer, act);
  }

  toClient(act: () => void): void {
    this.#toClient = this.#arrival(this.#toClient);
    this.#world.at(this.#toClient, () => this.#process.enter(act));
  }
}

/** The connections of the simulation to NATS. */
export class NatsNetwork {
  readonly weather = fineWeather();
  /** Called when a process sends an answer to a delivery, with the delivery's reply subject. */
  onAnswer: (process: string, reply: string) => void = () => undefined;
  /** Messages that never arrive, by subject. */
  loses: (subject: string) => boolean = () => false;
  readonly #world: World;
  readonly #server: SimulatedServer;
  readonly #pollMs: number;
  readonly #chance: Chance;
  readonly #open = new Map<string, { readonly connection: SimulatedConnection; readonly link: MessageLink }>();
  readonly #read = readOnce();
  #serial = 0;

  constructor(world: World, server: SimulatedServer, chance: Chance, pollMs: number) {
    this.#pollMs = pollMs;
    this.#world = world;
    this.#server = server;
    this.#chance = chance.fork('nats');
  }

  /** The event log as a process gets it. */
  connect(
    process: Process,
    hooks: EventLogHooks = {},
    options: NatsOptions = { servers: ['simulated'], name: process.name },
    wrap?: Wrap,
  ): Promise<EventLog> {
    return connectEventLog({ ...options, name: process.name, replicas: 1 }, hooks, this.wire(process), wrap);
  }

  /** The network and the clock for the event log library of a process. */
  wire(process: Process): Wire {
    const own = this.#chance.fork(`${process.name}/${this.#serial++}`);
    const link = new MessageLink(this.#world, process, own.fork('delay'), this.weather);
    const fates = own.fork('fate');
    const path: Path = {
      toServer: (act) => link.toServer(act),
      toClient: (act) => link.toClient(act),
      fate: (subject): Fate => {
        if (subject.startsWith('$JS.ACK.')) this.onAnswer(process.name, subject);
        if (this.loses(subject)) return 'lost';
        const { lost, unanswered } = this.weather;
        const draw = fates.next();
        if (draw < lost) return 'lost';
        return draw < lost + unanswered ? 'unanswered' : 'answered';
      },
    };
    let names = 0;
    return {
      clock: process.clock,
      connect: async ({ inboxPrefix = '_INBOX' }) => {
        // A process's own prefix: no two connections may read each other's answers.
        const connection = new SimulatedConnection(
          this.#server,
          { inboxPrefix: `${inboxPrefix}.${process.name}` },
          process.clock,
          path,
        );
        this.#open.set(process.name, { connection, link });
        process.onKilled(() => {
          connection.sever();
          this.#open.delete(process.name);
        });
        return connection.nats;
      },
      unique: () => `${process.name}-${names++}`,
      pollMs: this.#pollMs,
      reading: READING,
      read: this.#read,
      zip: async (body) => gzipSync(body, { level: 1 }),
      unzip: async (body, maxBytes) => gunzipSync(body, { maxOutputLength: maxBytes }),
    };
  }

  /** The connection of a process breaks, and is there again after a while. */
  cut(process: string, ms: number): void {
    const open = this.#open.get(process);
    if (open === undefined) return;
    open.connection.break();
    this.#world.after(ms, () => open.connection.restore());
  }

  /** Messages from and to a process arrive late. */
  stall(process: string, ms: number): void {
    const open = this.#open.get(process);
    if (open !== undefined) open.link.stalledUntil = this.#world.now + ms;
  }

  processes(): string[] {
    return [...this.#open.keys()];
  }

  calm(): void {
    Object.assign(this.weather, fineWeather());
    for (const { connection, link } of this.#open.values()) {
      link.stalledUntil = 0;
      connection.restore();
    }
  }
}

const socketError = (code: string, syscall: string): Error =>
  Object.assign(new Error(`${syscall} ${code} http://kronos:${PROXY_PASSWORD}@proxy:3128`), { code, syscall });

/** Calls to the cloud's APIs: the bytes of each call and its answer travel, without sockets. */
export class CloudNetwork {
  readonly weather = fineWeather();
  /** Called when a process has been given an answer; the call began at this true time. */
  onReply: (process: string, call: { method: string; url: string; status: number }, beganMs: number) => void = () =>
    undefined;
  /** True time at which the call that the cloud is being given left its process: the network may be slow. */
  leftMs = 0;
  /** Processes that cannot connect, until true time. */
  readonly #refused = new Map<string, number>();
  readonly #world: World;
  readonly #sim: InProcessSim;
  readonly #chance: Chance;

  constructor(world: World, sim: InProcessSim, chance: Chance) {
    this.#world = world;
    this.#sim = sim;
    this.#chance = chance.fork('http');
    this.weather.delayMs = 5;
  }

  refuse(process: string, ms: number): void {
    this.#refused.set(process, this.#world.now + ms);
  }

  calm(): void {
    Object.assign(this.weather, fineWeather(), { delayMs: 5 });
    this.#refused.clear();
  }

  transport(process: Process): Transport {
    const chance = this.#chance.fork(process.name);
    const delay = (): number => 0.2 + chance.exponential(this.weather.delayMs);
    return (attempt: HttpAttempt) => {
      const { promise, resolve, reject } = Promise.withResolvers<Transported>();
      const { signal, limits } = attempt;
      const beganMs = this.#world.wall;
      let over = false;
      let cancel = (): void => undefined;
      const end = (settle: () => void): void => {
        if (over) return;
        over = true;
        cancel();
        signal.removeEventListener('abort', aborted);
        settle();
      };
      const aborted = (): void => end(() => reject(signal.reason as Error));
      const back = (settle: () => void): void => {
        this.#world.after(delay(), () => process.enter(() => end(settle)));
      };
      if (signal.aborted) {
        reject(signal.reason as Error);
        return promise;
      }
      signal.addEventListener('abort', aborted);
      cancel = process.clock.after(limits.headersMs, () =>
        end(() => reject(Object.assign(new Error('Headers Timeout Error'), { code: 'UND_ERR_HEADERS_TIMEOUT' }))),
      );
      if ((this.#refused.get(process.name) ?? 0) > this.#world.now) {
        back(() => reject(socketError('ECONNREFUSED', 'connect')));
        return promise;
      }
      // First the connection is made; the bytes leave when the process learns that it is.
      const leave = (): void => {
        if (over) return;
        try {
          attempt.checkSend?.();
        } catch (error) {
          end(() => reject(error as Error));
          return;
        }
        const leftMs = this.#world.wall;
        this.#world.after(delay(), () => {
          if (!process.alive) return;
          this.leftMs = leftMs;
          this.#sim.dispatch(
            { method: attempt.method, url: attempt.url, headers: attempt.headers, body: attempt.body ?? '' },
            {
              reply: ({ status, headers, body: text }) =>
                back(() => {
                  this.onReply(process.name, { method: attempt.method, url: attempt.url, status }, beganMs);
                  resolve({
                    statusCode: status,
                    headers: headers as Record<string, string | string[]>,
                    body: { text: async () => text },
                  });
                }),
              cut: () => back(() => reject(socketError('ECONNRESET', 'read'))),
            },
          );
        });
      };
      this.#world.after(delay(), () => process.enter(leave));
      return promise;
    };
  }
}
