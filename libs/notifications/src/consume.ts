/** Takes messages from a queue of one's own on RabbitMQ, for ever: over several brokers, through every loss of a connection. */

import { readFile } from 'node:fs/promises';
import type { Clock } from '@kronos/clock';
import type { Broker, BrokerTransport } from '@kronos/config';
import { DAY_MS, errorText } from '@kronos/contracts';

/** A message of RabbitMQ. */
export interface BrokerMessage {
  readonly content: Uint8Array;
}

/** A channel of amqplib, as far as it is used here. */
export interface BrokerChannel {
  on(event: 'error' | 'close', listener: (error?: Error) => void): unknown;
  prefetch(count: number): Promise<unknown>;
  assertQueue(queue: string, options: { durable: boolean; arguments: Record<string, unknown> }): Promise<unknown>;
  bindQueue(queue: string, exchange: string, pattern: string): Promise<unknown>;
  /** `take` is given null when RabbitMQ cancels the consumer. */
  consume(queue: string, take: (message: BrokerMessage | null) => void): Promise<{ readonly consumerTag: string }>;
  /** Throws on a channel that is closed, as `reject` does. */
  ack(message: BrokerMessage): void;
  reject(message: BrokerMessage, requeue: boolean): void;
  cancel(consumerTag: string): Promise<unknown>;
  close(): Promise<void>;
}

/** A connection of amqplib, as far as it is used here. */
export interface BrokerConnection {
  on(event: 'error' | 'close', listener: (error?: Error) => void): unknown;
  createChannel(): Promise<BrokerChannel>;
  close(): Promise<void>;
}

/** Connects to one broker of the transport. @throws why it is not connected */
export type ConnectBroker = (options: ConsumeOptions, broker: Broker) => Promise<BrokerConnection>;

export interface ConsumeOptions {
  readonly transport: BrokerTransport;
  /** Paths; read again at each connection. */
  readonly tls: { readonly caFile: string | null; readonly certFile: string | null; readonly keyFile: string | null };
  /** Nova's `control_exchange`: a topic exchange that only Nova declares. */
  readonly exchange: string;
  /** Nova's `[oslo_messaging_notifications] topics`. */
  readonly topic: string;
  readonly queue: string;
  readonly queueType: 'quorum' | 'classic';
  /** Shown by RabbitMQ. */
  readonly name: string;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Whether messages could be stored now; while they cannot, none is taken. */
  readonly ready: () => boolean;
  /**
   * Stores one message. `stored`: RabbitMQ may forget it. `bad`: it cannot be read and is rejected. Where it throws, the connection is
   * closed, so that RabbitMQ delivers every message that was not stored again, to any consumer.
   */
  readonly store: (body: Uint8Array) => Promise<'stored' | 'bad'>;
  /** Told of each change. `detail` names the broker, and why it is not connected. */
  readonly onState: (state: { readonly connected: boolean; readonly detail: string }) => void;
}

export interface Consuming {
  /** Takes no more, waits for what is being stored, disconnects. */
  stop(): Promise<void>;
}

/** Messages that are being stored at once. */
const PREFETCH = 100;
const HEARTBEAT_SECONDS = 15;
const CONNECT_TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
const READY_POLL_MS = 1_000;
/** While nobody takes them: more messages than this push out the oldest, and a queue that nobody uses for a day goes away. */
const QUEUE_LIMITS = { 'x-max-length': 100_000, 'x-expires': DAY_MS };

/**
 * Begins at once and goes on until stopped.
 *
 * @param open default: amqplib, over the network
 */
