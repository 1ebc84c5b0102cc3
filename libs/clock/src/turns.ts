/** Acts with the same key come one after the other, in the order given, whatever became of those before. */
export class Turns {
  /** By key, the end of the last act; it never rejects. */
  readonly #last = new Map<string, Promise<void>>();

  async take<T>(key: string, act: () => Promise<T>): Promise<T> {
    const work = (this.#last.get(key) ?? Promise.resolve()).then(act);
    const end = work.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, end);
    try {
      return await work;
    } finally {
      if (this.#last.get(key) === end) this.#last.delete(key);
    }
  }
}
