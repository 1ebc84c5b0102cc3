import { afterEach, describe, expect, it } from 'vitest';
import { pausedEvent, taskMessage } from '../../testing/messages.ts';
import { type Bench, type BenchOptions, simulatedBench } from '../../testing/simulated/bench.ts';
import { append } from '../log/append.ts';
import { TASK_STREAM, taskConsumerName } from '../wire/definitions.ts';
import type { TaskDelivery, TaskOutcome, TaskWorker, TaskWorkerOptions } from '../wire/types.ts';
import { sinkWorker, taskWorker } from './tasks.ts';

const NEXT = `$JS.API.CONSUMER.MSG.NEXT.${TASK_STREAM}.`;
const ACK_WAIT_MS = 3_000;

/** A delivery that a test ends when it wants to. */
type Taken = TaskDelivery & { readonly atMs: number; readonly end: (outcome: TaskOutcome) => void };

let bench: Bench;
let worker: TaskWorker | undefined;
let taken: Taken[];

afterEach(async () => {
  if (worker !== undefined) await bench.settled(worker.stop(0));
  worker = undefined;
  await bench.close();
});

const start = async (options: BenchOptions = {}) => {
  bench = await simulatedBench(options);
  taken = [];
};

const work = (options: Partial<TaskWorkerOptions> = {}, onStop?: (worker: TaskWorker) => void): TaskWorker => {
  worker = taskWorker(
    bench.link,
    {
      aggregates: ['gpu'],
      concurrency: 4,
      ackWaitMs: ACK_WAIT_MS,
      handle: (delivery) =>
        new Promise((resolve) => taken.push({ ...delivery, atMs: bench.nowMs, end: (outcome) => resolve(outcome) })),
      ...options,
    },
    onStop,
  );
  return worker;
};

const stopped = (limitMs?: number) => bench.settled(worker?.stop(limitMs) ?? Promise.resolve());
/** A worker that took one task so long ago. */
const holding = async (ms = 1) => {
  await start();
  await put(1);
  work();
  await bench.pass(ms);
};
/** Nothing reaches the server for longer than it waits for an ack. */
const loses = async () => {
  bench.faults.fate = () => 'lost';
  await bench.pass(2 * ACK_WAIT_MS);
};
const put = (n: number, aggregate = 'gpu') =>
  bench.settled(append(bench.link, TASK_STREAM, taskMessage(n, aggregate), {}));
const queued = () => bench.server.stream(TASK_STREAM)?.size;
const health = () => worker?.healthy();
/** `gpu-1/2 at 300`: the second delivery of a task, and when it was taken. */
const seen = () =>
  taken.map(
    ({ task, deliveries, atMs }) =>
      `${'unreadable' in task ? 'unreadable' : task.data.planId}/${deliveries} at ${atMs}`,
  );
/** The times of requests for a task to the durable of an aggregate. */
const pulls = (aggregate = 'gpu') =>
  bench.asked.filter(({ subject }) => subject === `${NEXT}${taskConsumerName(aggregate)}`).map(({ atMs }) => atMs);
const end = async (index: number, outcome: TaskOutcome) => {
  taken[index]?.end(outcome);
  await bench.pass(1);
};

