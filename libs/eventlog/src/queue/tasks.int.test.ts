import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from '@kronos/clock/testing';
import { streamNames } from '@kronos/contracts';
import { expect, test } from 'vitest';
import { appendAll } from '../../testing/appendAll.ts';
import { all } from '../../testing/async.ts';
import { actor, startedEvent, taskMessage } from '../../testing/messages.ts';
import { startProxy } from '../../testing/proxy.ts';
import { type Bench, onEachServer } from '../../testing/suite.ts';
import { taskConsumerName } from '../wire/definitions.ts';
import { Link } from '../wire/link.ts';
import type { EventLog, TaskDelivery, TaskOutcome, TaskWorkerOptions } from '../wire/types.ts';
import { Held } from './held.ts';

const QUEUE = streamNames.migrations;
/** Of tests that let a delivery be lost: a worker that does not run for this time loses what it holds. */
const SHORT_SECONDS = 6;
const SHORT_MS = SHORT_SECONDS * 1000;
/** Of all other tests: no delivery is lost, however busy the machine is, and none comes again within the time of a test. */
const LONG_SECONDS = 600;
const LONG_MS = LONG_SECONDS * 1000;

const idOf = ({ task }: TaskDelivery): string => ('unreadable' in task ? task.unreadable : task.id);

/** A worker whose handler the test writes, with a record of what it was given. */
function work(
  log: EventLog,
  handle: (d: TaskDelivery) => TaskOutcome | Promise<TaskOutcome>,
  more: Partial<TaskWorkerOptions> = {},
) {
  const given: TaskDelivery[] = [];
  const worker = log.tasks({
    aggregates: ['gpu'],
    concurrency: 4,
    ackWaitMs: LONG_MS,
    ...more,
    handle: async (delivery) => {
      given.push(delivery);
      return await handle(delivery);
    },
  });
  return { worker, given };
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve());
  });

const tasks = (count: number) => Array.from({ length: count }, (_, i) => taskMessage(i));
const DONE: TaskOutcome = { kind: 'done' };
const done = (): TaskOutcome => DONE;

/** A handler whose tasks are done once they are released. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { handle: () => promise.then(done), release: resolve };
}

const left = async (bench: Bench, server: { url: string }) => {
  const { jsm } = await bench.bare(server);
  return async () => (await jsm.streams.info(QUEUE)).state.messages;
};
/** Waits until the queue has no message. */
async function emptied(bench: Bench, server: { url: string }): Promise<void> {
  const messages = await left(bench, server);
  await until(async () => (await messages()) === 0);
}

