import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { type Clock, systemClock } from '@kronos/clock';
import { readMessage } from '@kronos/contracts';
import { connect, type NatsConnection, type NodeConnectionOptions, nuid } from '@nats-io/transport-node';

/** The effects that the library takes from outside: time, chance, the connection to a server, and work on other threads. */
export type Wire = {
  readonly clock: Clock;
  readonly connect: (options: NodeConnectionOptions) => Promise<NatsConnection>;
  /** A name that nobody else has, as one subject token. */
  readonly unique: () => string;
  /**
   * Time for which the server holds a request that finds no task, ms. Short, as a request cannot be withdrawn: a request whose
   * subscriber is gone makes servers of the 2.9 series deliver another task twice and forget a nak until the ack wait is over.
   */
  readonly pollMs: number;
  /**
   * Requests of readers. `expiresMs`: time after which the server ends one; `heartbeatMs`: interval of its heartbeats while there is
   * nothing to read. A server that is silent for longer than two of these has lost the consumer, or itself.
   */
  readonly reading: { readonly expiresMs: number; readonly heartbeatMs: number };
  /** Reads a stored message. The simulation reads each one once for all its readers. */
  readonly read: typeof readMessage;
  readonly zip: (body: Uint8Array) => Promise<Uint8Array>;
  /** @throws when the result is longer than `maxBytes`, or the input is not gzip */
  readonly unzip: (body: Uint8Array, maxBytes: number) => Promise<Uint8Array>;
};

const zip = promisify(gzip);
const unzip = promisify(gunzip);

/** A nats-server over TCP, and the machine's clock. */
export const natsWire: Wire = {
  clock: systemClock,
  connect,
  unique: () => nuid.next(),
  pollMs: 1_000,
  reading: { expiresMs: 30_000, heartbeatMs: 5_000 },
  read: readMessage,
  zip: (body) => zip(body),
  unzip: (body, maxBytes) => unzip(body, { maxOutputLength: maxBytes }),
};