describe('a worker', () => {
  it('needs room for a delivery, and an ack wait that a heartbeat fits in', async () => {
    await start();
    expect(() => work({ concurrency: 0 })).toThrow(RangeError);
    expect(() => work({ concurrency: Number.NaN })).toThrow(RangeError);
    expect(() => work({ ackWaitMs: 99 })).toThrow(RangeError);
    expect(() => work({ concurrency: 1, ackWaitMs: 100 })).not.toThrow();
  });

  it('hands a task to its handler, with where it is from', async () => {
    await holding();
    const [delivery] = taken;
    expect(delivery).toMatchObject({
      task: taskMessage(1),
      aggregate: 'gpu',
      subject: 'kronos.migrations.gpu',
      sequence: 1,
      deliveries: 1,
      traceparent: null,
    });
    expect([delivery?.held(), delivery?.lost.aborted, delivery?.stopping.aborted]).toEqual([true, false, false]);
    expect([worker?.held, health()]).toEqual([1, { ok: true, detail: '1 deliveries held' }]);
  });

  it('removes what is done, and what is dead', async () => {
    await start();
    await put(1);
    await put(2);
    work();
    await bench.pass(1);
    await end(0, { kind: 'done' });
    expect([queued(), worker?.held]).toEqual([1, 1]);
    await end(1, { kind: 'dead' });
    expect([queued(), worker?.held]).toEqual([0, 0]);
    await bench.pass(10_000);
    expect(seen()).toEqual(['gpu-1/1 at 0', 'gpu-2/1 at 0']);
    expect(bench.warnings).toEqual([]);
  });

  it('gives back what is to come later, or to go to another worker', async () => {
    await holding();
    await end(0, { kind: 'later', delayMs: 500 });
    await bench.pass(600);
    expect(seen()).toEqual(['gpu-1/1 at 0', 'gpu-1/2 at 501']);
    await end(1, { kind: 'handOver' });
    await bench.pass(10);
    expect(seen().slice(2)).toEqual(['gpu-1/3 at 602']);
  });

  it('gives back for 5 s what its handler failed at, and says so', async () => {
    await start();
    await put(1);
    const failures: number[] = [];
    work({
      async handle() {
        failures.push(bench.nowMs);
        throw new Error('it is broken');
      },
    });
    await bench.pass(6_000);
    expect(failures).toEqual([0, 5_000]);
    expect(bench.warnings[0]).toEqual({
      code: 'task_handler',
      text: 'the handler of kronos.migrations.gpu 1 failed: it is broken',
    });
  });

  it('keeps a delivery for as long as its handler takes', async () => {
    await start();
    await put(1);
    work();
    await bench.pass(10 * ACK_WAIT_MS);
    expect([seen(), taken[0]?.held()]).toEqual([['gpu-1/1 at 0'], true]);
    await end(0, { kind: 'done' });
    expect(queued()).toBe(0);
  });

  it('gives up a delivery when the server confirms nothing for the ack wait, and says what that costs', async () => {
    await holding();
    await loses();
    expect([taken[0]?.lost.aborted, taken[0]?.held()]).toEqual([true, false]);
    bench.faults.fate = () => 'answered';
    bench.warnings.length = 0;
    await end(0, { kind: 'done' });
    expect(bench.warnings).toEqual([
      { code: 'task_lost', text: 'kronos.migrations.gpu 1 was done, but the delivery was lost: it comes again' },
    ]);
    expect(queued()).toBe(1);
  });

  it('says nothing about a lost delivery that was to come again anyway', async () => {
    await holding();
    await loses();
    bench.warnings.length = 0;
    await end(0, { kind: 'later', delayMs: 0 });
    expect(bench.warnings).toEqual([]);
  });

  it('delivers a body that is no task as such, with its beginning', async () => {
    await start();
    const subject = 'kronos.migrations.gpu';
    const stream = bench.server.stream(TASK_STREAM);
    const bytes = (text: string) => new TextEncoder().encode(text);
    const put = (text: string) =>
      stream?.publish({ subject, data: bytes(text), headers: undefined }, bench.clock.now(), true);
    put('x'.repeat(5_000));
    put(JSON.stringify(pausedEvent('e1')));
    work();
    await bench.pass(1);
    expect(taken.map(({ task }) => task)).toEqual([
      { unreadable: expect.stringMatching(/\w/), body: 'x'.repeat(4_000) },
      { unreadable: expect.stringMatching(/\w/), body: JSON.stringify(pausedEvent('e1')) },
    ]);
  });
});

