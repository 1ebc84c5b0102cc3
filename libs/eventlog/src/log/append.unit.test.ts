import { headers, InvalidArgumentError, type MsgHdrs } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { pausedEvent } from '../../testing/messages.ts';
import { type Bench, simulatedBench } from '../../testing/simulated/bench.ts';
import type { Fate } from '../../testing/simulated/index.ts';
import { apiCodes, fullCodes, transientCodes } from '../wire/codes.ts';
import {
  AppendConflict,
  AppendRefused,
  AppendUnknown,
  AppendWithdrawn,
  Closed,
  InvalidMessage,
  LogFull,
  LogGap,
  NatsRefused,
  StreamUnavailable,
} from '../wire/errors.ts';
import type { AppendOptions } from '../wire/types.ts';
import {
  type AppendAttempt,
  append,
  encodeMessage,
  endOf,
  idOf,
  lastMessageOf,
  MSG_ID,
  publish,
  readPubAck,
  unsureAfter,
} from './append.ts';
import { View } from './view.ts';

const error = (err_code: number | undefined, description?: string, code = 400) =>
  readPubAck(JSON.stringify({ stream: 'S', seq: 0, error: { code, err_code, description } }));

describe("the server's answer to a publish", () => {
  it('names what was stored, and whether it was stored before', () => {
    expect(readPubAck('{"stream":"S","seq":7}')).toEqual({ kind: 'stored', sequence: 7, duplicate: false });
    expect(readPubAck('{"stream":"S","seq":7,"duplicate":true}')).toMatchObject({ sequence: 7, duplicate: true });
  });

  it.each(['', 'hello', '{"stream":"S"}', '{"seq":7}', '{"stream":1,"seq":7}', '{"stream":"S","seq":"7"}', '{}'])(
    'that names no stream and sequence leaves open whether it was stored: %s',
    (text) => {
      expect(readPubAck(text)).toMatchObject({ kind: 'retry', unsure: true, text: expect.stringMatching(/\w/) });
    },
  );

  it('of another sequence is a conflict, with the number that it names', () => {
    expect(error(apiCodes.wrongLastSequence, 'wrong last sequence: 42')).toEqual({ kind: 'conflict', actual: 42 });
    expect(error(apiCodes.wrongLastSequence, 'wrong last sequence')).toEqual({ kind: 'conflict', actual: null });
    expect(error(apiCodes.wrongLastSequence)).toEqual({ kind: 'conflict', actual: null });
  });

  it('of an append in flight is a conflict without a number', () => {
    expect(error(apiCodes.wrongLastSequenceInFlight, 'wrong last sequence: 42')).toEqual({
      kind: 'conflict',
      actual: null,
    });
  });

  it.each(fullCodes)('%i: there is no room', (code) => {
    expect(error(code, 'maximum bytes exceeded')).toEqual({
      kind: 'full',
      text: `maximum bytes exceeded (${code})`,
      ofServer: code !== apiCodes.storeFailed,
    });
  });

  it.each(transientCodes)('%i: not stored, and to be asked again', (code) => {
    expect(error(code, 'not yet')).toEqual({ kind: 'retry', unsure: false, text: `not yet (${code})` });
  });

  it('503 without a code of JetStream: not stored, and to be asked again', () => {
    expect(error(undefined, 'JetStream is not available', 503)).toEqual({
      kind: 'retry',
      unsure: false,
      text: 'JetStream is not available (0)',
    });
  });

  it('with any other error is a refusal in its words', () => {
    expect(error(apiCodes.streamNotFound, 'stream not found')).toEqual({
      kind: 'refused',
      text: `stream not found (${apiCodes.streamNotFound})`,
    });
    expect(error(undefined)).toEqual({ kind: 'refused', text: 'no description (0)' });
  });
});

test.each([
  [false, 'this', 'stored'],
  [true, 'this', 'stored'],
  [false, 'another', 'notStored'],
  [true, 'another', 'notStored'],
  [false, 'nothing', 'notStored'],
  [true, 'nothing', 'unknown'],
] as const)('an append that may have been stored: %s, and the log has %s: %s', (unsure, found, end) => {
  expect(endOf({ unsure, found })).toBe(end);
});

