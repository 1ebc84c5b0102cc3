import {
  byText,
  completeEngineOptions,
  type HostObservation,
  type ServerObservation,
  type Shape,
} from '@kronos/contracts';
import { traitsFit, traitsOf } from '@kronos/facts';
import { float, int, item } from '../base/array.ts';
import { type Cluster, destinationsOf } from '../cluster/cluster.ts';
import { Checker, Room } from '../cluster/constraints.ts';
import type { DecideInput } from '../decide.ts';
import { type Failure, FailureRoom } from '../failover/failureRoom.ts';
import { decisionMs } from '../snapshot/memory.ts';
import { observe } from '../snapshot/observe.ts';

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
  /** New VMs that fit after the moves. */
  readonly after: number;
  /** True when no plan has fewer moves, or when none makes room for `wanted`. */
  readonly proven: boolean;
};

/** Moves that the search tries before it leaves a plan unproven. */
const MOST_TRIES = 100_000;

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
            },
          ];
    });
}

/** The number of new VMs of a shape that fit on each host. */
class Slots {
  readonly #cluster: Cluster;
  /** Class of the cluster, or -1 and the amount that each host has free, which no move changes. */
  readonly #claims: readonly { readonly amount: number; readonly r: number; readonly free: Float64Array }[];
  /** 1 for hosts that may take the shape at all. */
  readonly legal: Uint8Array;

