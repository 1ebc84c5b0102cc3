import {
  byText,
  type CompleteEngineOptions,
  type HostObservation,
  type ServerObservation,
  type Shape,
} from '@kronos/contracts';
import { traitsOf } from '@kronos/facts';
import { cellNeedsOf } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { Room } from '../cluster/constraints.ts';
import type { DecideInput } from '../decide.ts';
import { FailureRoom, type HostsFailure } from '../failover/failureRoom.ts';
import { decisionMs } from '../snapshot/memory.ts';
import { observe } from '../snapshot/observe.ts';
import { RoomMaker } from './roomMaker.ts';
import { ShapeSlots } from './slots.ts';

type Move = { readonly serverId: string; readonly serverName: string; readonly from: string; readonly to: string };

export type Fit = {
  readonly shape: Shape;
  readonly wanted: number;
  /** New VMs that fit without any move. */
  readonly now: number;
  /** The same by host; hosts without room are left out. */
  readonly hosts: readonly { readonly host: string; readonly slots: number }[];
  /** Moves that make room for more, in an order in which each is legal; empty when `now` is enough. */
  readonly moves: readonly Move[];
  /** GiB that the moves copy, with `move_overhead_gib` for each. */
  readonly costGib: number;
  /** New VMs that fit after the moves. */
  readonly after: number;
  /** True when no plan has fewer moves, or when none makes room for `wanted`. */
  readonly proven: boolean;
};

/**
 * The flavors of the VMs of a snapshot. VMs of one flavor can claim different amounts (some boot from a volume): the amount that
 * most of them claim counts.
 */
export function shapesOf(servers: readonly ServerObservation[]): Shape[] {
  const named = servers.filter(({ flavor }) => flavor !== null);
  return [...Map.groupBy(named, ({ flavor }) => flavor ?? '')]
    .sort(([a], [b]) => byText(a, b))
    .flatMap(([name, of]) => {
      const alike = [...Map.groupBy(of, ({ resources }) => JSON.stringify(Object.entries(resources).sort())).values()];
      const [first] = alike.reduce((most, one) => (one.length > most.length ? one : most), []);
      return first === undefined
        ? []
        : [
            {
              name,
              resources: first.resources,
              requiredTraits: traitsOf(first, 'required'),
              forbiddenTraits: traitsOf(first, 'forbidden'),
              ...cellsOf(first),
            },
          ];
    });
}

/** The NUMA cells of a new server like this one. */
function cellsOf(server: ServerObservation): Pick<Shape, 'cells'> {
  const needs = cellNeedsOf(server);
  if (needs === null) return {};
  return {
    cells: needs === 'unknown' ? null : needs.map(({ smallPages: _, ...need }) => ({ ...need, hostCell: null })),
  };
}

function clusterOf({ snapshot, memory, options }: DecideInput): Cluster {
  return observe(snapshot, memory, options, decisionMs(snapshot, memory)).cluster;
}

const byName = (hosts: readonly HostObservation[]): ReadonlyMap<string, HostObservation> =>
  new Map(hosts.map((host) => [host.name, host]));

/** Judging a move for room takes as long as judging this many moves for balance. */
const WORK_OF_ONE = 10;

/** The options of a search for room. */
export type RoomOptions = Pick<CompleteEngineOptions, 'searchWorkLimit' | 'moveOverheadGib'> & {
  /** Moves of the plan, at most. Absent: any number. */
  readonly maxMoves?: number | undefined;
};

/**
 * Counts the new VMs of a shape that fit, and finds moves that make room for more. It uses the rules and capacities of the planner.
 * It ignores the thresholds of policies, because the load of the new VMs is unknown.
 */
export function fit(input: DecideInput, shape: Shape, wanted: number, maxMoves?: number): Fit {
  const options = { ...input.options, maxMoves };
  return makeRoom(clusterOf(input), input.snapshot.hosts, { shape, wanted }, options).fit;
}

