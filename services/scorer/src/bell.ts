import type { Clock } from '@kronos/clock';

/** Wakes one waiter; a ring while nobody waits wakes the next one at once. */
export class Bell {
  #wake: (() => void) | null = null;
  #rung = false;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  async wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
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
    this.#rung = false;
  }
}