test('what one attempt left open stays open', () => {
  const stored: AppendAttempt = { kind: 'stored', sequence: 1, duplicate: false };
  const retry = (unsure: boolean): AppendAttempt => ({ kind: 'retry', unsure, text: '' });
  expect([unsureAfter(false, stored), unsureAfter(false, retry(false)), unsureAfter(false, retry(true))]).toEqual([
    false,
    false,
    true,
  ]);
  expect([unsureAfter(true, stored), unsureAfter(true, retry(false))]).toEqual([true, true]);
});

const LOG = 'KRONOS_LOG';
const SUBJECT = 'kronos.controls.gpu';
const LONG_MS = 30_000;

/** The times of the link's requests on a subject. */
const times = (bench: Bench, subject = SUBJECT): number[] =>
  bench.asked.filter((one) => one.subject === subject).map(({ atMs }) => atMs);

const inFlight = { error: { code: 400, err_code: apiCodes.wrongLastSequenceInFlight, description: 'in flight' } };
const refusal = { error: { code: 400, err_code: apiCodes.streamNotFound, description: 'not this one' } };
const notYet = { error: { code: 503, err_code: apiCodes.clusterNotAvailable, description: 'not yet' } };

describe.each([true, false])('an append to a server that looks at ids first: %s', (idsFirst) => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await simulatedBench({ idsFirst });
  });
  afterEach(() => bench.close());

  const stored = () => bench.server.stream(LOG)?.last;
  const fill = () => Object.assign(bench.server.stream(LOG) ?? {}, { full: true });
  /** The first attempt has this fate, or these have; every later one is answered. */
  const first = (...fates: Fate[]) => {
    bench.faults.fate = (subject) => (subject === SUBJECT ? fates.shift() : undefined) ?? 'answered';
  };
  const appended = (n: number, options: AppendOptions = {}) =>
    bench.settled(append(bench.link, LOG, pausedEvent(`e${n}`), options));
  const failed = (n: number, options: AppendOptions = {}) =>
    appended(n, options).then(
      () => null,
      (error: unknown) => error,
    );

  it('is stored once, under its id', async () => {
    expect(await appended(1)).toEqual({ sequence: 1, duplicate: false });
    expect(await appended(1)).toEqual({ sequence: 1, duplicate: true });
    expect(await bench.settled(lastMessageOf(bench.link, LOG, SUBJECT))).toEqual({
      sequence: 1,
      id: pausedEvent('e1').id,
    });
    expect(await bench.settled(lastMessageOf(bench.link, LOG, 'kronos.plans.gpu'))).toBeNull();
  });

  it('is stored where it expects to be, and nowhere else', async () => {
    expect(await appended(1, { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: false });
    expect(await appended(2, { expectedLastSequence: 1 })).toEqual({ sequence: 2, duplicate: false });
    const error = await failed(3, { expectedLastSequence: 1 });
    expect(error).toBeInstanceOf(AppendConflict);
    expect(error).toMatchObject({ subject: SUBJECT, expected: 1, actual: 2 });
    expect(stored()).toBe(2);
  });

  it('whose first attempt was lost is stored by the second', async () => {
    first('lost');
    expect(await appended(1, { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: false });
    expect(times(bench)).toEqual([0, 325]);
  });

  it('whose answer was lost is found', async () => {
    first('unanswered');
    expect(await appended(1, { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: true });
    first('unanswered', 'unanswered');
    expect(await appended(2)).toEqual({ sequence: 2, duplicate: true });
    expect(stored()).toBe(2);
  });

  it('whose place another one took is a conflict, although an attempt was lost', async () => {
    await appended(1);
    first('lost');
    expect(await failed(2, { expectedLastSequence: 0 })).toBeInstanceOf(AppendConflict);
  });

  it('that nobody answers is tried for 30 s, less and less often, and may be stored', async () => {
    bench.faults.fate = (subject) => (subject === SUBJECT ? 'lost' : 'answered');
    const error = await failed(1);
    expect(error).toBeInstanceOf(AppendUnknown);
    expect(error).toMatchObject({ message: expect.stringContaining('no answer in time; an earlier attempt may be') });
    // Each takes the 300 ms of a request; the wait after it doubles from 25 ms to a second.
    expect(times(bench).slice(0, 9)).toEqual([0, 325, 675, 1075, 1575, 2275, 3375, 4675, 5975]);
    expect(bench.nowMs).toBe(LONG_MS);
  });

  it('that nobody answers is tried until the given timeout', async () => {
    bench.faults.fate = (subject) => (subject === SUBJECT ? 'lost' : 'answered');
    expect(await failed(1, { timeoutMs: 700 })).toBeInstanceOf(AppendUnknown);
    // The last attempt has at least 100 ms, however little is left.
    expect(times(bench)).toEqual([0, 325, 675]);
    expect(bench.nowMs).toBe(775);
    bench.asked.length = 0;
    const from = bench.nowMs;
    await failed(2, { timeoutMs: 0 });
    expect(times(bench)).toEqual([from]);
    expect(bench.nowMs - from).toBe(100);
  });

  it('that no stream takes is surely not stored', async () => {
    bench.server.delete(LOG);
    const error = await failed(1, { timeoutMs: 1000 });
    expect(error).toBeInstanceOf(StreamUnavailable);
    expect(error).toMatchObject({ message: expect.stringContaining('no stream takes this subject') });
    expect(times(bench)).toEqual([0, 25, 75, 175, 375, 775]);
    expect(bench.nowMs).toBe(1000);
  });

  it('that is refused for now is asked again, and is surely not stored', async () => {
    const answers = [notYet, notYet];
    bench.faults.refuse = () => answers.shift() ?? null;
    expect(await appended(1)).toEqual({ sequence: 1, duplicate: false });
    expect(times(bench)).toEqual([0, 25, 75]);
    bench.faults.refuse = () => notYet;
    expect(await failed(2)).toBeInstanceOf(StreamUnavailable);
  });

  it('that is refused is not stored, and not tried again', async () => {
    bench.faults.refuse = () => refusal;
    const error = await failed(1);
    expect(error).toBeInstanceOf(AppendRefused);
    expect(error).toMatchObject({ message: expect.stringContaining('not this one') });
    expect(times(bench)).toHaveLength(1);
  });

  it('to a full stream is not stored, and not tried again', async () => {
    fill();
    expect(await failed(1)).toBeInstanceOf(LogFull);
    expect(times(bench)).toHaveLength(1);
  });

  it.each([
    ['was stored by the attempt before', 'unanswered', 0, null],
    [
      'may be stored by the attempt before: without an expectation it cannot be looked for',
      'unanswered',
      null,
      AppendUnknown,
    ],
    ['may yet be stored by the attempt before', 'lost', 0, AppendUnknown],
  ] as const)('that is refused and %s', async (_, fate, expected, end) => {
    first(fate);
    let asked = 0;
    bench.faults.refuse = () => (++asked > (fate === 'lost' ? 0 : 1) ? refusal : null);
    const options = expected === null ? {} : { expectedLastSequence: expected };
    if (end === null) expect(await appended(1, options)).toEqual({ sequence: 1, duplicate: true });
    else expect(await failed(1, options)).toBeInstanceOf(end);
  });

  it('that is refused although another one took the place is not stored', async () => {
    await appended(1);
    first('lost');
    bench.faults.refuse = () => refusal;
    expect(await failed(2, { expectedLastSequence: 0 })).toBeInstanceOf(AppendRefused);
  });

  it('finds nothing where the log cannot be read', async () => {
    bench.faults.fate = (subject) => (subject === SUBJECT && times(bench).length > 1 ? 'answered' : 'lost');
    bench.faults.refuse = () => refusal;
    expect(await failed(1, { expectedLastSequence: 0 })).toBeInstanceOf(AppendUnknown);
  });

  it('behind another one in flight is a conflict without a number', async () => {
    bench.faults.refuse = () => inFlight;
    const error = await failed(1, { expectedLastSequence: 0 });
    expect(error).toBeInstanceOf(AppendConflict);
    expect(error).toMatchObject({ expected: 0, actual: null });
    expect(times(bench)).toHaveLength(1);
    expect(await failed(1)).toMatchObject({ expected: 0, actual: null });
  });

  it('behind its own earlier attempt in flight is asked again', async () => {
    const answers = [inFlight, null];
    first('lost');
    bench.faults.refuse = () => answers.shift() ?? null;
    expect(await appended(1, { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: false });
    expect(times(bench)).toEqual([0, 325, 375]);
    bench.faults.refuse = () => inFlight;
    first('lost');
    expect(await failed(2, { expectedLastSequence: 1, timeoutMs: 1000 })).toBeInstanceOf(AppendUnknown);
  });

  it('is withdrawn before its bytes leave', async () => {
    const error = await failed(1, { veto: () => 'too late' });
    expect(error).toBeInstanceOf(AppendWithdrawn);
    expect(error).toMatchObject({ message: expect.stringContaining('was withdrawn: too late') });
    expect([times(bench), stored()]).toEqual([[], 0]);
    expect(await appended(2, { veto: () => null })).toEqual({ sequence: 1, duplicate: false });
  });

  it('that is withdrawn after an attempt without an answer is looked for', async () => {
    const vetoes = () => {
      const answers = [null, 'too late'];
      return () => answers.shift() ?? null;
    };
    first('unanswered');
    expect(await appended(1, { expectedLastSequence: 0, veto: vetoes() })).toEqual({ sequence: 1, duplicate: true });
    first('lost');
    expect(await failed(2, { expectedLastSequence: 1, veto: vetoes() })).toBeInstanceOf(AppendUnknown);
    first('lost');
    expect(await failed(2, { expectedLastSequence: 0, veto: vetoes() })).toBeInstanceOf(AppendWithdrawn);
  });

  it('that cannot be sent is refused, by the client or by the connection', async () => {
    const throwing = (error: Error) => ({
      veto: () => {
        throw error;
      },
    });
    expect(await failed(1, throwing(new RangeError('too long')))).toBeInstanceOf(AppendRefused);
    expect(await failed(1, throwing(InvalidArgumentError.format('subject', 'bad')))).toBeInstanceOf(AppendRefused);
    expect(await failed(1, throwing(new NatsRefused('no permission')))).toBeInstanceOf(NatsRefused);
    expect(await failed(1, throwing(new TypeError('a bug')))).toBeInstanceOf(TypeError);
  });

  it('over a connection that breaks is repeated when it is back', async () => {
    bench.faults.fate = (subject) => {
      if (subject === SUBJECT && times(bench).length === 1) queueMicrotask(() => bench.connection.break());
      return subject === SUBJECT && times(bench).length === 1 ? 'lost' : 'answered';
    };
    bench.clock.after(1000, () => bench.connection.restore());
    expect(await appended(1)).toEqual({ sequence: 1, duplicate: false });
    expect(times(bench)).toEqual([0, 1000]);
  });

  it('over a connection that breaks and does not come back may be stored', async () => {
    bench.faults.fate = () => {
      queueMicrotask(() => bench.connection.break());
      return 'lost';
    };
    expect(await failed(1, { timeoutMs: 1000 })).toBeInstanceOf(AppendUnknown);
  });

  it('without a connection is surely not stored', async () => {
    bench.connection.break();
    await bench.pass(1);
    const error = await failed(1, { timeoutMs: 1000 });
    expect(error).toBeInstanceOf(StreamUnavailable);
    expect(error).toMatchObject({ message: expect.stringContaining('there is no connection to NATS') });
    expect(times(bench)).toEqual([]);
  });

  it('over a closed connection fails at once', async () => {
    await bench.close();
    expect(await failed(1)).toBeInstanceOf(Closed);
  });

  describe('whose expectation is of a log that a view reads', () => {
    const INFO = `$JS.API.STREAM.INFO.${LOG}`;
    const viewed = () =>
      bench.settled(View.open(bench.link, { initial: 0, evolve: (count) => count + 1, snapshot: (count) => count }));
    let view: Awaited<ReturnType<typeof viewed>>;
    beforeEach(async () => {
      view = await viewed();
      await bench.pass(0);
      bench.asked.length = 0;
    });
    afterEach(() => bench.settled(view.close()));

    /** The log is lost and provisioned again, and another event stands where this one is expected. */
    const replaced = async (): Promise<void> => {
      bench.server.delete(LOG);
      await bench.provision();
      await appended(9);
      bench.asked.length = 0;
    };

    it('is not stored in a log that replaced it while the process slept', async () => {
      await appended(1, { expectedLastSequence: 0 });
      await bench.pass(20_000);
      await replaced();
      const error = await failed(2, { expectedLastSequence: 1 });
      expect(error).toBeInstanceOf(LogGap);
      expect(error).toMatchObject({ message: expect.stringContaining('the log was created again at') });
      expect([times(bench), stored()]).toEqual([[], 1]);
    });

    it('has the log confirmed once in a while', async () => {
      await bench.pass(20_000);
      const before = times(bench, INFO).length;
      expect(await appended(1, { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: false });
      expect(await appended(2, { expectedLastSequence: 1 })).toEqual({ sequence: 2, duplicate: false });
      expect(times(bench, INFO).length - before).toBe(1);
      await bench.pass(20_000);
      await appended(3);
      expect(times(bench, INFO).length - before).toBe(1);
    });

    it('waits for the confirmation, and is surely not stored without it', async () => {
      await bench.pass(20_000);
      bench.faults.fate = (subject) => (subject === INFO ? 'lost' : 'answered');
      expect(await failed(1, { expectedLastSequence: 0, timeoutMs: 1000 })).toBeInstanceOf(StreamUnavailable);
      expect([times(bench), stored()]).toEqual([[], 0]);
      bench.faults.fate = () => 'answered';
      expect(await appended(1, { expectedLastSequence: 0 })).toEqual({ sequence: 1, duplicate: false });
    });

    it('is confirmed again when the connection was away before its bytes left', async () => {
      bench.connection.break();
      await bench.pass(1);
      bench.clock.after(25_000, () => bench.connection.restore());
      const appending = failed(1, { expectedLastSequence: 0, timeoutMs: 60_000 });
      await bench.pass(20_000);
      await replaced();
      expect(await bench.settled(appending)).toBeInstanceOf(LogGap);
      expect([times(bench), stored()]).toEqual([[], 1]);
    });
  });
});

test('no reader reads it: it is not appended', () => {
  expect(() => encodeMessage({ ...pausedEvent('e1'), time: 'now' })).toThrow(InvalidMessage);
  expect(() => encodeMessage(pausedEvent('e1', 'gpu', 'x'.repeat(2 * 1024 ** 2)))).toThrow(/e1 cannot be appended/);
  const { subject, headers, body } = encodeMessage(pausedEvent('e1'));
  expect([subject, headers.get(MSG_ID)]).toEqual([SUBJECT, pausedEvent('e1').id]);
  expect(JSON.parse(new TextDecoder().decode(body))).toEqual(pausedEvent('e1'));
});

test('a message without headers has no id', () => {
  expect(idOf({ header: undefined as unknown as MsgHdrs })).toBe('');
  const header = headers();
  expect(idOf({ header })).toBe('');
  header.set(MSG_ID, 'e1');
  expect(idOf({ header })).toBe('e1');
});

describe('a message without id or expectation', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await simulatedBench();
  });
  afterEach(() => bench.close());

  const published = () => bench.settled(publish(bench.link, SUBJECT, new TextEncoder().encode('{}')));
  const failed = () =>
    published().then(
      () => null,
      (error: unknown) => error,
    );

  it('is published as often as it takes to be answered', async () => {
    let asked = 0;
    bench.faults.fate = () => (++asked > 2 ? 'answered' : 'unanswered');
    await published();
    expect(times(bench)).toEqual([0, 325, 675]);
    expect(bench.server.stream(LOG)?.last).toBe(3);
  });

  it('is given up after 30 s', async () => {
    bench.faults.fate = () => 'lost';
    expect(await failed()).toBeInstanceOf(StreamUnavailable);
    expect(times(bench).slice(0, 9)).toEqual([0, 325, 675, 1075, 1575, 2275, 3375, 4675, 5975]);
    // The last attempt begins after the wait that the 30 s end in.
    expect([times(bench).at(-1), bench.nowMs]).toEqual([LONG_MS + 675, LONG_MS + 975]);
  });

  it('fails when there is no room, or when it is refused', async () => {
    bench.faults.refuse = () => refusal;
    const refused = await failed();
    expect(refused).toBeInstanceOf(AppendRefused);
    expect(refused).toMatchObject({ message: expect.stringContaining('not this one') });
    bench.faults.refuse = () => inFlight;
    expect(await failed()).toMatchObject({ message: expect.stringContaining('another append was first') });
    bench.faults.refuse = () => null;
    Object.assign(bench.server.stream(LOG) ?? {}, { full: true });
    expect(await failed()).toBeInstanceOf(LogFull);
    expect(times(bench)).toHaveLength(3);
  });
});
