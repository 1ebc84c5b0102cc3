import { completeEngineOptions, type EngineOptions, type Snapshot } from '@kronos/contracts';
import type { DecideInput, InFlightTask, Memory, OwnMove, QuarantineFact } from '@kronos/placement';
import {
  type AggregateState,
  cooldownFacts,
  copyRate,
  drainingHosts,
  inFlight,
  inFlightElsewhere,
  movePaces,
  movesToGo,
  newestOf,
  quarantineFacts,
  recordedOptions,
  refusalsOf as refusalsKnown,
  type TaskFacts,
  timesOf,
  withRelated,
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
export function toMemory(whole: AggregateState, seen: MemoryTopic): Memory {
  const state = relatedTo(whole, seen);
  const paused = pauseInForce(state);
  const { lastRelease, lastRefusal, waiting } = cooldownFacts(state);
  const { unreadable } = state;
  const courseMoves = movesToGo(state);
  const draining = drainingHosts(state, seen.hosts);
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
    releases: times(
      seen.servers.map(({ id }) => id),
      (id) => timesOf(state, 'vmReleases', id),
    ),
    quarantines: quarantinesOf(state, seen.servers),
    hostFailures: times(
      seen.hosts.map(({ name }) => name),
      (name) => timesOf(state, 'hostFailures', name),
    ),
    inFlight: [...inFlight(state).map((task) => flying(task)), ...arriving(state, seen)],
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

/** The state without the other aggregates that know nothing of the VMs and hosts of the snapshot. */
function relatedTo(state: AggregateState, { servers, hosts, endedMigrations }: MemoryTopic): AggregateState {
  const ids = [...servers.map(({ id }) => id), ...(endedMigrations ?? []).map(({ serverId }) => serverId)];
  return withRelated(state, new Set(ids), new Set(hosts.map(({ name }) => name)));
}

/** Left out where nothing is timed by them, so that the digest of a state without them is the same. */
function pacesOf(state: AggregateState, { forecast, hosts }: MemoryTopic): Pick<Memory, 'movePaces'> {
  if (forecast === undefined && state.course === null) return {};
  const paces = movePaces(state, hosts);
  return paces === null ? {} : { movePaces: paces };
}

function flying(task: TaskFacts, aggregate?: string): InFlightTask {
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
    ...(aggregate === undefined ? {} : { aggregate }),
  };
}

/** Moves of other aggregates that concern a server or a host of this one: a host may have changed its aggregate since they were planned. */
function arriving(state: AggregateState, { servers, hosts }: MemoryTopic): InFlightTask[] {
  const moves = inFlightElsewhere(state);
  if (moves.length === 0) return [];
  const own = new Set([...servers.map(({ id }) => id), ...hosts.map(({ name }) => name)]);
  return moves.flatMap(({ aggregate, task }) =>
    own.has(task.step.serverId) || own.has(task.step.from) || own.has(task.destination)
      ? [flying(task, aggregate)]
      : [],
  );
}

/** Left out where there are none, so that the digest of a state without them is the same. */
function refusalsOf(state: AggregateState, hosts: MemoryTopic['hosts']): Pick<Memory, 'refusals'> {
  const all = refusalsKnown(state);
  if (all.length === 0) return {};
  const known = new Set(hosts.map(({ name }) => name));
  const refusals = all
    .filter(({ host }) => known.has(host))
    .map(({ serverId, host, atMs, text, shape, mark }) => ({ serverId, host, atMs, text, shape, mark }));
  return refusals.length === 0 ? {} : { refusals };
}

/** Left out where there are none, so that the digest of a state without them is the same. */
function ownMovesOf(state: AggregateState, ended: MemoryTopic['endedMigrations']): Pick<Memory, 'ownMoves'> {
  const own = [...new Set((ended ?? []).map(({ serverId }) => serverId))].sort().flatMap((id): [string, OwnMove][] => {
    const move = newestOf(state, 'ownMoves', id);
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
  for (const { id } of servers) {
    const causes = quarantineFacts(state, id);
    if (causes.length > 0) facts[id] = causes;
  }
  return facts;
}

/** By server or host; nothing for one without any. */
function times(keys: readonly string[], of: (key: string) => readonly number[]): Record<string, readonly number[]> {
  const out: Record<string, readonly number[]> = {};
  for (const key of keys) {
    const known = of(key);
    if (known.length > 0) out[key] = known;
  }
  return out;
}
