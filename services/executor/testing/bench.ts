/**
 * Measures the cost of the executor: `node services/executor/testing/bench.ts [--tasks N] [--queued N]`. Prints one object of JSON.
 *
 * `overheadMs`: wall time of a task less the time inside HTTP calls and less the waits between two looks at Nova, median and 95th
 * percentile, one task at a time. `stepsMs`: the same, median, by the stage that a task left. `memoryMib`: resident memory of the executor's process idle, and with that number of queued
 * tasks.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Clock, systemClock } from '@kronos/clock';
import { defaultTaskOptions } from '../src/options.ts';
import { AGGREGATE, type Bed, smallCloud, startBed, startExecutor } from './index.ts';

const CAPS = { maxConcurrentMigrations: 1, maxOutboundPerHost: 1, maxInboundPerHost: 1, maxConcurrentPerGroup: 1 };

/** Adds up the milliseconds during which at least one of several things goes on. */
class Busy {
  #open = 0;
  #since = 0;
  #total = 0;

  begin(): void {
    if (this.#open === 0) this.#since = performance.now();
    this.#open += 1;
  }

  end(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#total += performance.now() - this.#since;
  }

  get ms(): number {
    return this.#total + (this.#open > 0 ? performance.now() - this.#since : 0);
  }
}

function compose(natsUrl: string, authUrl: string, busy: Busy, onMove: (from: string) => void = () => undefined) {
  const sleep: Clock['sleep'] = async (ms, ...signals) => {
    busy.begin();
    await systemClock.sleep(ms, ...signals);
    busy.end();
  };
  return startExecutor(
    { natsUrl, authUrl },
    {
      name: 'executor',
      session: {
        injectHeaders: () => {
          busy.begin();
          return {};
        },
        onCall: () => busy.end(),
      },
      sriovPorts: 'auto',
      aggregates: [AGGREGATE],
      check: { aggregates: [AGGREGATE], optOut: [], force: false },
      options: { ...defaultTaskOptions, pollIntervalMs: 25 },
      caps: CAPS,
      ackWaitMs: 30_000,
      concurrency: 2000,
      clock: { ...systemClock, sleep },
      metersOf: (meters) => ({
        ...meters,
        moved(task, before, after) {
          meters.moved(task, before, after);
          onMove(before.stage.at);
        },
      }),
    },
  );
}

/** Wall time less waiting, for tasks that run one at a time. */
async function overhead(tasks: number) {
  const bed = await startBed(smallCloud(4, 4), { ackWaitSeconds: 30 });
  const busy = new Busy();
  let last = 0;
  const steps = new Map<string, number[]>();
  const idle = (): number => performance.now() - busy.ms;
  /** The time of a task in a stage, summed over its visits. */
  const spent = new Map<string, number>();
  const { stop } = await compose(bed.nats.url, bed.sim.urls.identity, busy, (from) => {
    const now = idle();
    spent.set(from, (spent.get(from) ?? 0) + now - last);
    last = now;
  });
  const costs: number[] = [];
  for (let i = 0; i < tasks; i += 1) {
    const server = bed.sim.cloud.server(`h1-${1 + (i % 4)}`);
    const to = server.host === 'h2' ? 'h3' : 'h2';
    const before = busy.ms;
    const began = performance.now();
    const ids = await bed.release([{ server: server.name, from: server.host, to }]);
    const released = performance.now() - began;
    last = idle();
    spent.clear();
    await finished(bed, ids[0] ?? '');
    costs.push(performance.now() - began - released - (busy.ms - before));
    for (const [stage, ms] of spent) steps.set(stage, [...(steps.get(stage) ?? []), ms]);
  }
  await stop();
  await bed.close();
  // The first one authenticates and asks for versions.
  const warm = costs.slice(1);
  return {
    overheadMs: { median: quantile(warm, 0.5), p95: quantile(warm, 0.95) },
    stepsMs: Object.fromEntries([...steps].map(([stage, all]) => [stage, quantile(all.slice(1), 0.5)])),
  };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10;
}

async function finished(bed: Bed, task: string): Promise<void> {
  for await (const { message } of bed.log.tail({ families: ['results'], since: 'all' })) {
    const data = message !== null && typeof message === 'object' && 'data' in message ? message.data : null;
    const ended =
      typeof message === 'object' && message !== null && 'type' in message && message.type === 'migration.completed';
    if (ended && typeof data === 'object' && data !== null && 'taskId' in data && data.taskId === task) return;
  }
}

/** Resident memory of an executor process before it holds tasks, and with that number of tasks. */
async function memory(queued: number): Promise<{ idle: number; queued: number }> {
  const bed = await startBed(smallCloud(4, 4), { ackWaitSeconds: 30 });
  await bed.pause(true);
  const child = fork(fileURLToPath(import.meta.url), ['--child', bed.nats.url, bed.sim.urls.identity], {
    execArgv: ['--expose-gc'],
  });
  const ask = (): Promise<{ held: number; mib: number }> =>
    new Promise((resolve) => {
      child.once('message', (answer) => resolve(answer as { held: number; mib: number }));
      child.send('how much?');
    });
  await new Promise((resolve) => child.once('message', resolve));
  const idle = await ask();
  const moves = Array.from({ length: queued }, (_, i) => ({ server: `h1-${1 + (i % 4)}`, from: 'h1', to: 'h2' }));
  await bed.release(moves);
  let full = await ask();
  while (full.held < queued) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    full = await ask();
  }
  await new Promise((resolve) => setTimeout(resolve, 2000));
  full = await ask();
  child.kill('SIGKILL');
  await bed.close();
  return { idle: Math.round(idle.mib), queued: Math.round(full.mib) };
}

const { values, positionals } = parseArgs({
  options: {
    tasks: { type: 'string', default: '30' },
    queued: { type: 'string', default: '1000' },
    child: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
if (values.child) {
  const [natsUrl = '', authUrl = ''] = positionals;
  const { executor } = await compose(natsUrl, authUrl, new Busy());
  process.on('message', () => {
    globalThis.gc?.();
    process.send?.({ held: executor.held, mib: process.memoryUsage.rss() / 1024 ** 2 });
  });
  process.send?.('ready');
} else {
  const { overheadMs, stepsMs } = await overhead(Number(values.tasks));
  const memoryMib = await memory(Number(values.queued));
  process.stdout.write(`${JSON.stringify({ bench: 'executor', overheadMs, stepsMs, memoryMib })}\n`);
}
