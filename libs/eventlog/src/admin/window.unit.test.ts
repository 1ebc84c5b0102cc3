import type { Message } from '@kronos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pausedEvent } from '../../testing/messages.ts';
import { type Bench, simulatedBench } from '../../testing/simulated/bench.ts';
import type { Fate } from '../../testing/simulated/index.ts';
import { encodeMessage } from '../log/append.ts';
import { apiCodes } from '../wire/codes.ts';
import { AppendRefused, AppendUnknown, Closed, LogFull, NatsRefused, NotProvisioned } from '../wire/errors.ts';
import type { Link } from '../wire/link.ts';
import { Window } from './window.ts';

const LOG = 'KRONOS_LOG';
const SUBJECT = 'kronos.controls.gpu';
/** Messages that are on their way at once. */
const WINDOW = 1024;

const events = (count: number, from = 1) => Array.from({ length: count }, (_, i) => pausedEvent(`e${from + i}`));
const notYet = { error: { code: 503, err_code: apiCodes.clusterNotAvailable, description: 'not yet' } };
const refusal = { error: { code: 400, err_code: apiCodes.streamNotFound, description: 'not this one' } };

async function appendMany(link: Link, messages: Iterable<Message> | AsyncIterable<Message>) {
  const window = new Window(link, LOG);
  for await (const message of messages) await window.push({ id: message.id, ...encodeMessage(message) });
  await window.flush();
  return { appended: window.appended, duplicates: window.duplicates };
}

