import type { Clock } from '@kronos/clock';

/** Wakes one waiter; called while nobody waits, it wakes the next one at once. */
export class WakeUp {
  #wake: (() => void) | null = null;
  #called = false;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  call(): void {
    this.#called = true;
    this.#wake?.();
  }

  async wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    if (!this.#called && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = (): void => resolve();
      const cancel = this.#clock.after(milliseconds, wake);
      signal.addEventListener('abort', wake);
      this.#wake = wake;
      await promise;
      cancel();
      signal.removeEventListener('abort', wake);
      this.#wake = null;
    }
    this.#called = false;
  }
}
