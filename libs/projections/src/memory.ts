import type { InFlightTask, Memory, QuarantineFact } from '@kronos/placement';
import { waitingPlan } from './approvals.ts';
import { inFlight } from './inFlight.ts';
import type { AggregateState } from './state.ts';

/** The state as the planner's pure core takes it: the same facts, times as ISO-8601 UTC. */
export function toMemory(state: AggregateState): Memory {
  const paused = state.paused.here ?? state.paused.everywhere;
  const waiting = waitingPlan(state, 0);
  const { unreadable } = state;
  return {
    paused: paused === null ? null : { at: iso(paused.atMs), by: paused.by },
    unreadable:
      unreadable === null
        ? null
        : { sequence: unreadable.sequence, type: unreadable.claimedType, version: unreadable.claimedVersion },
    lastDecidedTime: isoOrNull(state.decided?.snapshotMs),
    lastReleaseAt: isoOrNull(state.lastRelease?.atMs),
    lastRejectionAt: isoOrNull(state.lastRefusal?.atMs),
    waitingPlan: waiting === null ? null : { planId: waiting.plan.id, proposedAt: iso(waiting.plan.decidedAtMs) },
    lastMoveEndAt: isoOrNull(state.lastMoveEnd?.atMs),
    releases: record(state.vmReleases, (times) => times.map(iso)),
    quarantines: quarantineFacts(state),
    hostFailures: record(state.hostFailures, (times) => times.map(iso)),
    inFlight: inFlight(state).map((task): InFlightTask => {
      const { serverId, from, resources, weights, ramMb } = task.step;
      return {
        taskId: task.id,
        serverId,
        from,
        destination: task.destination,
        resources,
        weights,
        ramMb,
        startedAt: isoOrNull(task.slot?.startedAtMs),
      };
    }),
    sustained: state.sustained,
  };
}

/** By server: its failure and the operator's quarantine. Which one ends last, decisions work out by their options. */
function quarantineFacts(state: AggregateState): Record<string, readonly QuarantineFact[]> {
  const facts: Record<string, readonly QuarantineFact[]> = {};
  for (const id of [...new Set([...state.vmFailures.keys(), ...state.operatorQuarantines.keys()])].sort()) {
    const failure = state.vmFailures.get(id);
    const asked = state.operatorQuarantines.get(id);
    facts[id] = [
      ...(failure === undefined
        ? []
        : [{ cause: 'failure' as const, at: iso(failure.atMs), errorType: failure.errorType, seconds: null }]),
      ...(asked === undefined
        ? []
        : [{ cause: 'operator' as const, at: iso(asked.atMs), errorType: null, seconds: asked.seconds }]),
    ];
  }
  return facts;
}

const iso = (ms: number): string => new Date(ms).toISOString();
const isoOrNull = (ms: number | undefined): string | null => (ms === undefined ? null : iso(ms));

function record<V, R>(map: ReadonlyMap<string, V>, convert: (value: V) => R): Record<string, R> {
  const out: Record<string, R> = {};
  for (const key of [...map.keys()].sort()) {
    const value = map.get(key);
    if (value !== undefined) out[key] = convert(value);
  }
  return out;
}