/** As {@link fit}, with the moves by their numbers in the cluster. */
export function makeRoom(
  cluster: Cluster,
  seen: readonly HostObservation[],
  { shape, wanted }: { readonly shape: Shape; readonly wanted: number },
  { searchWorkLimit, moveOverheadGib, maxMoves }: RoomOptions,
): { readonly fit: Fit; readonly moves: readonly { readonly vm: number; readonly to: number }[] } {
  const slots = new ShapeSlots(cluster, byName(seen), shape);
  const room = new Room(cluster, { departuresFree: true });
  const now = slots.all(room);
  const hosts = cluster.hostNames.flatMap((host, h) => {
    const count = slots.on(h, room);
    return count === 0 ? [] : [{ host, slots: count }];
  });
  const start = { shape, wanted, now, hosts };
  if (now >= wanted) return { fit: { ...start, moves: [], costGib: 0, after: now, proven: true }, moves: [] };
  const limits = { work: searchWorkLimit / WORK_OF_ONE, moves: maxMoves ?? Number.POSITIVE_INFINITY };
  const { steps, after, proven } = new RoomMaker(cluster, slots, limits).run(wanted, now);
  const moves = steps.map(({ vm, from, to }) => ({
    serverId: item(cluster.vmIds, vm),
    serverName: item(cluster.vmNames, vm),
    from: item(cluster.hostNames, from),
    to: item(cluster.hostNames, to),
  }));
  const costGib = steps.reduce((sum, { vm }) => sum + float(cluster.copyGib, vm) + moveOverheadGib, 0);
  return { fit: { ...start, moves, costGib, after, proven }, moves: steps };
}

type Loss = {
  /** The hosts that fail together. */
  readonly hosts: readonly string[];
  readonly servers: number;
  /** VMs that no other host takes: the fewest that the search finds. */
  readonly stranded: readonly Placed[];
  /** Where the other VMs go. */
  readonly placed: readonly (Placed & { readonly to: string })[];
  /** True when no placement leaves fewer behind. */
  readonly proven: boolean;
};

type Placed = { readonly serverId: string; readonly serverName: string; readonly host: string };

export type Headroom = {
  readonly flavors: readonly { readonly shape: Shape; readonly slots: number }[];
  /** By the number of hosts that fail together, from 1. */
  readonly failures: readonly {
    readonly count: number;
    /** `each`: every host. `with-largest`: every host, together with the others whose VMs have the most RAM. */
    readonly tested: 'each' | 'with-largest';
    readonly losses: readonly Loss[];
  }[];
};

/** The number of new VMs of each flavor that fit, and whether the other hosts can take the VMs of 1 to `most` hosts that fail. */
export function headroom(input: DecideInput, most: number): Headroom {
  const cluster = clusterOf(input);
  const hosts = byName(input.snapshot.hosts);
  const room = new Room(cluster, { departuresFree: true });
  return {
    flavors: shapesOf(input.snapshot.servers).map((shape) => ({
      shape,
      slots: new ShapeSlots(cluster, hosts, shape).all(room),
    })),
    failures: Array.from({ length: Math.min(most, cluster.H - 1) }, (_, i) => ({
      count: i + 1,
      tested: i === 0 ? 'each' : 'with-largest',
      losses: new FailureRoom(cluster, i + 1).all().map((failure) => lossOf(cluster, failure)),
    })),
  };
}

function lossOf(cluster: Cluster, { hosts, vms, stranded, to, proven }: HostsFailure): Loss {
  const nameOf = (host: number): string => item(cluster.hostNames, host);
  const named = (vm: number): Placed => ({
    serverId: item(cluster.vmIds, vm),
    serverName: item(cluster.vmNames, vm),
    host: nameOf(int(cluster.vmHost, vm)),
  });
  return {
    hosts: hosts.map(nameOf),
    servers: vms,
    stranded: stranded.map(named),
    placed: [...to].map(([vm, host]) => ({ ...named(vm), to: nameOf(host) })),
    proven,
  };
}
