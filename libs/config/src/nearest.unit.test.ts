import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from './nearest.ts';

describe('the nearest name', () => {
  it('counts insertions, deletions, replacements and swaps of neighbours', () => {
    expect(editDistance('', 'abc')).toBe(3);
    expect(editDistance('cooldwon', 'cooldown')).toBe(1);
    expect(editDistance('treshold', 'threshold')).toBe(1);
    expect(editDistance('kitten', 'sitting')).toBe(3);
  });

  it('is a distance: zero only for equal words, the same both ways', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b) === 0).toBe(a === b);
      }),
    );
  });

  it('finds the name that was meant, and none when none is close', () => {
    const known = ['evaluation_interval', 'cooldown', 'instance_cooldown'];
    expect(nearest('evaluation-intervall', known)).toBe('evaluation_interval');
    expect(nearest('CoolDown', known)).toBe('cooldown');
    expect(nearest('weather', known)).toBeNull();
  });
});
