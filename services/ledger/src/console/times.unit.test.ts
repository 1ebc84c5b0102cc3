import { planTime, stepTime } from '@kronos/projections';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const { copiedMb, together } = await import(new URL('./times.js', import.meta.url).href);

const move = fc.record({
  from: fc.constantFrom('a', 'b', 'c'),
  to: fc.constant('d'),
  ramMb: fc.integer({ min: 0, max: 65_536 }),
  diskGb: fc.integer({ min: 0, max: 100 }),
});

describe('the time of moves in the console', () => {
  it('of a whole plan is what the ledger says', () => {
    fc.assert(
      fc.property(fc.array(move, { maxLength: 8 }), fc.array(fc.integer({ min: 1, max: 90_000 })), (steps, paces) => {
        const state = { paces, pairPaces: new Map() };
        const times = steps.map((step) => stepTime(state, step, paces));
        expect(together(steps, (step: (typeof steps)[number]) => times[steps.indexOf(step)])).toEqual(
          planTime(state, steps, paces),
        );
      }),
    );
  });

  it('of moves off two hosts is that of the slower host', () => {
    const took = { expectedMs: 60_000, interval: null, measured: false };
    const [a, b] = [{ from: 'a' }, { from: 'b' }];
    expect(together([a, b], () => took)).toEqual(took);
    expect(together([a, a, b], () => took)).toEqual({ ...took, expectedMs: 120_000 });
    expect(together([], () => took)).toBeNull();
  });

  it('counts the local disk with the memory', () => {
    expect(copiedMb({ ramMb: 2048, diskGb: 20 })).toBe(22_528);
  });
});
