import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { orderThread } from '@kronos/cycle';
import { type SentError, unpacked } from './sentError.ts';
import { createWorker, type ReplayOrder } from './worker.ts';

/** Decisions that run on the caller's thread. Only for more are threads started: a start costs as much as hundreds of small decisions. */
export const FEW = 256;
/** Decisions that each thread has before it, read already. */
export const AHEAD_OF_THREAD = 4;
/** Outcomes that may wait for a slow decision before them. */
export const AHEAD = 512;

/** Threads that run decisions. Each worker works through its orders one after the other. */
export type Pool = {
  readonly size: number;
  /** Orders of a worker come to it in the order of the calls, however long their making takes. */
  readonly run: (worker: number, order: () => Promise<ReplayOrder>) => Promise<unknown>;
  readonly close: () => Promise<void>;
};

/** As many threads as the machine has cores. */
export const defaultThreads = (): number => availableParallelism();

/** A pool of this many threads beside that of the caller; 0: one worker, on the thread of the caller. */
export function createPool(threads: number): Pool {
  const workers = threads === 0 ? [local()] : Array.from({ length: threads }, () => remote());
  const last = workers.map(() => Promise.resolve());
  return {
    size: workers.length,
    async run(index, make) {
      const worker = workers[index];
      if (worker === undefined) throw new RangeError(`a pool of ${workers.length} has no worker ${index}`);
      // Its input may take long to read: it is read while earlier orders run.
      const made = make();
      made.catch(() => undefined);
      const before = last[index];
      const sent = Promise.withResolvers<void>();
      last[index] = sent.promise;
      await before;
      try {
        return await worker.send(await made, sent.resolve);
      } finally {
        sent.resolve();
      }
    },
    close: async () => void (await Promise.all(workers.map((worker) => worker.close()))),
  };
}

type PoolWorker = {
  /** @param sent called when the order is on its way: the next one may follow */
  readonly send: (order: ReplayOrder, sent: () => void) => Promise<unknown>;
  readonly close: () => Promise<unknown>;
};

function local(): PoolWorker {
  const work = createWorker();
  return { send: async (order) => work(order), close: async () => undefined };
}

function remote(): PoolWorker {
  let gone: Error | null = null;
  const thread = orderThread<ReplayOrder, unknown>({
    start: () => new Worker(new URL('./thread.ts', import.meta.url)),
    name: 'a thread of the replay',
    unpack: (failed) => unpacked(failed as SentError),
    // Later orders build on what it knew: no other thread can take its place.
    onEnd: (error) => {
      gone ??= error;
    },
  });
  return {
    send(order, sent) {
      if (gone !== null) return Promise.reject(gone);
      const answer = thread.ask(order);
      sent();
      return answer;
    },
    close: thread.close,
  };
}

/** Limits of {@link inOrder}. */
export type PoolLimits = {
  /** Jobs that run at once. */
  readonly busy: () => number;
  /** Jobs that are taken before the outcome of the first of them was. */
  readonly ahead: number;
  /** An abort ends it. */
  readonly signal: AbortSignal | undefined;
};

/** Runs jobs side by side and gives their outcomes in the order of the jobs. */
export async function* inOrder<J, R>(
  jobs: AsyncGenerator<J, void, undefined>,
  run: (job: J) => Promise<R>,
  { busy, ahead, signal }: PoolLimits,
): AsyncGenerator<R, void, undefined> {
  const line: { readonly outcome: Promise<R>; ended: boolean }[] = [];
  let running = 0;
  let more = true;
  let change = Promise.withResolvers<void>();
  const wake = (): void => change.resolve();
  signal?.addEventListener('abort', wake);
  try {
    while (signal?.aborted !== true) {
      while (more && running < busy() && line.length < ahead) {
        const next = await jobs.next();
        if (next.done === true) {
          more = false;
          break;
        }
        running += 1;
        const place = { outcome: run(next.value), ended: false };
        line.push(place);
        const ended = (): void => {
          place.ended = true;
          running -= 1;
          wake();
        };
        place.outcome.then(ended, ended);
      }
      const [head] = line;
      if (head === undefined) return;
      if (head.ended) {
        line.shift();
        yield await head.outcome;
      } else {
        await change.promise;
        change = Promise.withResolvers<void>();
      }
    }
  } finally {
    signal?.removeEventListener('abort', wake);
    await jobs.return();
  }
}
