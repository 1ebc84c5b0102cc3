import { worstOf } from '@kronos/projections';
import { describe, expect, it } from 'vitest';

const { ratioAfter, ratioOf, worstPolicy, worstText } = await import(new URL('./ratio.js', import.meta.url).href);

const up = { state: 'up', status: 'enabled', forcedDown: false };
const policy = (more: object) => ({
  policy: 'cpu',
  participates: true,
  detected: true,
  threshold: 0.2,
  imbalance: 0.4,
  ...more,
});

describe('a ratio of the console', () => {
  it('is the imbalance as a multiple of the threshold', () => {
    expect(ratioOf(policy({}))).toBe(2);
    expect(ratioOf(policy({}), 0.1)).toBe(0.5);
  });

  it('is unknown of a policy that takes no part, has no value or no threshold', () => {
    expect(ratioOf(policy({ participates: false }))).toBe(null);
    expect(ratioOf(policy({ imbalance: null }))).toBe(null);
    expect(ratioOf(policy({ threshold: 0 }))).toBe(null);
  });

  it('is at most 1 of a policy that sees its imbalance and does not act', () => {
    const quiet = policy({ detected: false, imbalance: 1 });
    expect(ratioOf(quiet)).toBe(1);
    expect(ratioOf(quiet, 0.1)).toBe(0.5);
    expect(worstPolicy([quiet, policy({ imbalance: 0.3 })])).toBe(1);
  });

  it('is the one of the command line', () => {
    for (const participates of [true, false])
      for (const detected of [true, false])
        for (const imbalance of [null, 0, 0.1, 0.2, 0.7])
          for (const threshold of [0, 0.2]) {
            const one = policy({ participates, detected, imbalance, threshold });
            expect(ratioOf(one), JSON.stringify(one)).toBe(worstOf([one])?.ratio ?? null);
          }
  });

  it('has the name of its policy', () => {
    const policies = [policy({ imbalance: 0.3 }), policy({ policy: 'memory' })];
    expect(worstText(policies)).toBe('memory 2.00×');
    expect(worstText(policies, [0.8, null])).toBe('cpu 0.80×');
    expect([worstText([]), worstText(policies, [null, null])]).toEqual(['', '']);
  });

  it('after a plan counts only hosts that can be destinations', () => {
    const picture = {
      policies: [policy({ imbalance: 0.5 })],
      hosts: [
        { name: 'a', service: up, values: [0.6] },
        { name: 'b', service: up, values: [0.1] },
        { name: 'c', service: { ...up, status: 'disabled' }, values: [0] },
      ],
    };
    const step = { from: 'a', to: 'b', weights: { cpu: { source: 0.2, destination: 0.2 } } };
    expect(ratioAfter(picture, [])).toEqual({ ratio: 2.5, ratios: [2.5], above: ['cpu'] });
    const after = ratioAfter(picture, [step]);
    expect([after.ratio.toFixed(6), after.above]).toEqual(['0.500000', []]);
  });
});
