import type { Clock } from './clock.ts';

/** The NATS server's clock, read between two moments of the own wall clock. All in ms since the epoch. */
export interface ServerReading {
  readonly beforeMs: number;
  readonly serverMs: number;
  readonly afterMs: number;
}

/**
 * By how much (ms) the own clock differs from the server's at least: above 0 it is ahead, below 0 behind, 0 where the
 * reading leaves that open. However long the reading took, the answer is never too large.
 */
export function leastSkew({ beforeMs, serverMs, afterMs }: ServerReading): number {
  if (beforeMs > serverMs) return beforeMs - serverMs;
  return Math.min(0, afterMs - serverMs);
}

/** The problem of a clock with this difference (ms); null when there is none. */
export function skewProblem(skewMs: number, maxSkewMs: number): string | null {
  if (Math.abs(skewMs) <= maxSkewMs) return null;
  const how = `${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'}`;
  return `the clock of this machine is ${how} the NATS server's, more than max_clock_skew (${maxSkewMs / 1000} s): correct the clock`;
}

/** Compares the own clock with the server's, from reading to reading. */
export interface ClockWatch {
  see(reading: ServerReading): void;
  /** As {@link leastSkew}, now: a step of the own clock since the last reading counts. Null before the first reading. */
  skewMs(): number | null;
  /** Why nothing may be decided or started by this clock; null while it is right. Unknown is not right. */
  problem(): string | null;
}

/** Compares this machine's clock with that of the NATS server. @param maxSkewMs largest difference that counts as right, ms */
export function clockWatch(clock: Pick<Clock, 'read'>, maxSkewMs: number): ClockWatch {
  let last: { readonly reading: ServerReading; readonly offsetMs: number } | null = null;
  /** Wall clock less monotonic clock: it changes when the wall clock is set, and only then. */
  const offset = (): number => {
    const { wall, mono } = clock.read();
    return wall - mono;
  };
  const skewMs = (): number | null => {
    if (last === null) return null;
    const { beforeMs, serverMs, afterMs } = last.reading;
    const stepMs = offset() - last.offsetMs;
    return leastSkew({ beforeMs: beforeMs + stepMs, serverMs, afterMs: afterMs + stepMs });
  };
  return {
    see(reading) {
      // A reading that took long and proves nothing would hide what a better one showed.
      if (reading.afterMs - reading.beforeMs > maxSkewMs && leastSkew(reading) === 0) return;
      last = { reading, offsetMs: offset() };
    },
    skewMs,
    problem() {
      const skew = skewMs();
      if (skew === null) return "the clock of this machine has not been compared with the NATS server's yet";
      return skewProblem(skew, maxSkewMs);
    },
  };
}
