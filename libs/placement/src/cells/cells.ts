import {
  type CellFacts,
  type CellFlavor,
  type CellsAsked,
  type CompleteEngineOptions,
  type GroupObservation,
  type HostObservation,
  type Reason,
  type ServerObservation,
  type Snapshot,
  timeMs,
} from '@kronos/contracts';
import { traitsOf } from '@kronos/facts';
import { entry, float, int, item } from '../base/array.ts';
import { sortedBy } from '../base/sort.ts';
import { buildCluster, type HostPart, type VmPart } from '../cluster/build.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { Checker, Room } from '../cluster/constraints.ts';
import { codeNumber, codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';
import type { Memory } from '../snapshot/memory.ts';
import { claimSeen, hostGround, resourcesOf, vmWindows } from '../snapshot/observe.ts';
import { type Ground, own, remembered } from '../snapshot/unmovable.ts';
import { claimOf, type FlavorHost, mayTake, newFlavorOf } from './cellFlavors.ts';
import { type CellSharing, uncrossable, unmovableCold } from './cellGround.ts';

/** One aggregate as it was last observed. */
export type CellsAggregate = {
  readonly snapshot: Snapshot;
  readonly memory: Memory;
  readonly options: CompleteEngineOptions;
  /** `[cells]`: the cell of its hosts; null: as `[nova] cells` says. */
  readonly cell: string | null;
  /** By host: the metadata of its Nova aggregates, which flavors can ask for. */
  readonly metadata: Readonly<Record<string, Readonly<Record<string, string>>>>;
};

export type CellsInput = {
  /** Every aggregate in scope: only hosts of the target may take a resize. */
  readonly aggregates: readonly CellsAggregate[];
  /** By name: the flavors that the flavor map gives. */
  readonly flavors: Readonly<Record<string, CellFlavor>>;
  /** By server; a server without facts stays in its cell. */
  readonly facts: Readonly<Record<string, CellFacts>>;
  readonly sharing: CellSharing;
  /** Whether Nova's policy grants moves between cells; null: unknown until the first request. */
  readonly granted: boolean | null;
  /** How much a host of the server's own cell is preferred: 1 outweighs any difference in free memory. */
  readonly crossCellWeight: number;
  /** How long a guest is off: `fixedSeconds`, and `secondsPerGib` of local disk when it leaves its cell. */
  readonly pace: { readonly fixedSeconds: number; readonly secondsPerGib: number };
};

export type CellStep = {
  readonly serverId: string;
  readonly serverName: string;
  readonly aggregate: string;
  readonly from: string;
  readonly fromCell: string | null;
  /** Cold migration: the host that the request names. Resize: the host that fits best, although Nova chooses. */
  readonly to: string;
  readonly toCell: string | null;
  /** Further hosts that it fits on, best first, at most `alternates`. */
  readonly alternates: readonly string[];
  readonly method: 'migrate' | 'resize';
  readonly oldFlavor: string | null;
  readonly newFlavor: string | null;
  /** Its claim at the destination, by resource class. */
  readonly resources: Readonly<Record<string, number>>;
  readonly ramMb: number;
  readonly diskGb: number;
  /** 0 for a server that is SHUTOFF. */
  readonly downtimeSeconds: number;
  readonly why: Reason;
};

export type CellPlan = {
  /** In the order of their execution: host by host, the host with the fewest servers first. */
  readonly steps: readonly CellStep[];
  /** Servers that cannot move, each with a reason. */
  readonly refused: readonly {
    readonly serverId: string;
    readonly serverName: string;
    readonly host: string;
    readonly reason: Reason;
  }[];
  /** Servers that could move but exceed the limit. */
  readonly left: number;
  /** Names in `from`, `to` and `servers` that no snapshot has. */
  readonly unknown: readonly string[];
};

type Place = { readonly aggregate: CellsAggregate; readonly host: HostObservation };
type Candidate = {
  readonly server: ServerObservation;
  readonly place: Place;
  readonly flavor: CellFlavor | null;
  readonly ground: Ground | null;
};

/** The state of the search for places. `room` changes with each server that has found its place. */
type CellSearch = {
  readonly input: CellsInput;
  readonly cluster: Cluster;
  readonly places: ReadonlyMap<string, Place>;
  readonly target: readonly Place[];
  readonly room: Room;
  readonly checker: Checker;
};

/** Plans moves between cells: destination, method and order of each, and a reason for each server that cannot move. */
export function planCells(asked: CellsAsked, input: CellsInput): CellPlan {
  const places = new Map<string, Place>();
  for (const aggregate of input.aggregates)
    for (const host of aggregate.snapshot.hosts) places.set(host.name, { aggregate, host });
  const target = [...places.values()].filter(({ aggregate }) => aggregate.snapshot.aggregate === asked.to);
  const isTarget = new Set(target.map(({ host }) => host.name));
  const candidates = candidatesOf(asked, input, places, isTarget);
  const cluster = clusterOf(input, places, isTarget, candidates);
  const room = new Room(cluster, { departuresFree: false });
  const place = Int32Array.from(cluster.vmHost);
  const search: CellSearch = { input, cluster, places, target, room, checker: new Checker(place, room) };
  const refused: CellPlan['refused'][number][] = [];
  const found: { candidate: Candidate; hosts: readonly number[] }[] = [];

  // The largest first: only small gaps are left for the last ones.
  const sizes = sizesOf(cluster, candidates);
  const sizeOf = ({ server }: Candidate): number => sizes.get(server.id) ?? 0;
  for (const candidate of sortedBy(candidates, ({ server }) => server.id).sort((a, b) => sizeOf(b) - sizeOf(a))) {
    const vm = cluster.vmIndex.get(candidate.server.id);
    if (vm === undefined) continue;
    const { hosts, ground } =
      candidate.ground === null ? fit(search, candidate, vm) : { hosts: [], ground: candidate.ground };
    const [to] = hosts;
    if (to === undefined) {
      const { id, name, host } = candidate.server;
      refused.push({ serverId: id, serverName: name, host, reason: reasonOf(ground) });
      continue;
    }
    room.move(vm, int(place, vm), to);
    place[vm] = to;
    found.push({ candidate, hosts });
  }

  const waiting = new Map<string, number>();
  for (const { candidate } of found) waiting.set(candidate.server.host, (waiting.get(candidate.server.host) ?? 0) + 1);
  const ordered = sortedBy(found, ({ candidate: { server } }) => `${server.host} ${server.id}`).sort(
    (a, b) => (waiting.get(a.candidate.server.host) ?? 0) - (waiting.get(b.candidate.server.host) ?? 0),
  );
  const steps = ordered
    .slice(0, asked.limit ?? ordered.length)
    .map(({ candidate, hosts }) => stepOf(search, candidate, hosts));
  return {
    steps,
    refused: sortedBy(refused, (each) => `${each.host} ${each.serverId}`),
    left: ordered.length - steps.length,
    unknown: unknownNames(asked, input, places),
  };
}

/** The hosts that can take the server, best first, and the reasons of the others. */
function fit(
  search: CellSearch,
  { server, flavor, place: home }: Candidate,
  vm: number,
): { readonly hosts: readonly number[]; readonly ground: Ground } {
  const { input, cluster, target, checker } = search;
  const from = cellOf(home);
  const kept = keptBy(input, server);
  const counts: Partial<Record<ReasonCode, number>> = {};
  const share = shares(search);
  const fitting: { readonly host: number; readonly rank: number }[] = [];
  for (const there of target) {
    const host = entry(cluster.hostIndex, there.host.name);
    const same = cellOf(there) === from;
    const refusal = checker.refusal(vm, host);
    const lacks = flavor !== null && !mayTake(flavor, flavorHost(there)) ? 'missing-trait' : null;
    const code = refusal === 0 ? (lacks ?? (same ? null : (kept?.code ?? null))) : codeOfNumber(refusal);
    if (code === null) fitting.push({ host, rank: share(host) + (same ? input.crossCellWeight : 0) });
    else counts[code] = (counts[code] ?? 0) + 1;
  }
  const hosts = fitting.sort((a, b) => b.rank - a.rank || a.host - b.host).map(({ host }) => host);
  // If no other rule refuses a host, the reason that keeps the server in its cell applies.
  if (kept !== null && counts[kept.code] !== undefined) return { hosts, ground: kept };
  return { hosts, ground: groundOfCounts(counts) };
}

/** The reason that keeps a server in its cell; null: it may leave. */
const keptBy = ({ granted, facts, sharing }: CellsInput, server: ServerObservation): Ground | null =>
  granted === false ? { code: 'cell-policy', detail: {} } : uncrossable(server, own(facts, server.id) ?? null, sharing);

/** The one reason of all hosts, or that there is no destination; with the number of hosts by reason. */
function groundOfCounts(counts: Readonly<Partial<Record<ReasonCode, number>>>): Ground {
  const codes = Object.keys(counts).sort() as ReasonCode[];
  const detail = Object.fromEntries(codes.map((code) => [code, counts[code] ?? 0]));
  const [only = 'no-destination'] = codes;
  return { code: codes.length === 1 ? only : 'no-destination', detail };
}

/** A host's free memory, as a share of the most that a host of the target has free. */
function shares({ cluster, room, target }: CellSearch): (host: number) => number {
  const memory = cluster.resourceClasses.indexOf('MEMORY_MB');
  if (memory < 0) return () => 0;
  const freeOf = (host: number): number => Math.max(0, float(room.free, host * cluster.R + memory));
  let most = 0;
  for (const { host } of target) most = Math.max(most, freeOf(entry(cluster.hostIndex, host.name)));
  return (host) => (most === 0 ? 0 : freeOf(host) / most);
}

function stepOf(
  { input, cluster, places }: CellSearch,
  { server, place: home, flavor }: Candidate,
  hosts: readonly number[],
): CellStep {
  const to = item(cluster.hostNames, item(hosts, 0));
  const there = places.get(to) ?? home;
  const [fromCell, toCell] = [cellOf(home), cellOf(there)];
  const copied = fromCell === toCell || server.bootFromVolume ? 0 : server.diskGb;
  const { fixedSeconds, secondsPerGib } = input.pace;
  const { alternates } = home.aggregate.options;
  return {
    serverId: server.id,
    serverName: server.name,
    aggregate: home.aggregate.snapshot.aggregate,
    from: server.host,
    fromCell,
    to,
    toCell,
    alternates: hosts.slice(1, 1 + alternates).map((host) => item(cluster.hostNames, host)),
    method: flavor === null ? 'migrate' : 'resize',
    oldFlavor: server.flavor,
    newFlavor: flavor?.name ?? server.flavor,
    resources: flavor === null ? resourcesOf(server) : claimOf(flavor, server),
    ramMb: flavor?.ramMb ?? server.ramMb,
    diskGb: flavor?.diskGb ?? server.diskGb,
    downtimeSeconds: server.status === 'SHUTOFF' ? 0 : fixedSeconds + secondsPerGib * copied,
    why: reasonOf({ code: 'leaves-cell', detail: { fromCell: fromCell ?? '', toCell: toCell ?? '' } }),
  };
}

/** Both `[cells]` and `[nova] cells` can name it; null when neither does, or when they differ. */
function cellOf({ aggregate, host }: Place): string | null {
  if (aggregate.cell !== null && host.cell !== null && aggregate.cell !== host.cell) return null;
  return aggregate.cell ?? host.cell;
}

const flavorHost = ({ aggregate, host }: Place): FlavorHost => ({
  host,
  metadata: own(aggregate.metadata, host.name) ?? {},
});

const reasonOf = ({ code, detail }: Ground): Reason => ({ code, text: reasonMeanings[code], detail: { ...detail } });

/** The servers that the request names, each with its new flavor or the reason that it cannot move. */
function candidatesOf(
  asked: CellsAsked,
  input: CellsInput,
  places: ReadonlyMap<string, Place>,
  isTarget: ReadonlySet<string>,
): Candidate[] {
  const others = [...places.values()].filter(({ host }) => !isTarget.has(host.name)).map(flavorHost);
  const isAsked = serversAsked(asked);
  const seen = new Set<string>();
  const candidates: Candidate[] = [];
  for (const { snapshot, memory, options } of input.aggregates) {
    const now = timeMs(snapshot.time);
    const windowOf = vmWindows(options, now);
    const moving = new Set(snapshot.migrations.map(({ serverId }) => serverId));
    for (const server of snapshot.servers) {
      const place = places.get(server.host);
      if (place === undefined || isTarget.has(server.host) || seen.has(server.id)) continue;
      if (!isAsked(server, snapshot.aggregate)) continue;
      seen.add(server.id);
      const mapped = newFlavorOf(server, asked.flavorMap, input.flavors, others);
      const [flavor, unmapped] = mapped !== null && 'code' in mapped ? [null, mapped] : [mapped, null];
      const ground =
        remembered(server.id, memory, options, now) ??
        unmovableCold(server, place.host, { migrating: moving.has(server.id) }) ??
        windowOf(server).hard ??
        (cellOf(place) === null ? ({ code: 'cell-unknown', detail: { host: server.host } } as const) : null) ??
        unmapped;
      candidates.push({ server, place, flavor, ground });
    }
  }
  return candidates;
}

/** Whether a request names a server: by its aggregate or host, and by the server or its project where the request has them. */
function serversAsked(asked: CellsAsked): (server: ServerObservation, aggregate: string) => boolean {
  const from = new Set(asked.from);
  const only = asked.servers === null ? null : new Set(asked.servers);
  return ({ id, name, host, projectId }, aggregate) =>
    (from.has(aggregate) || from.has(host)) &&
    (only === null || only.has(id) || only.has(name)) &&
    (asked.project === null || projectId === asked.project);
}

/** The hosts of all aggregates as one cluster, so that the one checker applies. Moves between cells are legal here, and only to the target. */
function clusterOf(
  input: CellsInput,
  places: ReadonlyMap<string, Place>,
  isTarget: ReadonlySet<string>,
  candidates: readonly Candidate[],
): Cluster {
  const hosts = [...places.values()].map((place): HostPart => {
    const { aggregate, host } = place;
    const { options } = aggregate;
    const now = timeMs(aggregate.snapshot.time);
    const ground = hostGround(host, aggregate.memory, options, now);
    const unknownCell = cellOf(place) === null ? 'cell-unknown' : null;
    return {
      name: host.name,
      zone: host.availabilityZone,
      cell: null,
      hypervisorType: host.hypervisorType,
      // A guest that is started again can run on an older hypervisor.
      hypervisorVersion: 0,
      traits: host.traits,
      score: [],
      size: [],
      fullness: [],
      counted: false,
      refusal: isTarget.has(host.name) ? (ground?.code ?? unknownCell) : 'not-in-target',
      leaving: false,
      inventory: inventoryOf(host, input),
    };
  });
  const flavorOf = new Map(candidates.map(({ server, flavor }) => [server.id, flavor]));
  const vms = input.aggregates.flatMap(({ snapshot }) =>
    snapshot.servers.map((server): VmPart => {
      const flavor = flavorOf.get(server.id) ?? null;
      return {
        id: server.id,
        name: server.name,
        host: server.host,
        alsoOn: server.alsoOn,
        weight: [],
        resources: flavor === null ? resourcesOf(server) : claimOf(flavor, server),
        refusal: null,
        pin: server.pinnedAvailabilityZone,
        requiredTraits: traitsOf(flavor ?? server, 'required'),
        forbiddenTraits: traitsOf(flavor ?? server, 'forbidden'),
        ramMb: server.ramMb,
        diskGb: server.diskGb,
        vcpus: server.vcpus,
        copyGib: 0,
        evacuationOnly: null,
      };
    }),
  );
  const groups = new Map<string, GroupObservation>();
  for (const { snapshot } of input.aggregates)
    for (const group of snapshot.serverGroups) {
      const known = groups.get(group.id);
      groups.set(group.id, { ...group, members: [...new Set([...(known?.members ?? []), ...group.members])] });
    }
  const { softRules, softPenalty } = item(input.aggregates, 0).options;
  return buildCluster({
    policies: [],
    hosts,
    vms: [...new Map(vms.map((vm) => [vm.id, vm])).values()],
    groups: [...groups.values()],
    restrictToAz: false,
    softPenalty: softRules === 'penalty' ? softPenalty : null,
  });
}

/** Includes the future claims of released moves of any aggregate. Those of another one are in its own memory, where that is given. */
function inventoryOf(host: HostObservation, { aggregates }: CellsInput): HostObservation['inventory'] {
  if (host.inventory === null) return null;
  const given = new Set<string | undefined>(aggregates.map(({ snapshot }) => snapshot.aggregate));
  const claims = aggregates.flatMap(({ snapshot, memory }) =>
    memory.inFlight.filter(
      (task) => task.destination === host.name && !given.has(task.aggregate) && !claimSeen(task, snapshot),
    ),
  );
  return Object.fromEntries(
    Object.entries(host.inventory).map(([name, one]) => [
      name,
      { ...one, used: claims.reduce((used, { resources }) => used + (own(resources, name) ?? 0), one.used) },
    ]),
  );
}

/** By server: its largest share of a resource class, relative to the largest host of the target. */
function sizesOf(cluster: Cluster, candidates: readonly Candidate[]): ReadonlyMap<string, number> {
  const { R, H, capacity, demand, hostRefusal } = cluster;
  const largest = new Float64Array(R);
  for (let h = 0; h < H; h++)
    if (hostRefusal[h] !== codeNumber['not-in-target'])
      for (let r = 0; r < R; r++) largest[r] = Math.max(float(largest, r), float(capacity, h * R + r));
  const sizes = new Map<string, number>();
  for (const { server } of candidates) {
    const vm = cluster.vmIndex.get(server.id);
    if (vm === undefined) continue;
    let size = 0;
    for (let r = 0; r < R; r++)
      if (float(largest, r) > 0) size = Math.max(size, float(demand, vm * R + r) / float(largest, r));
    sizes.set(server.id, size);
  }
  return sizes;
}

function unknownNames(asked: CellsAsked, { aggregates }: CellsInput, places: ReadonlyMap<string, Place>): string[] {
  const names = new Set(aggregates.map(({ snapshot }) => snapshot.aggregate));
  const servers = new Set(aggregates.flatMap(({ snapshot }) => snapshot.servers.flatMap(({ id, name }) => [id, name])));
  return [
    ...asked.from.filter((name) => !names.has(name) && !places.has(name)),
    ...(names.has(asked.to) ? [] : [asked.to]),
    ...(asked.servers ?? []).filter((name) => !servers.has(name)),
  ];
}
