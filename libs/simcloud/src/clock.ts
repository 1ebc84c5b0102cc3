/** Milliseconds since 1970, UTC. The simulated cloud reads time here and nowhere else. */
export interface SimClock {
  now(): number;
}

export const realClock: SimClock = { now: () => Date.now() };

/** A clock that moves only when a test moves it. */
export interface ManualClock extends SimClock {
  advance(ms: number): void;
  set(ms: number): void;
}

/** A manual clock; it starts at 2026-01-01T00:00:00Z unless told otherwise. */
export function manualClock(startMs: number = Date.UTC(2026, 0, 1)): ManualClock {
  let at = startMs;
  return {
    now: () => at,
    advance: (ms) => {
      at += ms;
    },
    set: (ms) => {
      at = ms;
    },
  };
}