describe('the slots of a worker', () => {
  it('are never more than its concurrency', async () => {
    await start();
    for (const n of [1, 2, 3, 4]) await put(n);
    work({ concurrency: 2 });
    await bench.pass(5_000);
    expect([seen(), worker?.held]).toEqual([['gpu-1/1 at 0', 'gpu-2/1 at 0'], 2]);
    // There is no request while there is no room.
    expect(pulls()).toEqual([0, 0]);
    await end(0, { kind: 'done' });
    expect([seen().slice(2), worker?.held]).toEqual([['gpu-3/1 at 5000'], 2]);
  });

  it('one of an aggregate that is named twice waits for a task as long as the server holds the request', async () => {
    await start();
    work({ aggregates: ['gpu', 'gpu'] });
    await bench.pass(3_500);
    expect(pulls()).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it('waits no longer than a third of the ack wait', async () => {
    await start();
    work({ ackWaitMs: 1_000 });
    await bench.pass(1_000);
    expect(pulls()).toEqual([0, 333, 666, 999]);
  });

  it('fewer than there are aggregates look at each of them every 500 ms', async () => {
    const aggregates = ['a', 'b', 'c'];
    await start({ aggregates });
    work({ aggregates, concurrency: 2 });
    await bench.pass(1_200);
    for (const each of aggregates) expect(pulls(each)).toEqual([0, 500, 1_000]);
    await put(1, 'c');
    await bench.pass(500);
    expect(seen()).toEqual(['c-1/1 at 1500']);
  });

  it('as many as there are aggregates wait at each of them', async () => {
    const aggregates = ['a', 'b'];
    await start({ aggregates });
    work({ aggregates, concurrency: 2 });
    await bench.pass(100);
    await put(1, 'b');
    await bench.pass(1);
    expect(seen()).toEqual(['b-1/1 at 100']);
    // One slot is left for two: they are looked at in turn.
    bench.asked.length = 0;
    await bench.pass(2_000);
    expect(pulls('a')).toEqual([1_000, 1_500, 2_000]);
    expect(pulls('b')).toEqual([1_000, 1_500, 2_000]);
  });

  it('serve every aggregate in turn, however much one has to do', async () => {
    const aggregates = ['a', 'b'];
    await start({ aggregates });
    for (let n = 1; n <= 4; n++) await put(n, 'a');
    await put(1, 'b');
    work({ aggregates, concurrency: 1 });
    await bench.pass(1);
    for (let i = 0; i < 3; i++) await end(i, { kind: 'done' });
    expect(taken.map(({ aggregate }) => aggregate)).toEqual(['a', 'b', 'a', 'a']);
  });
});

describe('trouble with a durable', () => {
  it('that is gone is named once, and over when it is there again', async () => {
    await start({ ackWaitSeconds: 3 });
    bench.server.delete(TASK_STREAM);
    work();
    await bench.pass(4_500);
    expect(health()).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^tasks of gpu: .*Run `kronos provision`.\n {2}durable .* not found$/),
    });
    expect(bench.warnings).toEqual([{ code: 'task_consumer', text: health()?.detail }]);
    // Each pause takes two seconds.
    expect(pulls()).toEqual([0, 2_000, 4_000]);
    await bench.provision();
    await put(1);
    await bench.pass(2_000);
    expect([seen(), health()?.ok]).toEqual([['gpu-1/1 at 6000'], true]);
    await end(0, { kind: 'done' });
    expect(bench.warnings).toHaveLength(1);
  });

  it('shows as soon as the server reports that the durable was deleted', async () => {
    await start();
    work();
    await bench.pass(100);
    bench.server.delete(TASK_STREAM);
    await bench.pass(1);
    expect(health()).toEqual({ ok: false, detail: 'tasks of gpu: Consumer Deleted (409)' });
    expect(bench.warnings).toEqual([{ code: 'task_consumer', text: health()?.detail }]);
    await bench.pass(2_000);
    // The next answer has other words.
    expect(bench.warnings).toHaveLength(2);
    expect(pulls()).toEqual([0, 2_100]);
  });

  it('is named for each of them', async () => {
    const aggregates = ['a', 'b'];
    await start({ aggregates });
    work({ aggregates });
    bench.server.delete(TASK_STREAM);
    await bench.pass(100);
    expect(health()?.detail).toMatch(/^tasks of a: [^;]*; tasks of b: /);
  });

  it('that answers nothing is looked into, and asked again at once when it is there', async () => {
    await start();
    bench.faults.fate = (subject) => (subject.startsWith(NEXT) ? 'lost' : 'answered');
    work();
    await bench.pass(7_000);
    // The server holds a request for 1 s, and its answer is waited for for 2 s more.
    expect(pulls()).toEqual([0, 3_000, 6_000]);
    expect([health()?.ok, bench.warnings]).toEqual([true, []]);
  });

  it('that answers nothing, not even what it is, is in trouble', async () => {
    await start();
    bench.faults.fate = () => 'lost';
    work();
    await bench.pass(8_000);
    expect(health()?.ok).toBe(false);
    expect(bench.warnings).toHaveLength(1);
    bench.faults.fate = () => 'answered';
    await bench.pass(6_000);
    expect(health()?.ok).toBe(true);
  });

  it('that may not be asked is named with the remedy', async () => {
    await start();
    bench.connection.deny(`${NEXT}${taskConsumerName('gpu')}`);
    work();
    await bench.pass(3_500);
    expect(health()?.detail).toMatch(/tasks of gpu: test may not take tasks: .*; its NATS user lacks the permission/);
    expect(bench.asked.filter(({ subject }) => subject.includes('CONSUMER.INFO'))).toEqual([]);
  });
});

