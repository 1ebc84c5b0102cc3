/** The expected duration of moves, learnt from former moves. */

/** A move that ended: its duration and its size. */
export type MoveTime = {
  /** From its start on the log to its end on the log, ms. */
  readonly ms: number;
  /** RAM and local disk of the server, GiB. */
  readonly gib: number;
};

/** RAM (MiB) and local disk (GiB) of a server, as GiB that its move copies. */
export const gibOfMove = ({ ramMb, diskGb }: { readonly ramMb: number; readonly diskGb: number }): number =>
  ramMb / 1024 + diskGb;

/** The fixed cost of a move, as GiB of copying. */
const FIXED_GIB = 2;
/** The share of moves that the interval covers. */
export const PACE_COVERAGE = 0.9;
/** With fewer moves no two of them enclose this share of the next ones. */
const LEAST_FOR_INTERVAL = Math.ceil((1 + PACE_COVERAGE) / (1 - PACE_COVERAGE) - 1e-9);
/** With fewer moves even a median says nothing. */
const LEAST_FOR_MEDIAN = 3;
/** The newest moves count, because links and loads change: of a source and a destination, and of an aggregate or of all. */
export const PACES_OF_PAIR = 39;
export const PACES_KEPT = 99;

/** Paces of former moves, oldest first, as {@link paceOfMove} gives them. */
export type FormerPaces = {
  /** Of moves from the same source to the same destination. */
  readonly pair: readonly number[];
  /** Of moves in the same aggregate. */
  readonly aggregate: readonly number[];
  /** Of moves in any aggregate. */
  readonly all: readonly number[];
};

/** How fast the next move will be. */
export type Pace = {
  /** Which moves it was learnt from. */
  readonly of: keyof FormerPaces;
  /** Number of paces. */
  readonly moves: number;
  /** ms per GiB, where a move has {@link FIXED_GIB} more GiB than it copies: the median. */
  readonly median: number;
  /**
   * {@link PACE_COVERAGE} of the next moves are between these; null where too few are known. The interval is between order
   * statistics, so it makes no assumption about the distribution: of n moves like it, the next one is below the i-th lowest
   * with the probability i / (n + 1).
   */
  readonly interval: { readonly low: number; readonly high: number } | null;
};

/** The pace of one move, ms per GiB; null for a move that says nothing. */
export function paceOfMove({ ms, gib }: MoveTime): number | null {
  if (!(ms > 0 && gib >= 0 && Number.isFinite(ms) && Number.isFinite(gib))) return null;
  return Math.round(ms / (gib + FIXED_GIB));
}

/**
 * The pace of the next move from a source to a destination: that of the pair where enough of its moves are known for an interval, else
 * that of the aggregate, else that of all; with too few for an interval, the median of the aggregate or of all.
 *
 * @returns null where fewer than three moves are known: then nothing is
 */
export function paceOf(former: FormerPaces): Pace | null {
  const scopes = ['pair', 'aggregate', 'all'] as const;
  const enough = scopes.find((scope) => former[scope].length >= LEAST_FOR_INTERVAL);
  if (enough !== undefined) return paceFrom(enough, former[enough]);
  const some = scopes.find((scope) => scope !== 'pair' && former[scope].length >= LEAST_FOR_MEDIAN);
  return some === undefined ? null : paceFrom(some, former[some]);
}

function paceFrom(of: Pace['of'], paces: readonly number[]): Pace {
  const sorted = paces.toSorted((a, b) => a - b);
  const n = sorted.length;
  /** The order statistic at a position from 1 to n, between two of them in proportion. */
  const at = (position: number): number => {
    const below = Math.min(n, Math.max(1, Math.floor(position)));
    const low = sorted[below - 1] ?? 0;
    const high = sorted[Math.min(n, below + 1) - 1] ?? low;
    return low + (high - low) * Math.min(1, Math.max(0, position - below));
  };
  const tail = (1 - PACE_COVERAGE) / 2;
  const interval = n < LEAST_FOR_INTERVAL ? null : { low: at(tail * (n + 1)), high: at((1 - tail) * (n + 1)) };
  return { of, moves: n, median: at((n + 1) / 2), interval };
}

/** A duration in ms. The interval is null where too few moves are known for one. */
export type Duration = {
  readonly expectedMs: number;
  readonly interval: { readonly lowMs: number; readonly highMs: number } | null;
};

/** The pace while too few moves are known, ms per GiB: that of a link that carries 100 MiB/s. */
export const ASSUMED_MS_PER_GIB = 10_000;

/** A duration that is always known. `measured`: by the pace of former moves; otherwise by {@link ASSUMED_MS_PER_GIB}. */
export type Estimate = Duration & { readonly measured: boolean };

/** The duration by former moves where enough of them are known, else by the assumed pace. */
export const estimateOf = (measured: Duration | null, gib: number): Estimate =>
  measured === null
    ? { ...durationOf({ median: ASSUMED_MS_PER_GIB, interval: null }, gib), measured: false }
    : { ...measured, measured: true };

/** The duration of a move of this size at a pace. */
export function durationOf({ median, interval }: Pick<Pace, 'median' | 'interval'>, gib: number): Duration {
  const ms = (pace: number): number => Math.round(pace * (gib + FIXED_GIB));
  return {
    expectedMs: ms(median),
    interval: interval === null ? null : { lowMs: ms(interval.low), highMs: ms(interval.high) },
  };
}

/**
 * The duration of moves that follow each other. The ends of the interval are the sums of the moves' ends, as if all of them were slow
 * together: at least {@link PACE_COVERAGE} of such sequences are within it. It is measured where that of each of them is.
 */
export function inSequence(moves: readonly Estimate[]): Estimate {
  let expectedMs = 0;
  let [lowMs, highMs] = [0, 0];
  let whole = true;
  for (const move of moves) {
    expectedMs += move.expectedMs;
    if (move.interval === null) whole = false;
    lowMs += move.interval?.lowMs ?? 0;
    highMs += move.interval?.highMs ?? 0;
  }
  return { expectedMs, interval: whole ? { lowMs, highMs } : null, measured: moves.every(({ measured }) => measured) };
}
