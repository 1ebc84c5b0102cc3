import type { Reading } from './task.ts';

export interface Clock {
  read(): Reading;
  /** Resolves after `ms`, or as soon as a signal aborts. */
  sleep(ms: number, ...signals: readonly AbortSignal[]): Promise<void>;
}

export const systemClock: Clock = {
  read: () => ({ mono: performance.now(), wall: Date.now() }),
  sleep: (ms, ...signals) =>
    new Promise((resolve) => {
      if (signals.some((signal) => signal.aborted)) return resolve();
      const end = (): void => {
        clearTimeout(timer);
        for (const signal of signals) signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      for (const signal of signals) signal.addEventListener('abort', end, { once: true });
    }),
};