  constructor(cluster: Cluster, hosts: ReadonlyMap<string, HostObservation>, shape: Shape) {
    this.#cluster = cluster;
    const claims = Object.entries(shape.resources).filter(([, amount]) => amount > 0);
    const seen = cluster.hostNames.map((name) => hosts.get(name));
    this.legal = Uint8Array.from(seen, (host, h) => {
      if (host?.inventory == null || int(cluster.hostRefusal, h) !== 0) return 0;
      if (traitsFit(host.traits, shape) !== true) return 0;
      return claims.every(([name, amount]) => {
        const found = host.inventory?.[name];
        if (found === undefined) return false;
        const { minUnit, maxUnit, stepSize } = found;
        return amount >= (minUnit ?? 0) && amount <= (maxUnit ?? amount) && amount % (stepSize ?? 1) === 0;
      })
        ? 1
        : 0;
    });
    this.#claims = claims.map(([name, amount]) => ({
      amount,
      r: cluster.resourceClasses.indexOf(name),
      free: Float64Array.from(seen, (host) => {
        const found = host?.inventory?.[name];
        return found === undefined ? 0 : found.capacity - found.used;
      }),
    }));
  }

  on(host: number, room: Room): number {
    if (this.legal[host] !== 1 || this.#claims.length === 0) return 0;
    let slots = Number.POSITIVE_INFINITY;
    for (const { amount, r, free } of this.#claims) {
      const left = r < 0 ? float(free, host) : float(room.free, host * this.#cluster.R + r);
      slots = Math.min(slots, Math.floor(left / amount));
    }
    return Math.max(0, Number.isFinite(slots) ? slots : 0);
  }

  all(room: Room): number {
    let total = 0;
    for (let h = 0; h < this.#cluster.H; h++) total += this.on(h, room);
    return total;
  }

  /** The number of further slots that a host can have once the VM has left it, at most. */
  gain(vm: number): number {
    const { demand, R } = this.#cluster;
    return this.#claims.reduce(
      (most, { amount, r }) => (r < 0 ? most : Math.max(most, Math.ceil(float(demand, vm * R + r) / amount))),
      0,
    );
  }
}

type Step = { readonly vm: number; readonly from: number; readonly to: number };

/** Makes room by moves of single VMs: each is legal when the ones before it have ended. */
class RoomMaker {
  readonly #cluster: Cluster;
  readonly #slots: Slots;
  readonly #movable: readonly number[];
  readonly #destinations: Int32Array;
  readonly #gain: number;
  #room: Room;
  #place: Int32Array;
  #checker: Checker;
  #tries = 0;

  constructor(cluster: Cluster, slots: Slots) {
    this.#cluster = cluster;
    this.#slots = slots;
    this.#movable = Array.from({ length: cluster.V }, (_, vm) => vm).filter(
      (vm) => int(cluster.vmRefusal, vm) === 0 && int(cluster.evacuationOnly, vm) === 0,
    );
    this.#gain = this.#movable.reduce((most, vm) => Math.max(most, slots.gain(vm)), 0);
    this.#destinations = destinationsOf(cluster);
    this.#room = new Room(cluster, true);
    this.#place = Int32Array.from(cluster.vmHost);
    this.#checker = new Checker(this.#place, this.#room);
  }

  run(
    wanted: number,
    now: number,
  ): { readonly steps: readonly Step[]; readonly after: number; readonly proven: boolean } {
    const greedy = this.#greedy(wanted, now);
    const reached = greedy.after >= wanted;
    const most = reached ? greedy.steps.length - 1 : this.#movable.length;
    for (let depth = 1; depth <= most; depth++) {
      const found = this.#search(wanted, now, depth);
      if (found !== null) return { steps: found, after: this.#after(found), proven: this.#tries <= MOST_TRIES };
      if (this.#tries > MOST_TRIES) return { ...greedy, proven: false };
    }
    return { ...greedy, proven: true };
  }

  #reset(): void {
    this.#room = new Room(this.#cluster, true);
    this.#place = Int32Array.from(this.#cluster.vmHost);
    this.#checker = new Checker(this.#place, this.#room);
  }

  #after(steps: readonly Step[]): number {
    this.#reset();
    for (const step of steps) this.#apply(step);
    return this.#slots.all(this.#room);
  }

  #apply({ vm, from, to }: Step): void {
    this.#room.move(vm, from, to);
    this.#place[vm] = to;
  }

  #undo({ vm, from, to }: Step): void {
    this.#room.undo(vm, from, to);
    this.#place[vm] = from;
  }

  /** Frees one more slot at a time, on the host that needs the fewest moves for it. */
  #greedy(wanted: number, now: number): { readonly steps: readonly Step[]; readonly after: number } {
    this.#reset();
    const steps: Step[] = [];
    const moved = new Set<number>();
    let after = now;
    while (after < wanted) {
      let best: { readonly steps: readonly Step[]; readonly gain: number } | null = null;
      for (let host = 0; host < this.#cluster.H; host++) {
        if (this.#slots.legal[host] !== 1) continue;
        const found = this.#vacate(host, moved, after);
        if (found === null) continue;
        if (
          best === null ||
          found.steps.length < best.steps.length ||
          (found.steps.length === best.steps.length && found.gain > best.gain)
        )
          best = found;
      }
      if (best === null) break;
      for (const step of best.steps) {
        this.#apply(step);
        moved.add(step.vm);
        steps.push(step);
      }
      after += best.gain;
    }
    return { steps, after };
  }

  /** Moves VMs off one host, the most useful one first, until the cluster has one slot more; null when that fails. */
  #vacate(host: number, moved: ReadonlySet<number>, before: number): { steps: Step[]; gain: number } | null {
    const vms = this.#movable
      .filter((vm) => int(this.#place, vm) === host && !moved.has(vm))
      .sort((a, b) => this.#slots.gain(b) - this.#slots.gain(a) || a - b);
    const steps: Step[] = [];
    let gain = 0;
    for (const vm of vms) {
      let best: Step | null = null;
      let most = Number.NEGATIVE_INFINITY;
      for (const to of this.#destinations) {
        if (this.#checker.refusal(vm, to) !== 0) continue;
        const step = { vm, from: host, to };
        const lost = this.#slots.on(to, this.#room);
        this.#apply(step);
        const kept = this.#slots.on(to, this.#room) - lost;
        this.#undo(step);
        if (kept > most) [best, most] = [step, kept];
      }
      if (best === null) continue;
      this.#apply(best);
      steps.push(best);
      gain = this.#slots.all(this.#room) - before;
      if (gain > 0) break;
    }
    for (const step of steps.toReversed()) this.#undo(step);
    return gain > 0 ? { steps, gain } : null;
  }

  /** Tries all sequences of `depth` moves, except those that cannot reach the aim. A VM moves at most once. */
  #search(wanted: number, now: number, depth: number): readonly Step[] | null {
    this.#reset();
    const steps: Step[] = [];
    const seen = new Set<string>();
    const next = (slots: number, left: number): boolean => {
      if (slots >= wanted) return true;
      if (left === 0 || slots + left * this.#gain < wanted || this.#tries > MOST_TRIES) return false;
      const key = `${left} ${this.#place.join()}`;
      if (seen.has(key)) return false;
      seen.add(key);
      for (const vm of this.#movable) {
        const from = int(this.#place, vm);
        if (from !== int(this.#cluster.vmHost, vm)) continue;
        for (const to of this.#destinations) {
          if (++this.#tries > MOST_TRIES) return false;
          if (this.#checker.refusal(vm, to) !== 0) continue;
          const before = this.#slots.on(from, this.#room) + this.#slots.on(to, this.#room);
          const step = { vm, from, to };
          this.#apply(step);
          steps.push(step);
          const after = this.#slots.on(from, this.#room) + this.#slots.on(to, this.#room);
          if (next(slots + after - before, left - 1)) return true;
          steps.pop();
          this.#undo(step);
        }
      }
      return false;
    };
    return next(now, depth) ? steps : null;
  }
}

function clusterOf({ snapshot, memory, options }: DecideInput): Cluster {
  return observe(snapshot, memory, completeEngineOptions(options), decisionMs(snapshot, memory)).cluster;
}

const byName = (hosts: readonly HostObservation[]): ReadonlyMap<string, HostObservation> =>
  new Map(hosts.map((host) => [host.name, host]));

/**
 * Counts the new VMs of a shape that fit, and finds moves that make room for more. It uses the rules and capacities of the planner.
 * It ignores the thresholds of policies, because the load of the new VMs is unknown.
 */
export function fit(input: DecideInput, shape: Shape, wanted: number): Fit {
  return makeRoom(clusterOf(input), input.snapshot.hosts, shape, wanted).fit;
}

/** As {@link fit}, with the moves by their numbers in the cluster. */
export function makeRoom(
  cluster: Cluster,
  seen: readonly HostObservation[],
  shape: Shape,
  wanted: number,
): { readonly fit: Fit; readonly moves: readonly { readonly vm: number; readonly to: number }[] } {
  const slots = new Slots(cluster, byName(seen), shape);
  const room = new Room(cluster, true);
  const now = slots.all(room);
  const hosts = cluster.hostNames.flatMap((host, h) => {
    const count = slots.on(h, room);
    return count === 0 ? [] : [{ host, slots: count }];
  });
  if (now >= wanted) return { fit: { shape, wanted, now, hosts, moves: [], after: now, proven: true }, moves: [] };
  const { steps, after, proven } = new RoomMaker(cluster, slots).run(wanted, now);
  const moves = steps.map(({ vm, from, to }) => ({
    serverId: item(cluster.vmIds, vm),
    serverName: item(cluster.vmNames, vm),
    from: item(cluster.hostNames, from),
    to: item(cluster.hostNames, to),
  }));
  return { fit: { shape, wanted, now, hosts, moves, after, proven }, moves: steps };
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
  const room = new Room(cluster, true);
  return {
    flavors: shapesOf(input.snapshot.servers).map((shape) => ({
      shape,
      slots: new Slots(cluster, hosts, shape).all(room),
    })),
    failures: Array.from({ length: Math.min(most, cluster.H - 1) }, (_, i) => ({
      count: i + 1,
      tested: i === 0 ? 'each' : 'with-largest',
      losses: new FailureRoom(cluster, i + 1).all().map((failure) => lossOf(cluster, failure)),
    })),
  };
}

function lossOf(cluster: Cluster, { hosts, vms, stranded, to, proven }: Failure): Loss {
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
