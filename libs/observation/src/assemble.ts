/** The pure middle of the scorer: from what was read to the snapshot of one aggregate. */
import {
  type HostObservation,
  type Policy,
  type Reason,
  type ServerListing,
  type Snapshot,
  some,
  vmReadingLists,
} from '@kronos/contracts';
import { allocationReadings, profileSums, score } from '@kronos/placement';
import type { Capacity, CellsSeen, CloudLists, Fate, KnownServer, ObserveOptions, PortsSeen } from './cloud.ts';
import { forecastOf, type ReadHistory } from './history.ts';
import { vmNamesOf } from './names.ts';
import { answersOf, type MatchedAnswers, readingsFor } from './readings.ts';
import { note } from './reasons.ts';
import { type ServerIndex, serversOf } from './servers.ts';
import { topologyOf } from './topology.ts';

/** The identity of a snapshot. */
type SnapshotIdentity = Pick<Snapshot, 'id' | 'purpose' | 'cycle' | 'intervalSeconds' | 'observedFrom' | 'time'>;

export interface AssembleInput {
  readonly identity: SnapshotIdentity;
  readonly aggregate: string;
  /** All aggregates in scope. */
  readonly scope: readonly string[];
  readonly options: ObserveOptions;
  /** As they were loaded; empty in the rules-only mode. */
  readonly policies: readonly Policy[];
  /** `[engine] balance`. */
  readonly balance: boolean;
  readonly lists: CloudLists;
  /** Of the servers and migrations of `lists`. */
  readonly index: ServerIndex;
  /** By service host: where the list of its servers came from. */
  readonly listings: ReadonlyMap<string, ServerListing>;
  readonly capacity: Capacity;
  /** NUMA cells. Absent: not read, as in a past that is rebuilt. */
  readonly cells?: CellsSeen;
  /** Absent: not read. */
  readonly ports?: PortsSeen;
  /** `Observation.vtpmMoves`. Absent: not known. */
  readonly vtpmMoves?: boolean | undefined;
  readonly answers: MatchedAnswers;
  readonly known: readonly KnownServer[];
  readonly fates: ReadonlyMap<string, Fate>;
  /** The values of VMs on former days; null: there is no forecast. */
  readonly history?: ReadHistory | null;
}

/** The snapshot of one aggregate. The same input gives the same bytes. */
export function assemble(input: AssembleInput): Snapshot {
  const { lists, capacity } = input;
  const topology = topologyOf(lists, input.aggregate, input.scope, input.options);
  const hosts = topology.hosts.map((host): HostObservation => {
    const provider = capacity.providers.get(host.hypervisorId);
    const listing = input.listings.get(host.name);
    const cells = input.cells?.hosts.get(host.name);
    return {
      ...host,
      inventory: provider === undefined ? null : { ...provider.inventory },
      traits: provider === undefined || provider.traits === null ? null : [...provider.traits],
      ...(cells === undefined ? {} : { topology: cells === null ? null : { cells: [...cells] } }),
      ...(listing === undefined ? {} : { listing }),
    };
  });
  const seen = serversOf({
    lists,
    index: input.index,
    hosts: hosts.map(({ name, service }) => ({ name, unsure: service.state === 'unknown' })),
    unknownHosts: topology.unknownHosts,
    optOut: input.options.optOut,
    known: input.known,
    fates: input.fates,
    cells: input.cells?.servers,
    ports: input.ports,
  });
  const readings = readingsFor(answersOf(input.answers, input.policies), hosts, seen.servers);
  const policies = [...input.policies];
  const allocated = allocationReadings({ policies, hosts, servers: seen.servers });
  const hostReadings = [...readings.hostReadings, ...allocated.hostReadings];
  const vmReadings = [...readings.vmReadings, ...allocated.vmReadings];
  const others = vmReadingLists.filter((list) => list !== 'vmReadings' && readings[list].length > 0);
  const scored = { policies, hosts, hostReadings, options: { balance: input.balance } };
  const sums = profileSums({ ...scored, servers: [...seen.servers], vmReadings });
  return {
    version: 1,
    ...input.identity,
    aggregate: input.aggregate,
    ...(input.vtpmMoves === undefined ? {} : { vtpmMoves: input.vtpmMoves }),
    policies,
    hosts,
    servers: [...seen.servers],
    serverGroups: [...seen.serverGroups],
    migrations: [...seen.migrations],
    hostReadings,
    vmReadings,
    ...Object.fromEntries(others.map((list) => [list, [...readings[list]]])),
    ...(input.history === undefined || input.history === null
      ? {}
      : { forecast: forecastOf(input.history, policies, seen.servers, vmNamesOf(input.index)) }),
    problems: [...topology.problems, ...seen.problems],
    notes: [
      ...topology.notes,
      ...capacityNotes(hosts, capacity),
      ...(input.cells?.notes ?? []),
      ...(input.ports?.notes ?? []),
      ...seen.notes,
      ...readings.notes,
    ],
    scores: score(scored),
    ...(sums.length === 0 ? {} : { profileSums: sums }),
  };
}

/** Hosts that may not be destinations because data are missing, with the reason. */
function capacityNotes(hosts: readonly HostObservation[], capacity: Capacity): Reason[] {
  const notes: Reason[] = [];
  const ids = new Map(hosts.map((host) => [host.hypervisorId, host.name]));
  const reasons = new Set([...capacity.failures].filter(([id]) => ids.has(id)).map(([, text]) => text));
  const unknown = hosts.filter((host) => host.inventory === null).map((host) => host.name);
  if (unknown.length > 0) {
    const why = reasons.size === 0 ? 'Placement has no provider for them' : some([...reasons], 3);
    notes.push(
      note('capacity-unknown', `no destination, as their capacity is unknown: ${some(unknown)} (${why})`, {
        hosts: unknown,
      }),
    );
  }
  const bare = hosts.filter((host) => host.inventory !== null && host.traits === null).map((host) => host.name);
  if (bare.length > 0)
    notes.push(note('traits-unknown', `Placement's traits could not be read for ${some(bare)}`, { hosts: bare }));
  return notes;
}
