import { describe, expect, it } from 'vitest';
import { ratioText, worstRatio } from './ratio.ts';

describe('the ratio of an aggregate', () => {
  it('is that of the policy that is farthest above its own threshold', () => {
    const policies = [
      { policy: 'p', imbalance: 0.3, threshold: 0.3 },
      { policy: 'p', imbalance: 0.166, threshold: 0.1 },
    ];
    expect(ratioText(worstRatio(policies))).toBe('1.66x');
  });

  it('leaves out a policy without an imbalance, and one without a threshold', () => {
    const policies = [
      { policy: 'p', imbalance: null, threshold: 0.1 },
      { policy: 'p', imbalance: 0.5, threshold: 0 },
      { policy: 'p', imbalance: 0.05, threshold: 0.1 },
    ];
    expect(worstRatio(policies)).toBe(0.5);
  });

  it('is at most 1 for a policy that does not act, however unlike the hosts are', () => {
    const policies = [
      { policy: 'p', imbalance: 0.5, threshold: 0.1, acts: false },
      { policy: 'p', imbalance: 0.04, threshold: 0.1 },
    ];
    expect(ratioText(worstRatio(policies))).toBe('1.00x');
    expect(worstRatio(policies.map((one) => ({ ...one, acts: true })))).toBe(5);
  });

  it('is unknown where no policy has an imbalance', () => {
    expect([worstRatio([]), ratioText(worstRatio([{ policy: 'p', imbalance: null, threshold: 0.1 }]))]).toEqual([
      null,
      '',
    ]);
  });
});
