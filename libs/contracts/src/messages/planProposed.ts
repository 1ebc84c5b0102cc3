import { z } from 'zod';
import { isoTimeSchema, objectRefSchema } from '../envelope.ts';
import { MAX_PROPOSAL_SECONDS } from '../limits.ts';
import { clause, releaseWords } from '../phrases.ts';
import { makesRoom, proposalDecisionSchema } from '../plans.ts';
import { count } from '../words.ts';
import { defineEvent } from './define.ts';

const data = proposalDecisionSchema.extend({
  /** `cellsPlanId` or `capacityPlanId` of the aggregate and the command. */
  planId: z.string(),
  commandId: z.string(),
  /** The aggregate that the servers go to: the same one where room is made. */
  to: z.string(),
  /** The plan waits for approval, is a dry run's and never released, or there is none that may start. */
  release: z.enum(['proposed', 'dryRun', 'none']),
  approvalTtlSeconds: z.number().min(1).max(MAX_PROPOSAL_SECONDS),
  planTtlSeconds: z.number().min(1).max(MAX_PROPOSAL_SECONDS),
  snapshotId: z.string(),
  snapshotTime: isoTimeSchema,
  /** The log was folded up to this sequence; what comes after is no part of the decision. */
  basis: z.int().min(0),
  plannerVersion: z.string(),
  digests: z.object({ snapshot: z.string(), state: z.string(), options: z.string(), decision: z.string() }),
  /** The reference to the whole decision when it is too large for the event: then the event holds no reasons and no refused servers. */
  details: objectRefSchema.nullable(),
});

/** Exactly one per request, on `kronos.plans.<agg>` of the aggregate whose servers move. */
export const planProposed = defineEvent({
  type: 'plan.proposed',
  writers: ['planner'],
  data,
  names: {
    outcome: 'kept',
    reason: 'nested',
    steps: 'nested',
    refused: 'nested',
    refusals: 'nested',
    left: 'kept',
    warnings: 'nested',
    capacity: 'nested',
    planId: 'id',
    commandId: 'kept',
    to: 'aggregate',
    release: 'kept',
    approvalTtlSeconds: 'kept',
    planTtlSeconds: 'kept',
    snapshotId: 'id',
    snapshotTime: 'kept',
    basis: 'kept',
    plannerVersion: 'kept',
    digests: 'nested',
    details: 'nested',
  },
  sentence: (event) => {
    const { steps: moves, to, refused, refusals, release, reason } = event.data;
    const stay = Object.values(refusals).reduce((sum, n) => sum + n, 0) || refused.length;
    const what = releaseWords[release];
    if (makesRoom(event))
      return moves.length === 0
        ? `no plan that makes room: ${clause(reason.text)}`
        : `planned ${count(moves.length, 'move')} that make room for ${event.data.capacity?.after ?? '?'} new VMs, ${what}`;
    if (moves.length === 0) return `no plan between cells to ${to}: ${clause(reason.text)}`;
    return `planned ${count(moves.length, 'move')} between cells to ${to}, ${what}${stay === 0 ? '' : `; ${count(stay, 'VM')} cannot move`}`;
  },
});
export type PlanProposed = z.infer<typeof planProposed.schema>;
