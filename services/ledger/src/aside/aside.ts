import { Worker } from 'node:worker_threads';
import type { Kind, Order, Orders } from './hand.ts';

export type Request = { readonly number: number; readonly order: Order };
export type Reply = { readonly number: number } & (
  | { readonly answer: Orders[Kind]['answer'] }
  | { readonly problem: string }
);

/** Work that would hold up the event loop, done in a thread that is started when there is some. */
export type Aside = {
  run<K extends Kind>(kind: K, ask: Orders[K]['ask']): Promise<Orders[K]['answer']>;
  /** Called when a thread has ended: what it knew is lost. */
  onEnd(listener: () => void): void;
  close(): Promise<void>;
};

/** Orders are done one after the other. A thread that ends takes its open orders with it; the next order starts another. */
export function createAside(): Aside {
  const listeners: (() => void)[] = [];
  let number = 0;
  let running: { readonly worker: Worker; readonly open: Map<number, PromiseWithResolvers<never>> } | null = null;

  function start() {
    const worker = new Worker(new URL('./thread.ts', import.meta.url));
    // A ledger that stops does not wait for it.
    worker.unref();
    const own = { worker, open: new Map<number, PromiseWithResolvers<never>>() };
    const end = (error: Error): void => {
      if (running === own) running = null;
      for (const { reject } of own.open.values()) reject(error);
      own.open.clear();
      for (const listener of listeners) listener();
    };
    worker.on('message', (reply: Reply) => {
      const asked = own.open.get(reply.number);
      own.open.delete(reply.number);
      if ('problem' in reply) asked?.reject(new Error(`the ledger's thread: ${reply.problem}`));
      else asked?.resolve(reply.answer as never);
    });
    worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => end(new Error("the ledger's thread ended")));
    running = own;
    return own;
  }

  return {
    onEnd(listener) {
      listeners.push(listener);
    },
    run(kind, ask) {
      const { worker, open } = running ?? start();
      number++;
      const asked = Promise.withResolvers<never>();
      open.set(number, asked);
      worker.postMessage({ number, order: { kind, ...ask } } as Request);
      return asked.promise;
    },
    async close() {
      await running?.worker.terminate();
    },
  };
}
