import {
  type Actor,
  type CapacityReading,
  type CellsReading,
  capacityPlanId,
  cellsPlanId,
  type EngineOptions,
  iso,
  MAX_PROPOSAL_SECONDS,
  messageId,
  type ObjectRef,
  type PlanProposed,
  type ProposalDecision,
  type Reason,
  type Snapshot,
} from '@kronos/contracts';
import { memoryText, proposalDecision } from '@kronos/placement';
import { type AggregateState, recordedOptions, startable } from '@kronos/projections';
import { decideProposal, type ProposalAsked } from './deciderOrders.ts';
import { digest } from './digest.ts';
import { decideInput } from './memory.ts';

/** A person's request for a plan, with the snapshot that was taken for it. */
export type PlanRequest = { readonly planId: string; readonly commandId: string } & (
  | { readonly kind: 'cells'; readonly snapshot: Snapshot & { readonly cells: CellsReading } }
  | { readonly kind: 'capacity'; readonly snapshot: Snapshot & { readonly capacity: CapacityReading } }
);

/** Whether a snapshot was taken for a request for a plan, which has an answer of its own. */
export const asksForPlan = ({ purpose }: Pick<Snapshot, 'purpose'>): boolean =>
  purpose === 'cells' || purpose === 'capacity';

/** The request that a snapshot was taken for; null: none. */
export function planRequest(snapshot: Snapshot): PlanRequest | null {
  const { aggregate, cells, capacity } = snapshot;
  if (cells !== undefined) {
    const { commandId } = cells;
    return { kind: 'cells', commandId, planId: cellsPlanId(aggregate, commandId), snapshot: { ...snapshot, cells } };
  }
  if (capacity === undefined) return null;
  const { commandId } = capacity;
  const planId = capacityPlanId(aggregate, commandId);
  return { kind: 'capacity', commandId, planId, snapshot: { ...snapshot, capacity } };
}

export type ProposalInput = {
  readonly request: PlanRequest;
  /** The log up to the decision's `basis`, by aggregate. */
  readonly stateOf: (aggregate: string) => AggregateState;
  /** Of the aggregate whose servers move. */
  readonly options: EngineOptions;
  /** Why its snapshot can no longer be decided; null: it can. By clocks, which no replay has: a replay takes it from the answer. */
  readonly refusal: Reason | null;
};

export type Proposal = {
  readonly decision: ProposalDecision;
  /** Of all that it was made of but the snapshot, whose digest is that of its stored bytes. */
  readonly digests: Omit<PlanProposed['data']['digests'], 'snapshot'>;
};

/** The request with the memory about its snapshots: the folded state stays with the caller. */
export function proposalAsked({ request, stateOf, options }: Omit<ProposalInput, 'refusal'>): ProposalAsked {
  const { planId, snapshot } = request;
  const input = { planId, ...decideInput(stateOf(snapshot.aggregate), snapshot, options) };
  if (request.kind === 'capacity') return { kind: 'capacity', input: { ...input, snapshot: request.snapshot } };
  const others = Object.fromEntries(
    request.snapshot.cells.others.map((other) => {
      const { memory, options } = decideInput(stateOf(other.aggregate), other);
      return [other.aggregate, { memory, options }];
    }),
  );
  return { kind: 'cells', input: { ...input, snapshot: request.snapshot, others } };
}

/** The proposal with a decision on this, wherever it was made. */
export function proposalOf(
  { stateOf, options }: Pick<ProposalInput, 'stateOf' | 'options'>,
  asked: ProposalAsked,
  decision: ProposalDecision,
): Proposal {
  const each = asked.kind === 'cells' ? Object.entries(asked.input.others) : [];
  return {
    decision,
    digests: {
      state: digest([memoryText(asked.input.memory), ...each.map(([name, of]) => [name, memoryText(of.memory)])]),
      options: digest([options, ...each.map(([name]) => [name, recordedOptions(stateOf(name))])]),
      decision: digest(decision),
    },
  };
}

/** Decides a request for a plan. The same input gives the same bytes, in the planner and in a replay. */
export function runProposal(input: ProposalInput): Proposal {
  const asked = proposalAsked(input);
  const { refusal } = input;
  return proposalOf(input, asked, refusal === null ? decideProposal(asked) : proposalDecision('gated', refusal));
}

/**
 * The release of a plan that a person requested: it never starts without an approval, and only if a move may start now.
 *
 * @param atMs time of its event
 */
export function proposalRelease(
  { outcome, reason, steps }: ProposalDecision,
  { dryRun }: Pick<EngineOptions, 'dryRun'>,
  atMs: number,
): PlanProposed['data']['release'] {
  if (outcome !== 'planned') return 'none';
  if (dryRun) return 'dryRun';
  return reason.code === 'outside-window' || startable(steps, atMs).length === 0 ? 'none' : 'proposed';
}

/** The decision as its event holds it when it is kept in the bucket: without reasons and without refused servers. */
export const withoutRefused = (decision: ProposalDecision): ProposalDecision => ({
  ...decision,
  steps: decision.steps.map(({ why: _, ...step }) => step),
  refused: [],
});

type ProposalContext = {
  readonly request: PlanRequest;
  readonly basis: number;
  readonly plannerVersion: string;
  readonly options: EngineOptions;
  readonly digests: PlanProposed['data']['digests'];
  readonly details: ObjectRef | null;
  readonly by: Actor;
  readonly nowMs: number;
};

/** The destination of the servers, and the limits for which the plan and its tasks wait. */
function termsOf(
  request: PlanRequest,
  { approvalTtlSeconds, planTtlSeconds }: EngineOptions,
): Pick<PlanProposed['data'], 'to' | 'approvalTtlSeconds' | 'planTtlSeconds'> {
  if (request.kind === 'cells') {
    const { asked, settings } = request.snapshot.cells;
    return {
      to: asked.to,
      approvalTtlSeconds: settings.approvalTtlSeconds,
      planTtlSeconds: settings.planTtlSeconds,
    };
  }
  const within = (seconds: number): number => Math.min(MAX_PROPOSAL_SECONDS, Math.max(1, seconds));
  return {
    to: request.snapshot.aggregate,
    approvalTtlSeconds: within(approvalTtlSeconds),
    planTtlSeconds: within(planTtlSeconds),
  };
}

/** The one event of a request for a plan. */
export function proposedEvent(decision: ProposalDecision, context: ProposalContext): PlanProposed {
  const { request, basis, plannerVersion, options, digests, details, by, nowMs } = context;
  const { planId, commandId, snapshot } = request;
  return {
    type: 'plan.proposed',
    version: 1,
    id: messageId.proposed(planId),
    time: iso(nowMs),
    aggregate: snapshot.aggregate,
    by,
    correlationId: commandId,
    causationId: messageId.snapshot(snapshot.id),
    data: {
      ...decision,
      planId,
      commandId,
      ...termsOf(request, options),
      release: proposalRelease(decision, options, nowMs),
      snapshotId: snapshot.id,
      snapshotTime: snapshot.time,
      basis,
      plannerVersion,
      digests,
      details,
    },
  };
}
