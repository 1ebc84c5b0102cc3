import { describe, expect, it } from 'vitest';
import { aggregateCooldown, type CooldownFacts, instanceCooldown, recentMoves } from './cooldown.ts';

const DAY = 86_400;
const s = (seconds: number): number => seconds * 1000;

describe('the aggregate cooldown', () => {
  const options = { cooldownSeconds: 600 };
  const none: CooldownFacts = { lastRelease: null, lastRefusal: null, waiting: null };
  const released = { ...none, lastRelease: { planId: 'a', atMs: s(10) } };

  it('acts: after a release, a rejection, a recorded expiry and one that no decision has recorded yet', () => {
    expect(aggregateCooldown(released, s(609), options)).toEqual({
      cause: 'released',
      planId: 'a',
      sinceMs: s(10),
      untilMs: s(610),
    });
    for (const how of ['rejected', 'expired'] as const) {
      const facts = { ...none, lastRefusal: { planId: 'b', atMs: s(30), how } };
      expect(aggregateCooldown(facts, s(31), options)).toMatchObject({ cause: how, untilMs: s(630) });
    }
    const waiting = { planId: 'c', proposedAtMs: s(40), approvalTtlSeconds: 100 };
    expect(aggregateCooldown({ ...none, waiting }, s(141), options)).toEqual({
      cause: 'expired',
      planId: 'c',
      sinceMs: s(140),
      untilMs: s(740),
    });
  });

  it('acts: of several causes by the newest, of equal ones by the release', () => {
    const both = { ...released, lastRefusal: { planId: 'b', atMs: s(20), how: 'rejected' as const } };
    expect(aggregateCooldown(both, s(30), options)).toMatchObject({ cause: 'rejected', untilMs: s(620) });
    const equal = { ...released, lastRefusal: { planId: 'b', atMs: s(10), how: 'rejected' as const } };
    expect(aggregateCooldown(equal, s(30), options)?.cause).toBe('released');
  });

  it('refuses: a plan that still waits for approval starts none', () => {
    const waiting = { planId: 'c', proposedAtMs: s(40), approvalTtlSeconds: 100 };
    expect(aggregateCooldown({ ...none, waiting }, s(140), options)).toBeNull();
  });

  it('does nothing: when it has ended, with a cooldown of 0 and without a plan', () => {
    expect(aggregateCooldown(released, s(610), options)).toBeNull();
    expect(aggregateCooldown(released, s(10), { cooldownSeconds: 0 })).toBeNull();
    expect(aggregateCooldown(none, s(10), options)).toBeNull();
  });
});

describe('the instance cooldown', () => {
  const options = { instanceCooldownSeconds: 600, adaptiveCooldownFactor: 2 };

  it('acts: for instance_cooldown after the last release', () => {
    expect(instanceCooldown([s(10)], s(609), options)).toBe(s(610));
  });

  it('acts: it grows by each other release in the day before the last, in any order', () => {
    expect(instanceCooldown([s(100), s(0), s(50)], s(100), options)).toBe(s(100 + 2400));
    expect(instanceCooldown([s(0), s(DAY + 1)], s(DAY + 1), options)).toBe(s(DAY + 1 + 600));
  });

  it('refuses: the growth stops at a day, and no cooldown is longer than 7 days', () => {
    const eager = { instanceCooldownSeconds: 600, adaptiveCooldownFactor: 1000 };
    expect(instanceCooldown([0, 0, 0], 0, eager)).toBe(s(DAY));
    const long = { instanceCooldownSeconds: 2 * DAY, adaptiveCooldownFactor: 2 };
    expect(instanceCooldown([0, 0], 0, long)).toBe(s(2 * DAY));
    expect(instanceCooldown([0], 0, { instanceCooldownSeconds: 90 * DAY, adaptiveCooldownFactor: 1 })).toBe(s(7 * DAY));
  });

  it('does nothing: when it has ended, and for a VM that was never released', () => {
    expect(instanceCooldown([s(10)], s(610), options)).toBeNull();
    expect(instanceCooldown([], 0, options)).toBeNull();
  });
});

describe('the recent moves of a VM', () => {
  it('acts: those of the day up to the last one, in any order', () => {
    expect(recentMoves([s(100), s(0), s(50)], s(100))).toBe(3);
    expect(recentMoves([s(0), s(DAY + 1)], s(2 * DAY))).toBe(1);
  });

  it('refuses: none count when the last one is a week old', () => {
    expect(recentMoves([s(0), s(10)], s(7 * DAY + 9))).toBe(2);
    expect(recentMoves([s(0), s(10)], s(7 * DAY + 10))).toBe(0);
  });

  it('does nothing: for a VM that was never moved', () => {
    expect(recentMoves([], 0)).toBe(0);
  });
});
