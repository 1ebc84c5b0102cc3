import { completeEngineOptions, type EngineOptions, type Snapshot } from '@kronos/contracts';
import type { DecideInput, InFlightTask, Memory, OwnMove, QuarantineFact } from '@kronos/placement';
import {
  type AggregateState,
  cooldownFacts,
  copyRate,
  drainingHosts,
  inFlight,
  movePaces,
  movesToGo,
  quarantineFacts,
  recordedOptions,
} from '@kronos/projections';
import { noiseOf, pauseInForce } from '@kronos/rules';

/** The topic of a decision: only memory about it is converted, so the cost does not grow with the history. */
export type MemoryTopic = {
  readonly servers: readonly { readonly id: string }[];
  readonly hosts: readonly { readonly name: string }[];
  /** Readings against which the rate of the links is compared; absent: none. */
  readonly moveCostReadings?: Snapshot['moveCostReadings'];
  /** Absent: nobody asks how long moves take, and for what was waited. */
  readonly forecast?: Snapshot['forecast'];
  /** Absent: nobody asks for the moves that Kronos completed. */
  readonly endedMigrations?: Snapshot['endedMigrations'];
};

/** The input of a decision about the snapshot, by the options in force unless others are given. It completes recorded options. */
export const decideInput = (
  state: AggregateState,
  snapshot: Snapshot,
  options: EngineOptions = recordedOptions(state),
): DecideInput => ({ snapshot, memory: toMemory(state, snapshot), options: completeEngineOptions(options) });

/** The state as the planner's pure core takes it: the facts about what the snapshot has. */
export function toMemory(state: AggregateState, seen: MemoryTopic): Memory {
  const paused = pauseInForce(state);
  const { lastRelease, lastRefusal, waiting } = cooldownFacts(state);
  const { unreadable } = state;
  const courseMoves = movesToGo(state);
  const draining = [...drainingHosts(state)].sort();
  const carried = seen.moveCostReadings === undefined ? null : copyRate(state);
  return {
    paused: paused === null ? null : { atMs: paused.atMs, by: paused.by },
    unreadable:
      unreadable === null
        ? null
        : {
            sequence: unreadable.sequence,
            type: unreadable.claimedType,
            version: unreadable.claimedVersion,
          },
    lastDecidedMs: state.decided?.snapshotMs ?? null,
    lastRelease,
    lastRefusal,
    waitingPlan: waiting,
    lastMoveEndMs: state.lastMoveEnd?.atMs ?? null,
    releases: record(
      seen.servers.map(({ id }) => id),
      state.vmReleases,
    ),
    quarantines: quarantinesOf(state, seen.servers),
    hostFailures: record(
      seen.hosts.map(({ name }) => name),
      state.hostFailures,
    ),
    inFlight: inFlight(state).map((task): InFlightTask => {
      const { serverId, from, resources, weights, ramMb, phase } = task.step;
      return {
        taskId: task.id,
        serverId,
        from,
        destination: task.destination,
        resources,
        weights,
        ramMb,
        startedAtMs: task.slot?.startedAtMs ?? null,
        ...(phase === 'cell' ? { cell: true as const } : {}),
      };
    }),
    // Left out where there is none, as it was before there were drains: the digest of a state without them is the same.
    ...(draining.length === 0 ? {} : { draining }),
    ...refusalsOf(state, seen.hosts),
    ...ownMovesOf(state, seen.endedMigrations),
    ...(carried === null ? {} : { copyBytesPerSecond: carried }),
    ...pacesOf(state, seen),
    ...(seen.forecast === undefined ? {} : waitsOf(state)),
    ...noiseIn(state),
    ...(courseMoves === null ? {} : { courseMoves }),
    sustained: state.sustained,
  };
}

/** Left out where nothing is timed by them, so that the digest of a state without them is the same. */
function pacesOf(state: AggregateState, { forecast, hosts }: MemoryTopic): Pick<Memory, 'movePaces'> {
  if (forecast === undefined && state.course === null) return {};
  const paces = movePaces(state, hosts);
  return paces === null ? {} : { movePaces: paces };
}

/** Left out where there are none, so that the digest of a state without them is the same. */
function refusalsOf(state: AggregateState, hosts: MemoryTopic['hosts']): Pick<Memory, 'refusals'> {
  if (state.refusals.size === 0) return {};
  const known = new Set(hosts.map(({ name }) => name));
  const refusals = [...state.refusals.values()]
    .filter(({ host }) => known.has(host))
    .sort((a, b) => a.sequence - b.sequence)
    .map(({ serverId, host, atMs, text, shape, mark }) => ({ serverId, host, atMs, text, shape, mark }));
  return refusals.length === 0 ? {} : { refusals };
}

/** Left out where there are none, so that the digest of a state without them is the same. */
function ownMovesOf({ ownMoves }: AggregateState, ended: MemoryTopic['endedMigrations']): Pick<Memory, 'ownMoves'> {
  const own = [...new Set((ended ?? []).map(({ serverId }) => serverId))].sort().flatMap((id): [string, OwnMove][] => {
    const move = ownMoves.get(id);
    return move === undefined
      ? []
      : [[id, { from: move.from, to: move.to, atMs: move.atMs, migrationId: move.migrationId }]];
  });
  return own.length === 0 ? {} : { ownMoves: Object.fromEntries(own) };
}

/** Left out where none is known, so that the digest of a state without it is the same. */
function noiseIn({ surprises }: AggregateState): Pick<Memory, 'noise'> {
  const noise: Record<string, number> = {};
  for (const [policy, differences] of Object.entries(surprises.known)) {
    const known = noiseOf(differences);
    if (known !== null && known > 0) noise[policy] = known;
  }
  return Object.keys(noise).length === 0 ? {} : { noise };
}

function waitsOf({ waits: { open, days } }: AggregateState): Pick<Memory, 'waits'> {
  if (open === null && days.length === 0) return {};
  return {
    waits: {
      open: open === null ? null : { sinceMs: open.sinceMs, untilMs: open.untilMs, plannedMs: open.plannedMs },
      days,
    },
  };
}

/** By server: what put it in quarantine. Which cause counts, decisions work out by their options. */
function quarantinesOf(
  state: AggregateState,
  servers: MemoryTopic['servers'],
): Record<string, readonly QuarantineFact[]> {
  const facts: Record<string, readonly QuarantineFact[]> = {};
  if (state.vmFailures.size === 0 && state.operatorQuarantines.size === 0) return facts;
  for (const { id } of servers) {
    const causes = quarantineFacts(state, id);
    if (causes.length === 0) continue;
    facts[id] = causes.map(({ cause, atMs, seconds }) => ({
      cause,
      atMs,
      errorType: cause === 'failure' ? (state.vmFailures.get(id)?.errorType ?? null) : null,
      seconds,
    }));
  }
  return facts;
}

function record<V>(keys: readonly string[], map: ReadonlyMap<string, V>): Record<string, V> {
  const out: Record<string, V> = {};
  if (map.size === 0) return out;
  for (const key of keys) {
    const value = map.get(key);
    if (value !== undefined) out[key] = value;
  }
  return out;
}