describe('a request for a task', () => {
  it('whose answer comes late is taken all the same', async () => {
    await start({ ackWaitSeconds: 10 });
    await put(1);
    bench.faults.delayMs = 3_500;
    work({ ackWaitMs: 10_000 });
    await bench.pass(3_400);
    bench.faults.delayMs = 0;
    await bench.pass(200);
    expect(seen()).toEqual(['gpu-1/1 at 3500']);
    await end(0, { kind: 'done' });
    expect([queued(), worker?.held]).toEqual([0, 0]);
  });

  it('whose answer comes later than the ack wait is not handled: it may be another worker’s', async () => {
    await start({ ackWaitSeconds: 3 });
    await put(1);
    bench.faults.delayMs = 3_500;
    work({ ackWaitMs: 3_000 });
    await bench.pass(3_400);
    bench.faults.delayMs = 0;
    await bench.pass(200);
    expect([seen(), worker?.held]).toEqual([[], 0]);
  });

  it('ends with the connection, and is made again when that is back', async () => {
    await start();
    work();
    await bench.pass(500);
    bench.connection.break();
    await bench.pass(1);
    expect(health()).toEqual({ ok: false, detail: 'there is no connection to NATS' });
    await bench.pass(4_000);
    expect(pulls()).toEqual([0]);
    bench.connection.restore();
    await bench.pass(1);
    expect([pulls(), health()?.ok]).toEqual([[0, 4_501], true]);
  });
});

describe('a worker that is stopped', () => {
  it('takes no more, and waits for its handlers', async () => {
    await start();
    await put(1);
    const stopped: TaskWorker[] = [];
    work({}, (each) => stopped.push(each));
    await bench.pass(1);
    const stopping = worker?.stop();
    expect(worker?.stop()).toBe(stopping);
    expect(health()).toEqual({ ok: false, detail: 'the worker is stopped' });
    // The request that is under way ends first.
    await bench.pass(990);
    expect(taken[0]?.stopping.aborted).toBe(false);
    await bench.pass(10);
    expect([taken[0]?.stopping.aborted, stopped]).toEqual([true, []]);
    await put(2);
    taken[0]?.end({ kind: 'done' });
    await bench.settled(stopping ?? Promise.resolve());
    expect([stopped, worker?.held, queued()]).toEqual([[worker], 0, 1]);
    expect([bench.nowMs < 1_100, seen()]).toEqual([true, ['gpu-1/1 at 0']]);
  });

  it('hands over what arrives meanwhile', async () => {
    await start();
    work();
    await bench.pass(100);
    const stopping = worker?.stop();
    await put(1);
    await bench.settled(stopping ?? Promise.resolve());
    expect(seen()).toEqual([]);
    // Another worker gets it at once.
    const from = bench.nowMs;
    work();
    await bench.pass(1);
    expect(seen()).toEqual([`gpu-1/2 at ${from}`]);
  });

  it('hands over for a handler that does not end within 3 s', async () => {
    await holding(500);
    const from = bench.nowMs;
    await stopped();
    // 501 ms until the request that was under way ends.
    expect(bench.nowMs - from).toBeLessThanOrEqual(3_501);
    expect(bench.nowMs - from).toBeGreaterThanOrEqual(3_000);
    expect(taken[0]?.lost.aborted).toBe(true);
    const again = bench.nowMs;
    work();
    await bench.pass(1);
    expect(seen().slice(1)).toEqual([`gpu-1/2 at ${again}`]);
  });

  it('without a connection gives up at once what it holds', async () => {
    await holding(500);
    bench.connection.break();
    await bench.pass(1);
    const from = bench.nowMs;
    await stopped(100);
    expect([bench.nowMs - from, taken[0]?.lost.aborted]).toEqual([100, true]);
    expect(queued()).toBe(1);
  });

  it('asks for nothing more, whatever it waited for', async () => {
    const aggregates = ['a', 'b', 'c'];
    await start({ aggregates });
    work({ aggregates, concurrency: 2 });
    await bench.pass(100);
    await stopped();
    const asked = bench.asked.length;
    await bench.pass(5_000);
    bench.connection.break();
    await bench.pass(1);
    bench.connection.restore();
    await bench.pass(1_000);
    expect([bench.asked.length, bench.connection.subscribed]).toEqual([asked, []]);
  });
});

it('a sink gets one event at a time', async () => {
  await start({ sinks: ['chat'] });
  for (const n of [1, 2]) await bench.settled(append(bench.link, 'KRONOS_LOG', pausedEvent(`e${n}`), {}));
  const events: unknown[] = [];
  worker = sinkWorker(bench.link, {
    stream: 'KRONOS_LOG',
    sink: 'chat',
    async handle({ message, sequence, storedAt, deliveries }) {
      events.push([message, sequence, storedAt, deliveries]);
      return { kind: 'done' };
    },
  });
  await bench.pass(1);
  const storedAt = bench.clock.now() - bench.nowMs;
  expect(events).toEqual([
    [pausedEvent('e1'), 1, storedAt, 1],
    [pausedEvent('e2'), 2, storedAt, 1],
  ]);
});
