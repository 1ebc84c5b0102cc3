import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from '@kronos/clock/testing';
import { streamNames } from '@kronos/contracts';
import { expect, test } from 'vitest';
import { taskMessage } from '../../testing/messages.ts';
import { startProxy } from '../../testing/proxy.ts';
import { type Bench, onEachServer } from '../../testing/suite.ts';
import type { EventLog, TaskDelivery, TaskOutcome, TaskWorkerOptions } from '../wire/types.ts';

const QUEUE = streamNames.migrations;
/** Of tests that let a delivery be lost: a worker that does not run for this time loses what it holds. */
const SHORT_SECONDS = 6;
const SHORT_MS = SHORT_SECONDS * 1000;
/** Of all other tests: no delivery is lost, however busy the machine is, and none comes again within the time of a test. */
const LONG_SECONDS = 600;
const LONG_MS = LONG_SECONDS * 1000;

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

/** A promise, and the act that resolves it. */
const gate = () => Promise.withResolvers<void>();

const left = async (bench: Bench, server: { url: string }) => {
  const { jsm } = await bench.bare(server);
  return async () => (await jsm.streams.info(QUEUE)).state.messages;
};

onEachServer('tasks', { concurrent: true, olderAtNight: true }, (bench) => {
  const provisioned = (aggregates: readonly string[] = ['gpu'], ackWaitSeconds = LONG_SECONDS) =>
    bench.provisioned(aggregates, { ackWaitSeconds });

  test('putting a task off any number of times never ends it', async () => {
    const { log } = await provisioned();
    await log.append(taskMessage(1));
    const { given } = work(log, (d) => (d.deliveries < 25 ? { kind: 'later', delayMs: 5 } : { kind: 'done' }));
    await until(() => given.length === 25);
  });

  test('a server that restarts within the ack wait: the job goes on and is acked', async () => {
    const { server, log } = await provisioned();
    const messages = await left(bench, server);
    await log.append(taskMessage(1));
    const { given } = work(log, async () => {
      await server.restart();
      await until(() => log.healthy().ok);
      return { kind: 'done' };
    });
    await until(async () => (await messages().catch(() => 1)) === 0);
    expect(given.map(({ deliveries, lost }) => [deliveries, lost.aborted])).toEqual([[1, false]]);
  });

  test('a process that was stopped for longer than the ack wait finds out and sends nothing', async () => {
    const { server, log } = await provisioned(['gpu'], SHORT_SECONDS);
    const proxy = bench.closing.add(await startProxy(server.port));
    const child = startProcess(proxy.url, SHORT_MS);
    bench.closing.add(child);
    await log.append(taskMessage(1));
    await child.said('taken');
    // Bytes that wait to be written would leave when it wakes up.
    await until(() => proxy.sentSince(0).includes('+WPI'));
    child.process.kill('SIGSTOP');
    const { promise: released, resolve: release } = gate();
    const { given } = work(
      log,
      async () => {
        await released;
        return { kind: 'done' };
      },
      { ackWaitMs: SHORT_MS },
    );
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
    const messages = await left(bench, server);
    await until(async () => (await messages()) === 0);
    expect(given).toHaveLength(1);
  });

  test('a process that is asked to end hands over, and its task does not wait for the ack wait', async () => {
    const { server, log } = await provisioned();
    const child = startProcess(server.url, LONG_MS);
    bench.closing.add(child);
    await log.append(taskMessage(1));
    await child.said('taken');
    const { given } = work(log, () => ({ kind: 'done' }));
    child.process.kill('SIGTERM');
    await until(() => given.length === 1);
    await child.said('closed');
  });

  test('closing answers for the running handlers before the connection goes', async () => {
    const { server, log } = await provisioned();
    const own = await bench.connect(server, { name: 'closing' });
    await log.append(taskMessage(1));
    const { given } = work(own, async ({ stopping }) => {
      await aborted(stopping);
      await new Promise(setImmediate);
      return { kind: 'done' };
    });
    await until(() => given.length === 1);
    await own.close();
    const messages = await left(bench, server);
    await until(async () => (await messages()) === 0);
  });

  test('tasks are taken also while every slot but one waits for other aggregates', async () => {
    const { log } = await provisioned(['gpu', 'cpu', 'tpu']);
    const { promise: released, resolve: release } = gate();
    const { given } = work(
      log,
      async () => {
        await released;
        return { kind: 'done' };
      },
      { aggregates: ['gpu', 'cpu', 'tpu'], concurrency: 3 },
    );
    for (let i = 1; i <= 3; i++) await log.append(taskMessage(i));
    await until(() => given.length === 3);
    release();
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
