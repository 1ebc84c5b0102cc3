/** The only access to time. Services and libraries take a {@link Clock} as an argument; tests and the simulation give their own. */

/** Both clocks at one moment. */
interface Reading {
  /** Monotonic clock, ms from an arbitrary start. It never steps. */
  readonly mono: number;
  /** Wall clock, ms since the epoch. It may step, and differ from other machines' clocks. */
  readonly wall: number;
}

/** Stops a timer. Without effect when the timer has fired or was stopped before. */
export type Cancel = () => void;
export interface Clock {
  read(): Reading;
  /** Wall clock, ms since the epoch. */
  now(): number;
  /** Monotonic clock, ms. */
  monotonic(): number;
  /** Calls `act` once, after `ms`. */
  after(ms: number, act: () => void): Cancel;
  /** Calls `act` every `ms`. */
  every(ms: number, act: () => void): Cancel;
  /** Calls `act` once what runs now, and everything that is ready, has run. */
  soon(act: () => void): Cancel;
  /** Resolves after `ms`, or as soon as a signal aborts. */
  sleep(ms: number, ...signals: readonly AbortSignal[]): Promise<void>;
}

/** Makes `sleep` of a timer. */
export const sleepWith =
  (after: Clock['after']): Clock['sleep'] =>
  (ms, ...signals) =>
    new Promise((resolve) => {
      if (signals.some((signal) => signal.aborted)) return resolve();
      const end = (): void => {
        cancel();
        for (const signal of signals) signal.removeEventListener('abort', end);
        resolve();
      };
      const cancel = after(ms, end);
      for (const signal of signals) signal.addEventListener('abort', end, { once: true });
    });

const after: Clock['after'] = (ms, act) => {
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
};

/** The clocks and timers of this machine. */
export const systemClock: Clock = {
  read: () => ({ mono: performance.now(), wall: Date.now() }),
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after,
  every(ms, act) {
    const timer = setInterval(act, ms);
    return () => clearInterval(timer);
  },
  soon(act) {
    const timer = setImmediate(act);
    return () => clearImmediate(timer);
  },
  sleep: sleepWith(after),
};

/** A limit on the time of an act: its signal aborts with a TimeoutError after `ms`. `clear` ends the timer. */
export interface Limit {
  readonly signal: AbortSignal;
  readonly clear: Cancel;
}
export function limit(clock: Pick<Clock, 'after'>, ms: number): Limit {
  const controller = new AbortController();
  const clear = clock.after(ms, () => controller.abort(new DOMException(`no end within ${ms} ms`, 'TimeoutError')));
  return { signal: controller.signal, clear };
}

/** The value of the promise, or the error that `late` makes when there is none within `ms`. */
export async function within<T>(
  clock: Pick<Clock, 'after'>,
  promise: Promise<T>,
  ms: number,
  late: () => Error,
): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => reject(late()));
  try {
    return await Promise.race([promise, over]);
  } finally {
    cancel();
  }
}
