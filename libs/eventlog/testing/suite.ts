import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, describe, test } from 'vitest';
import { nightly } from '../../../test/nightly.ts';
import { connectEventLog } from '../src/index.ts';
import { availableServers, type FoundBinary } from '../src/local/find.ts';
import { type NatsServer, type ServerOptions, startNatsServer } from '../src/local/server.ts';
import type { EventLog, EventLogHooks, NatsOptions } from '../src/wire/types.ts';
import { bareConnection } from './cluster.ts';
import { testLimits } from './messages.ts';

/** For suites that run on every server there is: the installed one, and a current one when it can be had. */

const found = await availableServers();

/** Things to close at the end of a suite, last opened first. */
export class Closing {
  readonly #open: (() => Promise<unknown>)[] = [];

  add<T extends { close(): Promise<unknown> } | { stop(): Promise<unknown> }>(thing: T): T {
    this.#open.push(() => ('close' in thing ? thing.close() : thing.stop()));
    return thing;
  }

  async all(): Promise<void> {
    for (const close of this.#open.splice(0).reverse()) await close();
  }
}

export interface Bench {
  readonly found: FoundBinary;
  readonly closing: Closing;
  server(options?: ServerOptions): Promise<NatsServer>;
  /** Connected to `server`. */
  connect(server: { readonly url: string }, more?: Partial<NatsOptions>, hooks?: EventLogHooks): Promise<EventLog>;
  /** A connection that bypasses the library. */
  bare(server: { readonly url: string }): Promise<{ nc: NatsConnection; js: JetStreamClient; jsm: JetStreamManager }>;
  /** A server of its own with everything provisioned. */
  provisioned(
    aggregates?: readonly string[],
    more?: { readonly options?: ServerOptions; readonly ackWaitSeconds?: number; readonly logMaxBytes?: number },
  ): Promise<{ server: NatsServer; log: EventLog }>;
}

/**
 * @param options `concurrent`: the tests of the suite run side by side; for those that mostly wait. `olderAtNight`: an older server
 *   is used with KRONOS_NIGHTLY=1 only; for suites that take much CPU. `contract.int.test.ts` states the facts about all servers
 */
export function onEachServer(
  name: string,
  { concurrent, olderAtNight = false }: { readonly concurrent: boolean; readonly olderAtNight?: boolean },
  suite: (bench: Bench) => void,
): void {
  const servers = olderAtNight && !nightly ? found.servers.slice(-1) : found.servers;
  if (found.missing !== null) test.skip(`${name} on the newest nats-server, which is not there: ${found.missing}`);
  describe.each(servers.map((server) => [server.version, server] as const))(
    `${name} on nats-server %s`,
    { concurrent },
    (_, server) => {
      const closing = new Closing();
      afterAll(() => closing.all());
      const bench: Bench = {
        found: server,
        closing,
        server: async (options) => closing.add(await startNatsServer({ ...options, server })),
        connect: async ({ url }, more, hooks) =>
          closing.add(await connectEventLog({ servers: [url], name: 'test', ...more }, hooks)),
        bare: async ({ url }) => {
          const nc = closing.add(await bareConnection(url));
          return { nc, js: jetstream(nc), jsm: await jetstreamManager(nc) };
        },
        provisioned: async (aggregates = ['gpu'], more = {}) => {
          const started = await bench.server(more.options);
          const log = await bench.connect(started);
          const limits = more.logMaxBytes === undefined ? testLimits : { ...testLimits, logMaxBytes: more.logMaxBytes };
          const { ackWaitSeconds } = more;
          await log.provision({
            limits,
            replicas: 1,
            aggregates,
            ...(ackWaitSeconds === undefined ? {} : { ackWaitSeconds }),
          });
          return { server: started, log };
        },
      };
      suite(bench);
    },
  );
}
