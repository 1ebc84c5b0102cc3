import type { ProposalDecision, Reason } from '@kronos/contracts';

/** The decision about a person's request. It has no steps unless `more` has some. */
export const proposalDecision = (
  outcome: ProposalDecision['outcome'],
  reason: Reason,
  more: Partial<ProposalDecision> = {},
): ProposalDecision => ({
  outcome,
  reason,
  steps: [],
  refused: [],
  refusals: {},
  left: 0,
  warnings: [],
  ...more,
});
