/**
 * An executor as a process of its own, for tests that kill it. It waits for lines of JSON on standard input:
 * `{"do":"start", ...}` composes an executor with scaled waits, `{"do":"stop"}` ends it and makes the process ready for the
 * next. It reports on descriptor 3. When a task comes to the point named by `hold`, it reports that and stands still, with
 * everything in it, until it reads the byte of this use from descriptor 4: what the test does meanwhile happens exactly there.
 */
import { readSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { defaultTaskOptions, type Task, type TaskMeters, type TaskOptions, type TaskState } from '@kronos/executor';
import type { AllCaps } from '@kronos/projections';
import { type Started, startExecutor } from '../../services/executor/testing/parts.ts';

export interface StartOrder {
  readonly do: 'start';
  /** Number of this use of the process, 0 to 255: the byte that lets it continue. */
  readonly use: number;
  readonly natsUrl: string;
  readonly authUrl: string;
  readonly aggregate: string;
  readonly instance: string;
  readonly caps: AllCaps;
  readonly options: Partial<TaskOptions>;
  readonly ackWaitMs: number;
  readonly concurrency: number;
  /** The place to stop once: the stage, and the server of the task. */
  readonly hold: { readonly point: string; readonly serverId: string } | null;
}
export type Order = StartOrder | { readonly do: 'stop' };
export type Report =
  | { readonly is: 'ready' }
  | { readonly is: 'started' }
  | { readonly is: 'holding'; readonly point: string }
  | { readonly is: 'stopped' };

const report = (what: Report): void => {
  writeSync(3, `${JSON.stringify(what)}\n`);
};

/** Stops until the test sends the byte. */
function holdHere(point: string, use: number): void {
  report({ is: 'holding', point });
  const byte = Buffer.alloc(1);
  for (;;) {
    try {
      if (readSync(4, byte, 0, 1, null) === 0) process.exit(0);
      if (byte[0] === use) return;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

/** The name of the point that a task has reached. */
function pointOf({ stage }: TaskState): string {
  return stage.at === 'following' && stage.run.status === 'running' ? 'running' : stage.at;
}

/** Metrics that count nothing, and stop at the point. */
function holding(meters: TaskMeters, { hold, use }: StartOrder): TaskMeters {
  let armed = hold !== null;
  return {
    ...meters,
    moved(task: Task, before: TaskState, after: TaskState) {
      meters.moved(task, before, after);
      if (!armed || hold === null || task.serverId !== hold.serverId || pointOf(after) !== hold.point) return;
      armed = false;
      holdHere(hold.point, use);
    },
  };
}

async function start(order: StartOrder): Promise<Started> {
  const started = await startExecutor(order, {
    name: order.instance,
    session: {
      limits: { connectMs: 1000, headersMs: 3000, bodyMs: 3000, totalMs: 6000 },
      retry: { connection: { retries: 1, backoffMs: 20 }, status: { retries: 1, backoffMs: 20 } },
    },
    sriovPorts: 'auto',
    aggregates: [order.aggregate],
    check: { aggregates: [order.aggregate], optOut: ['kronos:exclude'], force: false },
    options: { ...defaultTaskOptions, ...order.options },
    caps: order.caps,
    ackWaitMs: order.ackWaitMs,
    concurrency: order.concurrency,
    level: process.env.KRONOS_FAULT_LOG,
    metersOf: (meters) => holding(meters, order),
  });
  started.executor.done.catch((error: unknown) => {
    process.stderr.write(`${order.instance}: ${error instanceof Error ? error.stack : error}\n`);
    process.exit(1);
  });
  return started;
}

let parts: Started | null = null;

async function stop(): Promise<void> {
  const running = parts;
  parts = null;
  await running?.stop(1000);
}

process.on('SIGTERM', () => {
  void stop().then(() => process.exit(0));
});

report({ is: 'ready' });
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as Order;
  if (order.do === 'start') {
    parts = await start(order);
    report({ is: 'started' });
  } else {
    await stop();
    report({ is: 'stopped' });
  }
}
process.exit(0);
