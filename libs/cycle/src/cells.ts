import {
  type Actor,
  type CellDecision,
  type CellsReading,
  cellsPlanId,
  type EngineOptions,
  messageId,
  type ObjectRef,
  type PlanProposed,
  type Snapshot,
} from '@kronos/contracts';
import { decideCells } from '@kronos/placement';
import type { AggregateState } from '@kronos/projections';
import { digest } from './cycle.ts';
import { decideInput } from './memory.ts';

/** A snapshot that was taken for a request for moves between cells. */
export type CellsSnapshot = Snapshot & { readonly cells: CellsReading };

type ProposalInput = {
  readonly snapshot: CellsSnapshot;
  /** The log up to the decision's `basis`, by aggregate. */
  readonly stateOf: (aggregate: string) => AggregateState;
  /** Of the aggregate that the servers leave. */
  readonly options: EngineOptions;
};

type Proposal = {
  readonly decision: CellDecision;
  /** Of all that it was made of but the snapshot, whose digest is that of its stored bytes. */
  readonly digests: Omit<PlanProposed['data']['digests'], 'snapshot'>;
};

/** Decides a request for moves between cells. The same input gives the same bytes, in the planner and in a replay. */
export function runProposal({ snapshot, stateOf, options }: ProposalInput): Proposal {
  const { memory } = decideInput(stateOf(snapshot.aggregate), snapshot, options);
  const others = Object.fromEntries(
    snapshot.cells.others.map((other) => {
      const { memory, options } = decideInput(stateOf(other.aggregate), other);
      return [other.aggregate, { memory, options }];
    }),
  );
  const planId = cellsPlanId(snapshot.aggregate, snapshot.cells.commandId);
  const decision = decideCells({ planId, snapshot, memory, options, others });
  const each = Object.entries(others);
  return {
    decision,
    digests: {
      state: digest([memory, ...each.map(([name, of]) => [name, of.memory])]),
      options: digest([options, ...each.map(([name, of]) => [name, of.options])]),
      decision: digest(decision),
    },
  };
}

/** How a plan between cells begins: it never starts without an approval, and only if a move may start now. */
export function proposalRelease(
  { outcome, reason }: CellDecision,
  { dryRun }: Pick<EngineOptions, 'dryRun'>,
): PlanProposed['data']['release'] {
  if (outcome !== 'planned') return 'none';
  if (dryRun) return 'dryRun';
  return reason.code === 'outside-window' ? 'none' : 'proposed';
}

/** The decision as its event holds it when it is kept in the bucket: without reasons and without refused servers. */
export const withoutRefused = (decision: CellDecision): CellDecision => ({
  ...decision,
  steps: decision.steps.map(({ why: _, ...step }) => step),
  refused: [],
});

type ProposalContext = {
  readonly snapshot: CellsSnapshot;
  readonly basis: number;
  readonly plannerVersion: string;
  readonly options: EngineOptions;
  readonly digests: PlanProposed['data']['digests'];
  readonly details: ObjectRef | null;
  readonly by: Actor;
  readonly nowMs: number;
};

/** The one event of a request for moves between cells. */
export function proposedEvent(decision: CellDecision, context: ProposalContext): PlanProposed {
  const { snapshot, basis, plannerVersion, options, digests, details, by, nowMs } = context;
  const { commandId, asked, settings } = snapshot.cells;
  const planId = cellsPlanId(snapshot.aggregate, commandId);
  return {
    type: 'plan.proposed',
    version: 1,
    id: messageId.proposed(planId),
    time: new Date(nowMs).toISOString(),
    aggregate: snapshot.aggregate,
    by,
    correlationId: commandId,
    causationId: messageId.snapshot(snapshot.id),
    data: {
      ...decision,
      planId,
      commandId,
      to: asked.to,
      release: proposalRelease(decision, options),
      approvalTtlSeconds: settings.approvalTtlSeconds,
      planTtlSeconds: settings.planTtlSeconds,
      snapshotId: snapshot.id,
      snapshotTime: snapshot.time,
      basis,
      plannerVersion,
      digests,
      details,
    },
  };
}
