import { describe, expect, it } from 'vitest';
import { decideInput } from '../testing/index.ts';
import { decide } from './decide.ts';
import type { Memory } from './snapshot/memory.ts';

const T = Date.parse('2026-01-01T12:00:00.000Z');
const before = (seconds: number): string => new Date(T - seconds * 1000).toISOString();

describe('the gate', () => {
  /** The decision at T about a cluster that needs a move, by an approval_ttl of 900 s and a cooldown of 600 s today. */
  const decided = (memory: Partial<Memory>) => {
    const input = decideInput({
      policies: { cpu: { threshold: 0.1 } },
      hosts: { a: {}, b: {} },
      vms: { v1: { host: 'a', w: { cpu: 0.3 } }, v2: { host: 'a', w: { cpu: 0.3 } } },
      memory,
      options: { approvalTtlSeconds: 900, cooldownSeconds: 600 },
    });
    return decide({ ...input, snapshot: { ...input.snapshot, time: before(0), observedFrom: before(0) } });
  };
  const waiting = (proposedSeconds: number, approvalTtlSeconds: number | null) => ({
    waitingPlan: { planId: 'agg-1', proposedAtMs: Date.parse(before(proposedSeconds)), approvalTtlSeconds },
  });

  it('acts: a plan waits for approval by the approval_ttl of its time, not by that of today', () => {
    const { outcome, reason } = decided(waiting(1200, 1200));
    expect([outcome, reason.code, reason.detail?.until]).toEqual(['gated', 'awaiting-approval', before(0)]);
  });

  it('acts: the cooldown after an expiry begins when the approval_ttl of its time ended', () => {
    const { reason } = decided(waiting(400, 300));
    expect(reason).toMatchObject({
      code: 'cooldown',
      detail: { after: 'expiry', at: before(100), until: before(-500) },
    });
  });

  it('acts: the reason names a recorded expiry as an expiry', () => {
    const { reason } = decided({ lastRefusal: { planId: 'agg-1', atMs: Date.parse(before(100)), how: 'expired' } });
    expect(reason.detail).toMatchObject({ after: 'expiry' });
  });

  it('refuses: a plan without options on the log waits for nobody, and cools down from its proposal on', () => {
    expect(decided(waiting(10, null)).reason).toMatchObject({ code: 'cooldown', detail: { at: before(10) } });
  });

  it('does nothing: when the cooldown has ended', () => {
    expect(decided(waiting(901, 300)).outcome).toBe('planned');
    expect(decided({ lastRelease: { planId: 'agg-1', atMs: Date.parse(before(600)) } }).outcome).toBe('planned');
  });
});
