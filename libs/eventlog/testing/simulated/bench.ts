import { type ManualClock, manualClock } from '@kronos/clock/testing';
import { connectEventLog, natsWire } from '../../src/index.ts';
import { inboxPrefixOf, Link } from '../../src/wire/link.ts';
import type { Wire } from '../../src/wire/wire.ts';
import { testLimits } from '../messages.ts';
import { type Fate, SimulatedConnection } from './connection.ts';
import { SimulatedServer } from './server.ts';

/** A message that asked for an answer. */
type Asked = {
  readonly subject: string;
  /** The time at which it was sent, ms since the link was opened. */
  readonly atMs: number;
  /** Messages with the same number were sent together. */
  readonly turn: number;
};

/** The faults in force; none at first. */
type Faults = {
  /** The fate of a message for which the link expects an answer. */
  fate: (subject: string) => Fate;
  /** The server's refusal of a publish; null: it stores the message. */
  refuse: (subject: string) => object | null;
  /** Delay of the messages that the link sends, ms. */
  delayMs: number;
};

/** A link to a simulated server with everything provisioned, on a clock that moves only while a test waits for something. */
export type Bench = {
  readonly server: SimulatedServer;
  readonly connection: SimulatedConnection;
  readonly link: Link;
  readonly clock: ManualClock;
  /** The warnings of the library. */
  readonly warnings: { readonly code: string; readonly text: string }[];
  /** The requests of the link, in order. */
  readonly asked: Asked[];
  readonly faults: Faults;
  /** ms since the link was opened. */
  readonly nowMs: number;
  /** Makes the streams and durables that are missing. */
  provision(): Promise<void>;
  /** Moves the clock from timer to timer until the promise settles. @throws when nothing is left that could settle it */
  settled<T>(promise: Promise<T>): Promise<T>;
  /** Lets everything happen that is due within `ms`. */
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
};

export type BenchOptions = {
  /** Default 300. */
  readonly requestTimeoutMs?: number;
  /** Default 1000. */
  readonly pollMs?: number;
  readonly aggregates?: readonly string[];
  /** Default 3. */
  readonly ackWaitSeconds?: number;
  readonly sinks?: readonly string[];
  readonly idsFirst?: boolean;
};

/** Lets every promise settle that can: nothing here waits for anything but the clock. */
const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Moves the clock from timer to timer until the promise settles. */
async function settle<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let over = false;
  const mark = () => {
    over = true;
  };
  promise.then(mark, mark);
  for (await quiet(); !over; await quiet())
    if (!clock.advanceToNext()) throw new Error('nothing is left to happen, and the promise has not settled');
  return await promise;
}

async function pass(clock: ManualClock, ms: number): Promise<void> {
  let over = false;
  clock.after(ms, () => {
    over = true;
  });
  for (await quiet(); !over; await quiet()) clock.advanceToNext();
}

/** Gives what is asked for together the same number. */
function turnsOf(): () => number {
  let turn = 0;
  let together = false;
  return () => {
    if (!together) {
      together = true;
      turn++;
      queueMicrotask(() => {
        together = false;
      });
    }
    return turn;
  };
}

export async function simulatedBench({
  requestTimeoutMs = 300,
  pollMs = 1_000,
  aggregates = ['gpu'],
  ackWaitSeconds = 3,
  sinks = [],
  idsFirst = true,
}: BenchOptions = {}): Promise<Bench> {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const faults: Faults = { fate: () => 'answered', refuse: () => null, delayMs: 0 };
  const server = new SimulatedServer({ clock, idsFirst, refuse: (subject) => faults.refuse(subject) });
  const soon = (act: () => void) => queueMicrotask(act);
  const asked: Asked[] = [];
  const warnings: Bench['warnings'] = [];
  let serial = 0;
  const wire = (connect: Wire['connect']): Wire => ({
    ...natsWire,
    clock,
    pollMs,
    unique: () => `u${serial++}`,
    connect,
  });
  const toServer = (act: () => void) => void (faults.delayMs > 0 ? clock.after(faults.delayMs, act) : soon(act));
  const open = (fate: (subject: string) => Fate, inboxPrefix: string) =>
    new SimulatedConnection(server, { inboxPrefix }, clock, { toServer, toClient: soon, fate });

  const settled = <T>(promise: Promise<T>): Promise<T> => settle(clock, promise);

  async function provision(): Promise<void> {
    const log = await connectEventLog(
      { servers: ['simulated'], name: 'provision' },
      {},
      wire(async () => open(() => 'answered', inboxPrefixOf('provision')).nats),
    );
    await settled(log.provision({ limits: testLimits, replicas: 1, aggregates, ackWaitSeconds, sinks }));
    await settled(log.close());
  }
  await provision();

  const startMs = clock.monotonic();
  const turns = turnsOf();
  const connection = open((subject) => {
    asked.push({ subject, atMs: clock.monotonic() - startMs, turn: turns() });
    return faults.fate(subject);
  }, inboxPrefixOf('test'));
  const link = await Link.open(
    { servers: ['simulated'], name: 'test', requestTimeoutMs },
    { onWarning: (warning) => warnings.push(warning) },
    wire(async () => connection.nats),
  );
  return {
    server,
    connection,
    link,
    clock,
    warnings,
    asked,
    faults,
    get nowMs() {
      return clock.monotonic() - startMs;
    },
    provision,
    settled,
    pass: (ms) => pass(clock, ms),
    close: () => settled(link.close()),
  };
}
