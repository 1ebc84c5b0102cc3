import type { Clock } from '@kronos/clock';

/**
 * A time limit for several attempts, each of which ends by a timer of this process. A timer that fires late says that the
 * process did not run: it computed, was stopped, or its machine slept. It could hear no answer in that time, so that time does
 * not count.
 */
export class Deadline {
  readonly #clock: Clock;
  #atMs: number;

  /** @param ms from now on */
  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#atMs = clock.monotonic() + ms;
  }

  /** ms that are left; negative when it is over. */
  get leftMs(): number {
    return this.#atMs - this.#clock.monotonic();
  }

  /** @param limitMs after which the attempt ends by itself, when the process runs */
  async attempt<T>(limitMs: number, act: () => Promise<T>): Promise<T> {
    const dueMs = this.#clock.monotonic() + limitMs;
    let onTime = false;
    const late = () => {
      if (!onTime) this.#atMs += Math.max(0, this.#clock.monotonic() - dueMs);
      onTime = true;
    };
    const cancel = this.#clock.after(limitMs, late);
    try {
      return await act();
    } finally {
      cancel();
      late();
    }
  }
}

/** ms to wait after the given number of failed attempts, the first being 0: 25 ms, then twice as long each time. */
export const backoffMs = (tries: number, mostMs: number): number => Math.min(mostMs, 25 * 2 ** tries);
