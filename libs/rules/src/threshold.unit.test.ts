import { describe, expect, it } from 'vitest';
import { EPSILON, highestAllowed, isAbove, isWorse, ratioOf } from './threshold.ts';

describe('an imbalance above its threshold', () => {
  it('acts: above it', () => expect(isAbove(0.2001, 0.2)).toBe(true));
  it('refuses: a difference that is rounding', () => expect(isAbove(0.1 + 0.2, 0.3)).toBe(false));
  it('does nothing: at and below it', () => {
    expect(isAbove(0.2, 0.2)).toBe(false);
    expect(isAbove(0, 0.2)).toBe(false);
  });
});

describe('a policy that a move makes worse than it may', () => {
  it('acts: worse than before and above the threshold', () => {
    expect(isWorse(0.31, 0.3, 0.2)).toBe(true);
    expect(isWorse(0.21, 0.1, 0.2)).toBe(true);
  });

  it('refuses: worse but within the threshold, or above it but no worse than before', () => {
    expect(isWorse(0.2, 0.1, 0.2)).toBe(false);
    expect(isWorse(0.3, 0.3, 0.2)).toBe(false);
    expect(isWorse(0.3 + EPSILON / 2, 0.3, 0.2)).toBe(false);
  });

  it('does nothing: a policy that gets better', () => expect(isWorse(0.25, 0.3, 0.2)).toBe(false));

  it('has the larger of both as its limit', () => {
    expect(highestAllowed(0.1, 0.2)).toBe(0.2 + EPSILON);
    expect(highestAllowed(0.3, 0.2)).toBe(0.3 + EPSILON);
  });
});

describe('the multiple of a threshold', () => {
  const policy = { imbalance: 0.4, threshold: 0.2, participates: true, detected: true };

  it('acts: the imbalance by the threshold', () => {
    expect(ratioOf(policy)).toBe(2);
    expect(ratioOf({ imbalance: 0.1, threshold: 0.2 })).toBe(0.5);
  });

  it('refuses: a policy that rests is at most at its threshold', () => {
    expect(ratioOf({ ...policy, detected: false })).toBe(1);
    expect(ratioOf({ ...policy, acts: false })).toBe(1);
    expect(ratioOf({ ...policy, imbalance: 0.1, acts: false })).toBe(0.5);
  });

  it('does nothing: a policy that takes no part, has no imbalance or no threshold', () => {
    for (const more of [{ participates: false }, { imbalance: null }, { threshold: 0 }])
      expect(ratioOf({ ...policy, ...more })).toBeNull();
  });
});