export function consume(options: ConsumeOptions, open: ConnectBroker = overNetwork): Consuming {
  const { transport, clock, onState, ready } = options;
  const ending = new AbortController();
  const { signal } = ending;
  const pause = (milliseconds: number): Promise<void> => clock.sleep(milliseconds, signal);

  async function run(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    for (let turn = 0; !signal.aborted; turn++) {
      while (!ready() && !signal.aborted) await pause(READY_POLL_MS);
      if (signal.aborted) return;
      const broker = transport.brokers[turn % transport.brokers.length];
      if (broker === undefined) throw new RangeError('a transport has at least one broker');
      const address = `${broker.host}:${broker.port}`;
      let reason: string;
      try {
        reason = await session(options, await open(options, broker), signal, () => {
          pauseMs = FIRST_PAUSE_MS;
          onState({ connected: true, detail: address });
        });
      } catch (error) {
        reason = errorText(error);
      }
      onState({ connected: false, detail: signal.aborted ? `${address}: stopped` : `${address}: ${reason}` });
      await pause(pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  }

  const done = run();
  return {
    async stop() {
      ending.abort();
      await done;
    },
  };
}

/** One connection, until it ends or the signal aborts. Returns or throws why it ended. */
async function session(
  options: ConsumeOptions,
  connection: BrokerConnection,
  signal: AbortSignal,
  onReady: () => void,
): Promise<string> {
  const ended = Promise.withResolvers<string>();
  const end = (reason: string): void => ended.resolve(reason);
  connection.on('error', (error) => end(errorText(error)));
  connection.on('close', (error) => end(error === undefined ? 'RabbitMQ closed the connection' : errorText(error)));
  const onAbort = (): void => end('stopped');
  const storing = new Set<Promise<void>>();
  let channel: BrokerChannel | null = null;
  try {
    channel = await connection.createChannel();
    channel.on('error', (error) => end(errorText(error)));
    channel.on('close', () => end('RabbitMQ closed the channel'));
    const taking = channel;
    await taking.prefetch(PREFETCH);
    await taking.assertQueue(options.queue, { durable: true, arguments: queueArguments(options.queueType) });
    // Never declared here: with other arguments than Nova's it would keep Nova from declaring it.
    await taking.bindQueue(options.queue, options.exchange, `${options.topic}.*`);
    const { consumerTag } = await taking.consume(options.queue, (message) => {
      if (message === null) {
        end('RabbitMQ cancelled the consumer: the queue was deleted or moved');
        return;
      }
      const one = options
        .store(message.content)
        .then((outcome) => {
          // A channel that is gone takes no answer; RabbitMQ delivers the message again.
          if (outcome === 'stored') taking.ack(message);
          else taking.reject(message, false);
        })
        .catch((error: unknown) => end(errorText(error)))
        .finally(() => storing.delete(one));
      storing.add(one);
    });
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    else onReady();
    const reason = await ended.promise;
    if (signal.aborted) await taking.cancel(consumerTag).catch(() => undefined);
    await Promise.all(storing);
    return reason;
  } finally {
    signal.removeEventListener('abort', onAbort);
    await channel?.close().catch(() => undefined);
    await connection.close().catch(() => undefined);
  }
}

async function overNetwork({ transport, tls, name }: ConsumeOptions, broker: Broker): Promise<BrokerConnection> {
  // Few installations use notifications: the others start without it.
  const { connect } = await import('amqplib');
  const file = (path: string | null) => (path === null ? undefined : readFile(path));
  const [ca, cert, key] = transport.tls
    ? await Promise.all([file(tls.caFile), file(tls.certFile), file(tls.keyFile)])
    : [];
  const address = {
    protocol: transport.tls ? 'amqps' : 'amqp',
    hostname: broker.host,
    port: broker.port,
    username: broker.username,
    password: broker.password,
    vhost: encodeURIComponent(transport.virtualHost),
    heartbeat: HEARTBEAT_SECONDS,
  };
  return connect(address, {
    timeout: CONNECT_TIMEOUT_MS,
    clientProperties: { connection_name: name },
    ...(ca === undefined ? {} : { ca: [ca] }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  });
}

/** RabbitMQ refuses a queue that is there with other arguments: these are part of what an installation has. */
const queueArguments = (type: ConsumeOptions['queueType']): Record<string, unknown> => ({
  'x-queue-type': type,
  ...QUEUE_LIMITS,
});
