/** An executor works on tasks that may be poison messages one at a time. */
import { type StoredEvent, timeOf } from '@kronos/contracts';

/** Gives the turn back. */
export type GiveBack = () => void;

interface Waiter {
  readonly enter: (leave: GiveBack) => void;
}

/** One turn per process. Tasks that Nova already works on go first. */
export class Trials {
  readonly #started: Waiter[] = [];
  readonly #others: Waiter[] = [];
  #taken = false;

  /** Waits for the turn; null when one of the signals came first. */
  turn({ started }: { readonly started: boolean }, ...signals: readonly AbortSignal[]): Promise<GiveBack | null> {
    if (signals.some((signal) => signal.aborted)) return Promise.resolve(null);
    return new Promise((resolve) => {
      const queue = started ? this.#started : this.#others;
      const stop = (): void => {
        queue.splice(queue.indexOf(waiter), 1);
        done(null);
      };
      const done = (leave: GiveBack | null): void => {
        for (const signal of signals) signal.removeEventListener('abort', stop);
        resolve(leave);
      };
      const waiter: Waiter = { enter: done };
      for (const signal of signals) signal.addEventListener('abort', stop, { once: true });
      queue.push(waiter);
      this.#next();
    });
  }

  #next(): void {
    if (this.#taken) return;
    const waiter = this.#started.shift() ?? this.#others.shift();
    if (waiter === undefined) return;
    this.#taken = true;
    let left = false;
    waiter.enter(() => {
      if (left) return;
      left = true;
      this.#taken = false;
      this.#next();
    });
  }
}

/** Number of starts in a row of an attempt without a note of survival, and the last one's time, by the log from its release on. */
export async function triesOf(
  events: AsyncIterable<StoredEvent>,
  taskId: string,
  attempt: number,
): Promise<{ readonly tries: number; readonly atMs: number }> {
  let last = { tries: 0, atMs: 0 };
  for await (const stored of events) {
    const { event } = stored;
    if (event.type === 'migration.suspected' && event.data.taskId === taskId && event.data.attempt === attempt)
      last = { tries: event.data.tries, atMs: timeOf(stored) };
  }
  return last;
}
