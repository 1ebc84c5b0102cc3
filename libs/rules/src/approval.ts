/** The facts that set the deadline for the approval of a proposed plan. */
export type ProposalFacts = {
  readonly planId: string;
  /** When it was proposed, ms since the epoch. */
  readonly proposedAtMs: number;
  /** The `approval_ttl` on the log when it was proposed; null: the log named no options. */
  readonly approvalTtlSeconds: number | null;
};

export type Approval = {
  /** The last moment at which it can be approved or rejected, ms since the epoch. */
  readonly expiresAtMs: number;
  /** False from then on: no answer counts, and the expiry starts the aggregate cooldown. */
  readonly open: boolean;
};

/**
 * A proposed plan waits for `approval_ttl` seconds, the last moment included. The duration is the one that was in force
 * when the plan was proposed: an answer must count or not count for every reader of the log, whatever its own options are. A plan without
 * options on the log is never open, because its time limit is unknown.
 */
export function approval({ proposedAtMs, approvalTtlSeconds }: Omit<ProposalFacts, 'planId'>, nowMs: number): Approval {
  const expiresAtMs = proposedAtMs + (approvalTtlSeconds ?? 0) * 1000;
  return { expiresAtMs, open: approvalTtlSeconds !== null && nowMs <= expiresAtMs };
}
