import { Worker } from 'node:worker_threads';
import { orderThread } from '@kronos/cycle';
import type { Orders, WorkKind, WorkOrder } from './work.ts';

/** Work that would hold up the event loop, done in a thread that is started when there is some. */
export type Aside = {
  run<K extends WorkKind>(kind: K, ask: Orders[K]['ask']): Promise<Orders[K]['answer']>;
  /** Called when a thread has ended: what it knew is lost. */
  onEnd(listener: () => void): void;
  close(): Promise<void>;
};

const NAME = "the ledger's thread";

/** Orders are done one after the other. A thread that ends takes its open orders with it; the next order starts another. */
export function createAside(): Aside {
  const listeners: (() => void)[] = [];
  const thread = orderThread<WorkOrder, Orders[WorkKind]['answer']>({
    start() {
      const worker = new Worker(new URL('./thread.ts', import.meta.url));
      // A ledger that stops does not wait for it.
      worker.unref();
      return worker;
    },
    name: NAME,
    unpack: (problem) => new Error(`${NAME}: ${problem}`),
    onEnd() {
      for (const listener of listeners) listener();
    },
  });
  return {
    onEnd(listener) {
      listeners.push(listener);
    },
    run: (kind, ask) => thread.ask({ kind, ...ask } as WorkOrder) as Promise<never>,
    close: thread.close,
  };
}
