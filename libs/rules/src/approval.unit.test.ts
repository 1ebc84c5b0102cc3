import { describe, expect, it } from 'vitest';
import { approval } from './approval.ts';

describe('the approval of a plan', () => {
  const proposal = { proposedAtMs: 1_000_000, approvalTtlSeconds: 300 };

  it('acts: the plan waits until its approval_ttl has passed, the last moment included', () => {
    expect(approval(proposal, 1_000_000)).toEqual({ expiresAtMs: 1_300_000, open: true });
    expect(approval(proposal, 1_300_000).open).toBe(true);
  });

  it('refuses: after that no answer counts', () => {
    expect(approval(proposal, 1_300_001)).toEqual({ expiresAtMs: 1_300_000, open: false });
  });

  it('refuses: without options on the log the plan was never open', () => {
    expect(approval({ ...proposal, approvalTtlSeconds: null }, 1_000_000)).toEqual({
      expiresAtMs: 1_000_000,
      open: false,
    });
  });

  it('does nothing: a clock before the proposal changes no expiry', () => {
    expect(approval(proposal, 0)).toEqual({ expiresAtMs: 1_300_000, open: true });
  });
});