describe.each([true, false])('messages in a row to a server that looks at ids first: %s', (idsFirst) => {
  let bench: Bench;
  /** Of the messages that were sent, in their order; later ones are answered. */
  let fates: Fate[];
  let answers: (object | null)[];
  beforeEach(async () => {
    bench = await simulatedBench({ idsFirst });
    fates = [];
    answers = [];
    bench.faults.fate = (subject) => (subject === SUBJECT ? fates.shift() : undefined) ?? 'answered';
    bench.faults.refuse = () => answers.shift() ?? null;
  });
  afterEach(() => bench.close());

  const appended = (messages: Iterable<Message> | AsyncIterable<Message>) =>
    bench.settled(appendMany(bench.link, messages));
  const failed = (messages: Iterable<Message>) =>
    appended(messages).then(
      () => null,
      (error: unknown) => error,
    );
  const ids = () => {
    const stream = bench.server.stream(LOG);
    return Array.from({ length: stream?.last ?? 0 }, (_, i) => stream?.get(i + 1)?.headers?.get('Nats-Msg-Id'));
  };
  const idsOf = (messages: readonly Message[]) => messages.map(({ id }) => id);
  /** How many messages were sent together. */
  const windows = () => {
    const turns = bench.asked.filter(({ subject }) => subject === SUBJECT).map(({ turn }) => turn);
    return [...Map.groupBy(turns, (turn) => turn).values()].map(({ length }) => length);
  };
  /** When messages were sent, and how many at that moment. */
  const sends = () => {
    const counts = new Map<number, number>();
    for (const { subject, atMs } of bench.asked) if (subject === SUBJECT) counts.set(atMs, (counts.get(atMs) ?? 0) + 1);
    return [...counts];
  };

  it('none', async () => {
    expect(await appended([])).toEqual({ appended: 0, duplicates: 0 });
    expect(bench.asked).toEqual([]);
  });

  it('are stored in their order, a window at once', async () => {
    const all = events(2 * WINDOW + 10);
    expect(await appended(all)).toEqual({ appended: all.length, duplicates: 0 });
    expect(ids()).toEqual(idsOf(all));
    expect(bench.nowMs).toBe(0);
    // The stream is asked once for its end; then each window follows from the one before.
    expect(bench.asked.filter(({ subject }) => subject.includes('STREAM.INFO'))).toHaveLength(1);
    expect(bench.asked.slice(1).map(({ subject }) => subject)).toEqual(all.map(() => SUBJECT));
  });

  it('are sent when a window of them is there, and not before', async () => {
    const atOnce: number[] = [];
    function* watched() {
      for (const message of events(WINDOW + 1)) {
        atOnce.push(sends()[0]?.[1] ?? 0);
        yield message;
      }
    }
    await appended(watched());
    expect(new Set(atOnce.slice(0, WINDOW))).toEqual(new Set([0]));
    expect(atOnce.at(-1)).toBe(WINDOW);
  });

  it('follow what is on the log', async () => {
    await appended(events(3));
    expect(await appended(events(2, 10))).toEqual({ appended: 2, duplicates: 0 });
    expect(ids()).toEqual(idsOf([...events(3), ...events(2, 10)]));
  });

  it('that are there already are duplicates', async () => {
    await appended(events(1));
    expect(await appended(events(1))).toEqual({ appended: 0, duplicates: 1 });
    if (idsFirst) expect(await appended(events(2))).toEqual({ appended: 1, duplicates: 1 });
    expect(ids()).toEqual(idsOf(events(idsFirst ? 2 : 1)));
  });

  it('behind one that was lost are not stored before it', async () => {
    fates = ['answered', 'lost'];
    const all = events(30);
    expect(await appended(all)).toEqual({ appended: 30, duplicates: 0 });
    expect(ids()).toEqual(idsOf(all));
    // After the trouble the window is small, and grows again. The lost answer takes the 300 ms of a request.
    expect(sends()).toEqual([
      [0, 30],
      [300, 29],
    ]);
  });

  it('behind trouble are sent few at once at first', async () => {
    answers = [notYet];
    const all = events(100);
    expect(await appended(all)).toEqual({ appended: 100, duplicates: 0 });
    expect(windows()).toEqual([100, 8, 16, 32, 44]);
    expect(ids()).toEqual(idsOf(all));
  });

  it('that were stored without an answer count as appended', async () => {
    fates = ['unanswered', 'answered', 'unanswered'];
    expect(await appended(events(3))).toEqual({ appended: 3, duplicates: 0 });
    expect(ids()).toEqual(idsOf(events(3)));
    expect(sends()).toEqual([[0, 3]]);
  });

  it('of which one is stored without an answer and a later one is refused for now count once', async () => {
    fates = ['unanswered'];
    answers = [null, notYet];
    expect(await appended(events(2))).toEqual({ appended: 2, duplicates: 0 });
    expect(ids()).toEqual(idsOf(events(2)));
    expect(sends()).toEqual([
      [0, 2],
      [300, 1],
    ]);
  });

  it('are each stored once beside those of another writer', async () => {
    let others = 0;
    bench.faults.refuse = (subject) => {
      if (++others === 3) {
        const stream = bench.server.stream(LOG);
        stream?.publish({ subject, data: new Uint8Array([123, 125]), headers: undefined }, bench.clock.now(), idsFirst);
      }
      return null;
    };
    expect(await appended(events(5))).toEqual({ appended: 5, duplicates: 0 });
    expect(ids().sort()).toEqual([...idsOf(events(5)), undefined]);
  });

  it('are not stored where there is no room', async () => {
    Object.assign(bench.server.stream(LOG) ?? {}, { full: true });
    const error = await failed(events(3));
    expect(error).toBeInstanceOf(LogFull);
    expect(error).toMatchObject({ message: expect.stringContaining(SUBJECT) });
  });

  it('are not tried again when the server refuses one', async () => {
    answers = [null, refusal];
    const error = await failed(events(3));
    expect(error).toBeInstanceOf(AppendRefused);
    expect(error).toMatchObject({ message: expect.stringContaining(pausedEvent('e2').id) });
    expect(sends()).toEqual([[0, 3]]);
  });

  it('that the user may not publish are refused', async () => {
    bench.connection.deny(SUBJECT);
    const error = await failed(events(3));
    expect(error).toBeInstanceOf(NatsRefused);
    expect(error).toMatchObject({ message: expect.stringContaining(`test may not publish on ${SUBJECT}`) });
    expect(bench.nowMs).toBe(300);
  });

  it('are given up when none was stored for 30 s', async () => {
    await appended(events(1));
    bench.asked.length = 0;
    bench.faults.fate = (subject) => (subject === SUBJECT ? 'lost' : 'answered');
    const error = await failed(events(3, 2));
    expect(error).toBeInstanceOf(AppendUnknown);
    expect(error).toMatchObject({ message: expect.stringContaining('3 messages may be stored or not'), cause: null });
    // A round takes the 300 ms of a request, and 50 ms pass before the next one.
    expect(sends().slice(0, 3)).toEqual([
      [0, 3],
      [350, 3],
      [700, 3],
    ]);
    expect(bench.nowMs).toBe(85 * 350 + 300);
    expect(ids()).toEqual(idsOf(events(1)));
  });

  it('are waited for as long as some are stored', async () => {
    // One a round: 120 of them take longer than the patience for one.
    bench.faults.fate = (subject) =>
      subject === SUBJECT && bench.asked.at(-1)?.turn === bench.asked.at(-2)?.turn ? 'lost' : 'answered';
    const all = events(120);
    expect(await appended(all)).toEqual({ appended: 120, duplicates: 0 });
    expect(ids()).toEqual(idsOf(all));
    expect(bench.nowMs).toBeGreaterThan(30_000);
  });

  it('wait for a stream that cannot be asked, and are stored when it can', async () => {
    let asked = 0;
    bench.faults.fate = (subject) => (subject.includes('STREAM.INFO') && ++asked <= 4 ? 'lost' : 'answered');
    expect(await appended(events(2))).toEqual({ appended: 2, duplicates: 0 });
    expect(bench.nowMs).toBeGreaterThan(350);
  });

  it('are given up when the stream cannot be asked, with the reason', async () => {
    bench.faults.fate = () => 'lost';
    const error = await failed(events(2));
    expect(error).toBeInstanceOf(AppendUnknown);
    expect(error).toMatchObject({ cause: { message: expect.stringContaining('stream KRONOS_LOG') } });
  });

  it('need a stream that is there', async () => {
    bench.server.delete(LOG);
    expect(await failed(events(1))).toBeInstanceOf(NotProvisioned);
  });

  it('over a connection that breaks are sent again when it is back', async () => {
    bench.faults.fate = (subject) => {
      if (subject !== SUBJECT || bench.nowMs > 0) return 'answered';
      queueMicrotask(() => bench.connection.break());
      return 'lost';
    };
    bench.clock.after(1000, () => bench.connection.restore());
    expect(await appended(events(3))).toEqual({ appended: 3, duplicates: 0 });
    expect(sends()).toEqual([
      [0, 3],
      [1050, 3],
    ]);
  });

  it('wait for a connection that is not there, and are stored when it is back', async () => {
    bench.connection.break();
    await bench.pass(1);
    bench.clock.after(1000, () => bench.connection.restore());
    expect(await appended(events(2))).toEqual({ appended: 2, duplicates: 0 });
    expect(ids()).toEqual(idsOf(events(2)));
  });

  it('wait for a connection that is lost between two windows', async () => {
    async function* breaking() {
      yield* events(WINDOW);
      bench.connection.break();
      bench.clock.after(1000, () => bench.connection.restore());
      await new Promise((resolve) => setImmediate(resolve));
      yield* events(2, WINDOW + 1);
    }
    expect(await appended(breaking())).toEqual({ appended: WINDOW + 2, duplicates: 0 });
    expect(ids()).toEqual(idsOf(events(WINDOW + 2)));
  });

  it('without a connection are given up after 30 s, with the reason', async () => {
    await appended(events(1));
    bench.connection.break();
    await bench.pass(1);
    const error = await failed(events(2, 2));
    expect(error).toBeInstanceOf(AppendUnknown);
    expect(error).toMatchObject({ cause: { message: 'stream KRONOS_LOG: there is no connection to NATS' } });
  });

  it('leave no subscription behind, however they end', async () => {
    const before = bench.connection.subscribed;
    await appended(events(2));
    answers = [refusal];
    await failed(events(2, 3));
    expect(bench.connection.subscribed).toEqual(before);
  });

  it('over a closed connection fail at once', async () => {
    await bench.close();
    expect(await failed(events(1))).toBeInstanceOf(Closed);
    expect(bench.nowMs).toBe(0);
  });
});