onEachServer('tasks', { concurrent: true, olderAtNight: true }, (bench) => {
  const proxied = async ({ port }: { port: number }) => bench.closing.add(await startProxy(port));
  const started = (url: string, ackWaitMs: number) => bench.closing.add(startProcess(url, ackWaitMs));
  const provisioned = (aggregates: readonly string[] = ['gpu'], ackWaitSeconds = LONG_SECONDS) =>
    bench.provisioned(aggregates, { ackWaitSeconds });

  test('done, dead: gone for good; later, handOver: they come again; a handler that throws counts as later', async () => {
    const { server, log } = await provisioned();
    const messages = await left(bench, server);
    for (let i = 1; i <= 4; i++) await log.append(taskMessage(i));
    const outcomes: Record<string, TaskOutcome[]> = {
      'migration.requested:gpu-1-s1:1': [DONE],
      'migration.requested:gpu-2-s1:1': [{ kind: 'dead' }],
      'migration.requested:gpu-3-s1:1': [{ kind: 'later', delayMs: 300 }, DONE],
      'migration.requested:gpu-4-s1:1': [{ kind: 'handOver' }, { kind: 'handOver' }, DONE],
    };
    // A clock of this process alone: the second moment is after the server's delay, however slow either is.
    const at: number[] = [];
    const { given, worker } = work(log, (d) => {
      if (idOf(d).includes('gpu-3')) at.push(performance.now());
      return outcomes[idOf(d)]?.shift() ?? DONE;
    });
    await until(async () => (await messages()) === 0);
    // One more goes the same way, behind anything that would still come.
    await log.append(taskMessage(5));
    await until(() => given.some(({ sequence }) => sequence === 5));
    await until(async () => (await messages()) === 0 && worker.held === 0);
    const times = ['1/1', '2/1', '3/1', '3/2', '4/1', '4/2', '4/3', '5/1'];
    expect(given.map((d) => `${d.sequence}/${d.deliveries}`).sort()).toEqual(times);
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(290);
    expect(given[0]).toMatchObject({ subject: 'kronos.migrations.gpu', aggregate: 'gpu', traceparent: null });
    expect(given[0]?.task).toEqual(taskMessage(1));
  });

  test('a handler that throws counts as later, with a warning', async () => {
    const { server, log } = await provisioned();
    const proxy = await proxied(server);
    const warnings: string[] = [];
    const own = await bench.connect(proxy, {}, { onWarning: ({ text }) => warnings.push(text) });
    await log.append(taskMessage(1));
    const { given } = work(own, () => {
      throw new Error('the handler broke');
    });
    await until(() => proxy.sentSince(0).includes('-NAK {"delay":5000000000}'));
    expect(warnings[0]).toContain('the handler broke');
    expect(given).toHaveLength(1);
  });

  test('what is no task is delivered as such', async () => {
    const { server, log } = await provisioned();
    const { js } = await bench.bare(server);
    await js.publish('kronos.migrations.gpu', 'no json');
    await js.publish('kronos.migrations.gpu', JSON.stringify({ ...taskMessage(1), version: 9 }));
    await js.publish('kronos.migrations.gpu', JSON.stringify(taskMessage(2, 'cpu')));
    await js.publish('kronos.migrations.gpu', JSON.stringify({ ...taskMessage(3), by: actor }));
    await js.publish('kronos.migrations.gpu', JSON.stringify(startedEvent(1)));
    await js.publish('kronos.migrations.gpu', '['.repeat(500_000));
    const { given } = work(log, () => ({ kind: 'dead' }));
    await until(() => given.length === 6);
    for (const { task } of given) expect(task).toHaveProperty('unreadable');
    expect(JSON.stringify(given.at(-1)?.task).length).toBeLessThan(10_000);
    expect(given[0]?.task).toEqual({ unreadable: 'the body is no JSON', body: 'no json' });
    expect(given[1]?.task).toHaveProperty('unreadable');
    expect(given[2]?.task).toMatchObject({ unreadable: expect.stringContaining('the body names the aggregate "cpu"') });
  });

  test('putting a task off any number of times never ends it', async () => {
    const { log } = await provisioned();
    await log.append(taskMessage(1));
    const { given } = work(log, (d) => (d.deliveries < 25 ? { kind: 'later', delayMs: 5 } : DONE));
    await until(() => given.length === 25);
  });

  test('a job that takes longer than the ack wait is not given to another', async () => {
    const { server, log } = await provisioned(['gpu'], SHORT_SECONDS);
    const proxy = await proxied(server);
    const messages = await left(bench, server);
    await log.append(taskMessage(1));
    const heartbeats = () => proxy.sentSince(0).split('+WPI').length - 1;
    // One at the start, then one in each third of the ack wait that follows a confirmed one.
    const slow = () => until(() => heartbeats() > 4).then(done);
    const workers = [];
    for (const name of ['one', 'other'])
      workers.push(work(await bench.connect(proxy, { name }), slow, { ackWaitMs: SHORT_MS }));
    await until(async () => (await messages()) === 0);
    expect(workers.flatMap(({ given }) => given)).toHaveLength(1);
    expect(workers.flatMap(({ given }) => given.map(({ lost }) => lost.aborted))).toEqual([false]);
  });

  test('a server that restarts within the ack wait: the job goes on and is acked', async () => {
    const { server, log } = await provisioned();
    const messages = await left(bench, server);
    await log.append(taskMessage(1));
    const { given } = work(log, async () => {
      await server.restart();
      await until(() => log.healthy().ok);
      return DONE;
    });
    await until(async () => (await messages().catch(() => 1)) === 0);
    expect(given.map(({ deliveries, lost }) => [deliveries, lost.aborted])).toEqual([[1, false]]);
  });

  test('cut off for the ack wait: the delivery is lost, another worker has it, and nothing is ever sent for it', async () => {
    const { server, log } = await provisioned(['gpu'], SHORT_SECONDS);
    const proxy = await proxied(server);
    const cutOff = await bench.connect(proxy, { name: 'cut-off' });
    for (let i = 1; i <= 4; i++) await log.append(taskMessage(i));
    // Each would answer in its own way once it is too late.
    const answers: TaskOutcome[] = [DONE, { kind: 'later', delayMs: 1 }, { kind: 'handOver' }, { kind: 'dead' }];
    const late = (d: TaskDelivery) => aborted(d.lost).then(() => answers[d.sequence - 1] ?? DONE);
    const first = work(cutOff, late, { ackWaitMs: SHORT_MS });
    await until(() => first.given.length === 4);
    proxy.cut();
    const { handle, release } = gate();
    const stillHeld: boolean[] = [];
    const take = ({ sequence }: TaskDelivery) => {
      // By its clock the first holder knows that it has lost the delivery before the server gives it to another.
      stillHeld.push(first.given.find((d) => d.sequence === sequence)?.held() ?? true);
      return handle();
    };
    const second = work(log, take, { ackWaitMs: SHORT_MS });
    await until(() => second.given.length === 4);
    expect(second.given.map(({ deliveries }) => deliveries)).toEqual([2, 2, 2, 2]);
    expect(stillHeld).toEqual([false, false, false, false]);
    await Promise.all(first.given.map(({ lost }) => aborted(lost)));
    const lostAt = performance.now();
    await until(() => first.worker.held === 0);
    proxy.heal();
    // The connection sends everything else before this question.
    await cutOff.lastSequence(QUEUE);
    expect(proxy.sentSince(lostAt)).not.toContain('$JS.ACK.');
    release();
    await emptied(bench, server);
    expect(second.given).toHaveLength(4);
  });

  test('a late answer of a former holder would count, which is why none is sent', async () => {
    const { server, log } = await provisioned(['gpu'], 1);
    const { nc } = await bench.bare(server);
    await log.append(taskMessage(1));
    const next = async () => {
      const inbox = `_INBOX.${Math.random().toString(36).slice(2)}`;
      const sub = nc.subscribe(inbox, { max: 1 });
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${QUEUE}.${taskConsumerName('gpu')}`;
      nc.publish(subject, JSON.stringify({ batch: 1, expires: 60_000_000_000 }), { reply: inbox });
      for await (const message of sub) return message;
      throw new Error('nothing came');
    };
    const first = await next();
    const second = await next();
    expect(second.reply).toContain('.2.1.2.');
    nc.publish(first.reply ?? '', '-NAK');
    const third = await next();
    expect(third.reply).toContain('.3.1.3.');
    nc.publish(first.reply ?? '', '+TERM');
    await nc.flush();
    await emptied(bench, server);
  });

  test('term with a reason is ignored by old servers, so none is given', async () => {
    const { server, log } = await provisioned();
    const { nc } = await bench.bare(server);
    for (let i = 1; i <= 2; i++) await log.append(taskMessage(i));
    const sub = nc.subscribe('_INBOX.reason', { max: 2 });
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${QUEUE}.${taskConsumerName('gpu')}`;
    nc.publish(subject, JSON.stringify({ batch: 2, expires: 60_000_000_000 }), { reply: '_INBOX.reason' });
    const [termed = '', acked = ''] = (await all(sub)).map(({ reply }) => reply);
    nc.publish(termed, '+TERM because');
    // A consumer handles its acks in order: when the second one is confirmed, the first one is handled.
    await nc.request(acked, '+ACK', { timeout: 60_000 });
    const messages = await left(bench, server);
    await until(async () => (await messages()) < 2);
    expect(await messages()).toBe(log.server.capabilities.termReason ? 0 : 1);
  });

  test('a message that reaches a worker too late to be surely its own is left alone', async () => {
    const { server } = await provisioned();
    const link = await Link.open({ servers: [server.url], name: 'late' });
    const held = new Held(link, '$JS.ACK.X.Y.1.1.1.1.1', 1_000, performance.now() - 1_001);
    expect(held.lost.aborted).toBe(true);
    expect(await held.settle('done')).toBe(false);
    await link.close();
  });

  test('a process that was stopped for longer than the ack wait finds out and sends nothing', async () => {
    const { server, log } = await provisioned(['gpu'], SHORT_SECONDS);
    const proxy = await proxied(server);
    const child = started(proxy.url, SHORT_MS);
    await log.append(taskMessage(1));
    await child.said('taken');
    // Bytes that wait to be written would leave when it wakes up.
    await until(() => proxy.sentSince(0).includes('+WPI'));
    child.process.kill('SIGSTOP');
    const { handle, release } = gate();
    const { given } = work(log, handle, { ackWaitMs: SHORT_MS });
    await until(() => given.length === 1);
    expect(given[0]?.deliveries).toBe(2);
    const wokenAt = performance.now();
    child.process.kill('SIGCONT');
    await child.said('lost');
    // Asked to end, it sends what it still has to send.
    child.process.kill('SIGTERM');
    await child.said('closed');
    expect(proxy.sentSince(wokenAt)).not.toContain('$JS.ACK.');
    release();
    await emptied(bench, server);
    expect(given).toHaveLength(1);
  });

  test('a process that is killed: its task comes again after the ack wait', async () => {
    const { server, log } = await provisioned(['gpu'], SHORT_SECONDS);
    const child = started(server.url, SHORT_MS);
    await log.append(taskMessage(1));
    await child.said('taken');
    child.process.kill('SIGKILL');
    const { given } = work(log, done, { ackWaitMs: SHORT_MS });
    await until(() => given.length === 1);
    expect(given[0]?.deliveries).toBe(2);
  });

  test('a server that is slow to answer delivers each task once', async () => {
    const { server, log } = await provisioned();
    const proxy = await proxied(server);
    const slow = await bench.connect(proxy);
    proxy.delay(4_000);
    await log.append(taskMessage(1));
    const { given, worker } = work(slow, done);
    await until(async () => (await log.usage(streamNames.migrations)).messages === 0);
    expect(given.map(({ deliveries }) => deliveries)).toEqual([1]);
    proxy.delay(0);
    await worker.stop();
  });

  test('a process that is asked to end hands over, and its task does not wait for the ack wait', async () => {
    const { server, log } = await provisioned();
    const child = started(server.url, LONG_MS);
    await log.append(taskMessage(1));
    await child.said('taken');
    const { given } = work(log, done);
    child.process.kill('SIGTERM');
    await until(() => given.length === 1);
    await child.said('closed');
  });

  test('stop: no new task, running handlers are asked, those that do not listen are handed over for', async () => {
    const { server, log } = await provisioned();
    const own = await bench.connect(server, { name: 'stopping' });
    for (let i = 1; i <= 2; i++) await log.append(taskMessage(i));
    const { worker, given } = work(own, async (d) => {
      // One listens, the other never returns.
      await aborted(d.sequence === 1 ? d.stopping : new AbortController().signal);
      return { kind: 'handOver' };
    });
    await until(() => given.length === 2);
    await worker.stop(300);
    expect(given[1]?.lost.aborted).toBe(true);
    expect(own.healthy().ok).toBe(true);
    await log.append(taskMessage(3));
    const other = work(log, done);
    await until(() => other.given.length === 3);
    expect(other.given.map((d) => `${d.sequence}/${d.deliveries}`).sort()).toEqual(['1/2', '2/2', '3/1']);
    expect(given).toHaveLength(2);
  });

  test('closing answers for the running handlers before the connection goes', async () => {
    const { server, log } = await provisioned();
    const own = await bench.connect(server, { name: 'closing' });
    await log.append(taskMessage(1));
    const { given } = work(own, async ({ stopping }) => {
      await aborted(stopping);
      await new Promise(setImmediate);
      return DONE;
    });
    await until(() => given.length === 1);
    await own.close();
    await emptied(bench, server);
  });

  test('a durable that is gone shows, and work goes on when it is back', async () => {
    const { server, log } = await provisioned(['gpu', 'cpu']);
    const { jsm } = await bench.bare(server);
    const { worker, given } = work(log, done, { aggregates: ['gpu', 'cpu'] });
    expect(worker.healthy().ok).toBe(true);
    await jsm.consumers.delete(QUEUE, taskConsumerName('gpu'));
    await until(() => !worker.healthy().ok);
    expect(log.healthy().detail).toContain('gpu');
    await log.append(taskMessage(1, 'cpu'));
    await until(() => given.length === 1);
    const limits = { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 64 * 1024 ** 2, logMaxBytes: 1024 ** 3 };
    await log.provision({ limits, replicas: 1, aggregates: ['gpu', 'cpu'], ackWaitSeconds: LONG_SECONDS });
    await log.append(taskMessage(2));
    await until(() => given.length === 2);
    await until(() => worker.healthy().ok);
  });

  test('a missing durable is named from the start', async () => {
    const { server } = await provisioned(['gpu']);
    const own = await bench.connect(server);
    const { worker } = work(own, done, { aggregates: ['nobody'] });
    await until(() => !worker.healthy().ok);
    expect(worker.healthy().detail).toMatch(/tasks-nobody|nobody/);
  });

  test('no more is held than there are slots, however long the queue', async () => {
    const { server, log } = await provisioned();
    await appendAll(log, tasks(1_000));
    const { jsm } = await bench.bare(server);
    let running = 0;
    let most = 0;
    const handle = async () => {
      running++;
      most = Math.max(most, running);
      await jsm.streams.info(QUEUE);
      running--;
      return DONE;
    };
    const { worker, given } = work(log, handle, { concurrency: 3 });
    await until(async () => {
      expect(worker.held).toBeLessThanOrEqual(3);
      const { num_ack_pending } = await jsm.consumers.info(QUEUE, taskConsumerName('gpu'));
      expect(num_ack_pending).toBeLessThanOrEqual(4);
      return given.length >= 300;
    });
    expect(most).toBeLessThanOrEqual(3);
    await worker.stop();
    expect(running).toBe(0);
  });

  test('a long queue of one aggregate does not keep the others waiting, with fewer slots than aggregates', async () => {
    const others = Array.from({ length: 12 }, (_, i) => `agg-${i}`);
    const { log } = await provisioned(['gpu', ...others]);
    for (const queue of [tasks(600), others.map((aggregate) => taskMessage(1, aggregate))]) await appendAll(log, queue);
    const handle = () => log.lastSequence(QUEUE).then(done);
    const { worker, given } = work(log, handle, { aggregates: ['gpu', ...others], concurrency: 2 });
    const rest = () => given.filter(({ aggregate }) => aggregate !== 'gpu');
    await until(() => rest().length === others.length);
    expect(given.findLastIndex(({ aggregate }) => aggregate !== 'gpu')).toBeLessThan(150);
    await worker.stop();
  });

  test('tasks are taken also while every slot but one waits for other aggregates', async () => {
    const { log } = await provisioned(['gpu', 'cpu', 'tpu']);
    const { handle, release } = gate();
    const { given } = work(log, handle, { aggregates: ['gpu', 'cpu', 'tpu'], concurrency: 3 });
    for (let i = 1; i <= 3; i++) await log.append(taskMessage(i));
    await until(() => given.length === 3);
    release();
  });

  test('a worker needs a slot', async () => {
    const { log } = await provisioned();
    expect(() => work(log, done, { concurrency: 0 })).toThrow(RangeError);
  });
});

function startProcess(url: string, ackWaitMs: number) {
  const script = fileURLToPath(new URL('../../testing/workerProcess.ts', import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [script, url, 'gpu', String(ackWaitMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: { what: string }[] = [];
  if (child.stdout !== null)
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line) as { what: string }));
  return {
    process: child,
    said: (what: string) => until(() => lines.some((line) => line.what === what)),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    },
  };
}
