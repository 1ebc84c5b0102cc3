import { parentPort, type Worker } from 'node:worker_threads';

/** A thread that carries out orders, one after the other. It starts with the first of them. */
export type OrderThread<O, A> = {
  /**
   * @param begun called when the thread begins with the order: it has started, and has carried out those before it
   * @throws the error of the order; and when the thread ends, which takes its open orders with it: the next order starts another thread
   */
  readonly ask: (order: O, begun?: () => void) => Promise<A>;
  /** Ends the thread; open orders are rejected. */
  readonly close: () => Promise<void>;
};

export type OrderThreadOptions = {
  /** Starts the thread, whose program calls {@link answerOrders}. */
  readonly start: () => Worker;
  /** Names the thread in the error of the orders that it takes with it. */
  readonly name: string;
  /** Makes an error of what `answerOrders` sent. Default: with its text as the message. */
  readonly unpack?: (failed: unknown) => Error;
  /** Called when a thread has ended: what it knew is lost. */
  readonly onEnd?: (error: Error) => void;
};

type Asked<O> = { readonly number: number; readonly order: O };
type Answered<A> = { readonly number: number } & (
  | { readonly begun: true }
  | { readonly answer: A }
  | { readonly failed: unknown }
);
type Open<A> = PromiseWithResolvers<A> & { readonly begun: (() => void) | undefined };

type Running<A> = {
  readonly worker: Worker;
  /** By number: the orders that the thread has not answered. */
  readonly open: Map<number, Open<A>>;
  readonly end: (error: Error) => void;
};

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

/** A thread that answers orders. It starts with its first order, and again after a crash. */
export function orderThread<O, A>(options: OrderThreadOptions): OrderThread<O, A> {
  const { name, unpack = (failed) => new Error(String(failed)), onEnd } = options;
  const ended = (): Error => new Error(`${name} ended`);
  let number = 0;
  let running: Running<A> | null = null;

  function start(): Running<A> {
    const worker = options.start();
    const own: Running<A> = {
      worker,
      open: new Map(),
      end(error) {
        if (running !== own) return;
        running = null;
        for (const { reject } of own.open.values()) reject(error);
        onEnd?.(error);
      },
    };
    worker.on('message', (answered: Answered<A>) => {
      const asked = own.open.get(answered.number);
      if ('begun' in answered) {
        asked?.begun?.();
        return;
      }
      own.open.delete(answered.number);
      if ('failed' in answered) asked?.reject(unpack(answered.failed));
      else asked?.resolve(answered.answer);
    });
    worker.on('error', (error) => own.end(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => own.end(ended()));
    running = own;
    return own;
  }

  return {
    ask(order, begun) {
      const { worker, open } = running ?? start();
      number += 1;
      const asked = Promise.withResolvers<A>();
      open.set(number, { ...asked, begun });
      worker.postMessage({ number, order } satisfies Asked<O>);
      return asked.promise;
    },
    async close() {
      const last = running;
      // First, so that no answer on its way resolves one of them.
      last?.end(ended());
      await last?.worker.terminate();
    },
  };
}

/** The program of such a thread. `pack` makes something of an error that can be sent. Default: its stack. */
export function answerOrders<O, A>(carryOut: (order: O) => A, pack: (error: unknown) => unknown = textOf): void {
  parentPort?.on('message', ({ number, order }: Asked<O>) => {
    parentPort?.postMessage({ number, begun: true } satisfies Answered<A>);
    let answered: Answered<A>;
    try {
      answered = { number, answer: carryOut(order) };
    } catch (error) {
      answered = { number, failed: pack(error) };
    }
    parentPort?.postMessage(answered);
  });
}
