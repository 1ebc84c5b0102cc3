import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationOf, estimateOf, inSequence, PACE_COVERAGE, paceOf, paceOfMove } from './pace.ts';

const of = (n: number, pace: number): number[] => Array.from({ length: n }, () => pace);
const none = { pair: [], aggregate: [], all: [] };

describe('the pace of a move', () => {
  it('is its time by what it copies and 2 GiB more, for what it takes beside', () => {
    expect(paceOfMove({ ms: 100_000, gib: 8 })).toBe(10_000);
    expect(paceOfMove({ ms: 20_000, gib: 0 })).toBe(10_000);
  });

  it.each([
    { ms: 0, gib: 8 },
    { ms: -5, gib: 8 },
    { ms: 1000, gib: -1 },
    { ms: Number.NaN, gib: 1 },
    { ms: 1000, gib: Number.POSITIVE_INFINITY },
  ])('says nothing of a move that cannot have been: %j', (move) => {
    expect(paceOfMove(move)).toBeNull();
  });
});

describe('the pace of the next move', () => {
  it('is that of its source and destination where 19 moves of them are known', () => {
    const pace = paceOf({ pair: of(19, 10_000), aggregate: of(99, 5000), all: of(99, 1000) });
    expect(pace).toEqual({ of: 'pair', moves: 19, median: 10_000, interval: { low: 10_000, high: 10_000 } });
    expect(durationOf({ median: 10_000, interval: { low: 5000, high: 20_000 } }, 8)).toEqual({
      expectedMs: 100_000,
      interval: { lowMs: 50_000, highMs: 200_000 },
    });
  });

  it('is that of the aggregate where the pair has too few, and that of all where the aggregate has too few', () => {
    const pair = of(18, 10_000);
    expect(paceOf({ pair, aggregate: of(19, 5000), all: of(99, 1000) })).toMatchObject({
      of: 'aggregate',
      median: 5000,
    });
    expect(paceOf({ pair, aggregate: of(18, 5000), all: of(19, 1000) })).toMatchObject({ of: 'all', median: 1000 });
  });

  it('has no interval where fewer than 19 are known of all, and is unknown where fewer than 3 are', () => {
    expect(paceOf({ pair: of(18, 9), aggregate: of(18, 10), all: of(18, 11) })).toEqual({
      of: 'aggregate',
      moves: 18,
      median: 10,
      interval: null,
    });
    expect(paceOf({ ...none, all: of(3, 11) })).toMatchObject({ of: 'all', interval: null });
    expect(paceOf({ pair: of(2, 9), aggregate: of(2, 9), all: of(2, 9) })).toBeNull();
    expect(paceOf(none)).toBeNull();
  });

  it('is not changed by one move that hung', () => {
    const pace = paceOf({ ...none, pair: [...of(38, 5000), 90_000_000] });
    expect(pace).toMatchObject({ median: 5000, interval: { low: 5000, high: 5000 } });
  });

  it('has an interval that covers its share of the next moves, whatever they are distributed like', () => {
    const sizes = fc.integer({ min: 20, max: 60 });
    const moves = sizes.chain((n) => fc.uniqueArray(fc.integer({ min: 1, max: 1e9 }), { minLength: n, maxLength: n }));
    fc.assert(
      fc.property(moves, (paces) => {
        // Any of them is as likely the one that follows the others.
        const covered = paces.filter((next, i) => {
          const interval = paceOf({ ...none, all: paces.toSpliced(i, 1) })?.interval;
          return interval !== null && interval !== undefined && next >= interval.low && next <= interval.high;
        });
        const share = covered.length / paces.length;
        expect(Math.abs(share - PACE_COVERAGE)).toBeLessThanOrEqual(2 / paces.length);
      }),
    );
  });
});

describe('the time of a move of which', () => {
  it('enough former ones are known is theirs', () => {
    const known = { expectedMs: 5, interval: { lowMs: 1, highMs: 9 } };
    expect(estimateOf(known, 8)).toEqual({ ...known, measured: true });
  });

  it('too few are known is that of 100 MiB/s, without an interval, and says so', () => {
    expect(estimateOf(null, 8)).toEqual({ expectedMs: 100_000, interval: null, measured: false });
    expect(estimateOf(null, 0)).toEqual({ expectedMs: 20_000, interval: null, measured: false });
  });
});

describe('moves that follow each other', () => {
  const move = estimateOf(durationOf({ median: 1000, interval: { low: 500, high: 3000 } }, 8), 8);
  it('take the sum of their times', () => {
    const interval = { lowMs: 10_000, highMs: 60_000 };
    expect(inSequence([move, move])).toEqual({ expectedMs: 20_000, interval, measured: true });
    expect(inSequence([])).toEqual({ expectedMs: 0, interval: { lowMs: 0, highMs: 0 }, measured: true });
  });

  it('have no interval where one of them has none, and are not measured where one of them is not', () => {
    const none = { expectedMs: 20_000, interval: null };
    expect(inSequence([move, { ...move, interval: null }])).toEqual({ ...none, measured: true });
    expect(inSequence([move, { ...move, interval: null, measured: false }])).toEqual({ ...none, measured: false });
  });
});
