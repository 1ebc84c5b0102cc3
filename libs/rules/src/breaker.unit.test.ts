import { describe, expect, it } from 'vitest';
import { hostBreaker } from './breaker.ts';

const s = (seconds: number): number => seconds * 1000;

describe('the host breaker', () => {
  const options = { breakerFailures: 2, breakerWindowSeconds: 100, breakerDurationSeconds: 500 };

  it('acts: enough failures within the window exclude the host, counted from the last of them', () => {
    expect(hostBreaker([s(10), s(110)], s(111), options)).toBe(s(610));
  });

  it('acts: in any order of the failures', () => {
    expect(hostBreaker([s(100), s(10)], s(101), options)).toBe(s(600));
  });

  it('acts: a later failure that alone is too few does not end it early', () => {
    expect(hostBreaker([s(10), s(20), s(300)], s(310), options)).toBe(s(520));
  });

  it('refuses: too few failures, or enough of them over a longer time', () => {
    expect(hostBreaker([s(10)], s(11), options)).toBeNull();
    expect(hostBreaker([s(10), s(111)], s(112), options)).toBeNull();
  });

  it('does nothing: when it has ended, and without a failure', () => {
    expect(hostBreaker([s(10), s(20)], s(520), options)).toBeNull();
    expect(hostBreaker([], 0, options)).toBeNull();
  });
});
