import { describe, expect, it } from 'vitest';
import { type Checked, checkBound, isFalse, isTight } from './bound.ts';

describe('the lower bound', () => {
  it('is never above an optimum that an exact solver proves', { timeout: 600_000 }, async () => {
    const checked: Checked[] = [];
    for (let seed = 1; seed <= 400; seed++) {
      const one = await checkBound(seed);
      if (one !== null) checked.push(one);
    }
    expect(checked.length).toBeGreaterThan(390);
    expect(checked.filter(isFalse)).toEqual([]);
    // A bound of 0 would pass too: it has to say something.
    expect(checked.filter((one) => one.optimum > 1e-6 && isTight(one)).length).toBeGreaterThan(100);
  });
});
