import {
  type CapacityReading,
  type CompleteEngineOptions,
  MAX_PROPOSED_STEPS,
  type ProposalDecision,
  type Snapshot,
} from '@kronos/contracts';
import { migrationWindow } from '@kronos/rules';
import { int } from '../base/array.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { Draft } from '../draft/draft.ts';
import { FailureRoom } from '../failover/failureRoom.ts';
import { blockingGates } from '../gate.ts';
import { tries } from '../guard.ts';
import { completePlan } from '../plan/plan.ts';
import { proposalDecision } from '../proposal.ts';
import { type ReasonCode, reasonMeanings } from '../reasons.ts';
import { decisionMs, type Memory } from '../snapshot/memory.ts';
import { observe } from '../snapshot/observe.ts';
import { plannedReason, withinWindows } from '../windows.ts';
import { makeRoom } from './capacity.ts';

export type DecideCapacityInput = {
  readonly planId: string;
  readonly snapshot: Snapshot & { readonly capacity: CapacityReading };
  readonly memory: Memory;
  readonly options: CompleteEngineOptions;
};

/** True when no state between the moves strands more VMs of failed hosts than the first one. */
function keepsRoomThrough(
  cluster: Cluster,
  moves: readonly { readonly vm: number; readonly to: number }[],
  hosts: number,
): boolean {
  if (hosts === 0) return true;
  const room = new FailureRoom(cluster, hosts);
  const gaps = room.gaps();
  return moves.every(({ vm, to }) => tries(room, vm, to, gaps));
}

/**
 * Decides a request for room for new VMs. A pure function: the same input gives the same bytes. A person requests and approves the
 * plan, so neither the aggregate cooldown nor the budget of a cycle limits it.
 */
export function decideCapacity({ planId, snapshot, memory, options }: DecideCapacityInput): ProposalDecision {
  const { shape, count: wanted, maxMoves } = snapshot.capacity.asked;
  const now = decisionMs(snapshot, memory);
  const gate = blockingGates({ snapshot, memory, options }, [], now).find(({ reason }) => reason.code !== 'cooldown');
  if (gate !== undefined) return proposalDecision('gated', gate.reason);

  const observed = observe(snapshot, memory, options, now);
  const { cluster } = observed;
  const { fit, moves } = makeRoom(cluster, snapshot.hosts, { shape, wanted }, { ...options, maxMoves });
  const { now: free, after, proven } = fit;
  const capacity = { wanted, now: free, after, proven };
  const quiet = (code: ReasonCode, refusals: ProposalDecision['refusals'] = {}): ProposalDecision =>
    proposalDecision('quiet', { code, text: reasonMeanings[code], detail: capacity }, { capacity, refusals });
  if (free >= wanted) return quiet('fits-already');

  const draft = new Draft(cluster, moves.length);
  for (let vm = 0; vm < cluster.V; vm++) {
    const refusal = int(cluster.vmRefusal, vm) || int(cluster.evacuationOnly, vm);
    if (refusal !== 0) draft.refusals.add(refusal);
  }
  const refusals = draft.refusals.toRecord();
  if (after < wanted) return quiet(proven ? 'no-room' : 'no-room-found', refusals);
  if (moves.length > MAX_PROPOSED_STEPS) return quiet('too-many-moves', refusals);
  for (const { vm, to } of moves) draft.apply(vm, to, { phase: 'capacity', why: 'makes-capacity' });
  if (!keepsRoomThrough(cluster, moves, options.failoverHosts)) return quiet('failover-room', refusals);
  // An alternate destination could use up the room that the plan makes.
  const completed = completePlan(planId, draft, [], { ...options, alternates: 0 });
  if (completed.steps.length < moves.length) return quiet('order-impossible', refusals);

  const window = migrationWindow(options, now);
  const steps = withinWindows(completed.steps, window, observed, options);
  return proposalDecision('planned', plannedReason(`${steps.length} moves make room for ${after} new VMs`, window), {
    steps,
    refusals,
    capacity,
    warnings: draft.warnings,
  });
}
