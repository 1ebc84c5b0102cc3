import { describe, expect, it } from 'vitest';
import { instances, ratios, reached, recorded, shares } from './guard.ts';

/** Figures are counted, not measured, so a difference above rounding is real. */
const ROUNDING = 1e-9;

describe('the planner does no worse than recorded in test/bench/recorded.json', () => {
  const last = recorded();

  for (const instance of instances) {
    const known = last.optima[instance.name];
    if (known !== undefined)
      it(`${instance.name}: as close to the proven optimum`, () => {
        const combined = reached(instance);
        expect(combined).toBeLessThanOrEqual(known.search + ROUNDING);
        // The optimum is proven to 1e-7.
        expect(combined).toBeGreaterThanOrEqual(known.optimum - 1e-6);
      });
  }

  it('as large a share of the possible', () => {
    const today = shares();
    expect(Object.keys(today)).toEqual(Object.keys(last.shares));
    for (const [name, share] of Object.entries(today))
      expect([name, share >= (last.shares[name] ?? 0) - ROUNDING]).toEqual([name, true]);
  });

  it('as little to look at', () => {
    const today = ratios();
    expect(Object.keys(today)).toEqual(Object.keys(last.ratios));
    for (const [name, ratio] of Object.entries(today))
      expect([name, ratio <= (last.ratios[name] ?? 0) + ROUNDING]).toEqual([name, true]);
  });
});
