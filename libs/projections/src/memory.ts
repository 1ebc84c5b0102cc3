import type { InFlightTask, Memory, QuarantineFact } from '@kronos/placement';
import { waitingPlan } from './approvals.ts';
import { inFlight } from './inFlight.ts';
import type { AggregateState } from './state.ts';

/** What a decision is about: only what is remembered of these is converted, so the cost does not grow with the history. */
export type Seen = {
  readonly servers: readonly { readonly id: string }[];
  readonly hosts: readonly { readonly name: string }[];
};

/** The state as the planner's pure core takes it: the facts about what the snapshot has, times as ISO-8601 UTC. */
export function toMemory(state: AggregateState, seen: Seen): Memory {
  const paused = state.paused.here ?? state.paused.everywhere;
  const waiting = waitingPlan(state, 0);
  const { unreadable } = state;
  return {
    paused: paused === null ? null : { at: iso(paused.atMs), by: paused.by },
    unreadable:
      unreadable === null
        ? null
        : {
            sequence: unreadable.sequence,
            type: unreadable.claimedType,
            version: unreadable.claimedVersion,
          },
    lastDecidedTime: isoOrNull(state.decided?.snapshotMs),
    lastReleaseAt: isoOrNull(state.lastRelease?.atMs),
    lastRejectionAt: isoOrNull(state.lastRefusal?.atMs),
    waitingPlan: waiting === null ? null : { planId: waiting.plan.id, proposedAt: iso(waiting.plan.decidedAtMs) },
    lastMoveEndAt: isoOrNull(state.lastMoveEnd?.atMs),
    releases: record(
      seen.servers.map(({ id }) => id),
      state.vmReleases,
      (times) => times.map(iso),
    ),
    quarantines: quarantineFacts(state, seen.servers),
    hostFailures: record(
      seen.hosts.map(({ name }) => name),
      state.hostFailures,
      (times) => times.map(iso),
    ),
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
function quarantineFacts(state: AggregateState, servers: Seen['servers']): Record<string, readonly QuarantineFact[]> {
  const facts: Record<string, readonly QuarantineFact[]> = {};
  if (state.vmFailures.size === 0 && state.operatorQuarantines.size === 0) return facts;
  for (const { id } of servers) {
    const failure = state.vmFailures.get(id);
    const asked = state.operatorQuarantines.get(id);
    if (failure === undefined && asked === undefined) continue;
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

/**
 * Which VMs with a failed move are no longer among these servers, and which are again. What the log knows already is left
 * out: usually there is nothing to say.
 */
export function absence(
  state: Pick<AggregateState, 'vmFailures'>,
  servers: Seen['servers'],
): { gone: string[]; back: string[] } | null {
  if (state.vmFailures.size === 0) return null;
  const there = new Set(servers.map(({ id }) => id));
  const gone: string[] = [];
  const back: string[] = [];
  for (const [id, { absentSinceMs }] of state.vmFailures) {
    if (there.has(id) === (absentSinceMs === null)) continue;
    (absentSinceMs === null ? gone : back).push(id);
  }
  return gone.length + back.length === 0 ? null : { gone: gone.sort(), back: back.sort() };
}

const iso = (ms: number): string => new Date(ms).toISOString();
const isoOrNull = (ms: number | undefined): string | null => (ms === undefined ? null : iso(ms));

function record<V, R>(
  keys: readonly string[],
  map: ReadonlyMap<string, V>,
  convert: (value: V) => R,
): Record<string, R> {
  const out: Record<string, R> = {};
  if (map.size === 0) return out;
  for (const key of keys) {
    const value = map.get(key);
    if (value !== undefined) out[key] = convert(value);
  }
  return out;
}
