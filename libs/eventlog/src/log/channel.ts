/** A channel between a callback and an iteration: pushed to on one side, iterated once on the other. */
export class Channel<T> implements AsyncIterableIterator<T, undefined> {
  #items: T[] = [];
  #head = 0;
  #ended = false;
  #error: Error | null = null;
  #waiting: PromiseWithResolvers<IteratorResult<T, undefined>>[] = [];
  readonly #onTake: (() => void) | undefined;
  readonly #onReturn: (() => void) | undefined;

  /**
   * @param on.take called after an item was taken
   * @param on.return called once, when the iteration is left or has come to its end
   */
  constructor(on: { take?: () => void; return?: () => void } = {}) {
    this.#onTake = on.take;
    this.#onReturn = on.return;
  }

  /** Items that wait to be taken. */
  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    if (this.#ended) return;
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#items.push(item);
    else {
      this.#onTake?.();
      waiting.resolve({ value: item, done: false });
    }
  }

  /** Ends the iteration, or makes it throw the error, after it has handed out the rest of the channel. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error ?? null;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const w of waiting) this.#finish().then(w.resolve, w.reject);
  }

  async #finish(): Promise<IteratorResult<T, undefined>> {
    const error = this.#error;
    this.#error = null;
    this.#onReturn?.();
    if (error !== null) throw error;
    return { value: undefined, done: true };
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#head < this.#items.length) {
      const value = this.#items[this.#head] as T;
      this.#head++;
      if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
        this.#items = this.#items.slice(this.#head);
        this.#head = 0;
      }
      this.#onTake?.();
      return Promise.resolve({ value, done: false });
    }
    if (this.#ended) return this.#finish();
    const waiting = Promise.withResolvers<IteratorResult<T, undefined>>();
    this.#waiting.push(waiting);
    return waiting.promise;
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#items = [];
    this.#head = 0;
    this.end();
    this.#error = null;
    this.#onReturn?.();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
