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
import { Checker, NO_REPAIR, Room } from '../cluster/constraints.ts';
import type { DecideInput } from '../decide.ts';
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
  /** The hosts that fail: those whose VMs have the most RAM. */
  readonly hosts: readonly string[];
  readonly servers: number;
  /** VMs that no other host takes: the fewest that the search finds. */
  readonly stranded: readonly { readonly serverId: string; readonly serverName: string; readonly host: string }[];
  /** True when no placement leaves fewer behind. */
  readonly proven: boolean;
};

export type Headroom = {
  readonly flavors: readonly { readonly shape: Shape; readonly slots: number }[];
  readonly losses: readonly Loss[];
};

/** The number of new VMs of each flavor that fit, and whether the other hosts can take the VMs of the 1 to `most` largest hosts. */
export function headroom(input: DecideInput, most: number): Headroom {
  const cluster = clusterOf(input);
  const hosts = byName(input.snapshot.hosts);
  const room = new Room(cluster, true);
  const ram = new Float64Array(cluster.H);
  for (let vm = 0; vm < cluster.V; vm++) {
    const host = int(cluster.vmHost, vm);
    ram[host] = float(ram, host) + float(cluster.ramMb, vm);
  }
  const largest = [...ram.keys()].sort((a, b) => float(ram, b) - float(ram, a) || a - b);
  return {
    flavors: shapesOf(input.snapshot.servers).map((shape) => ({
      shape,
      slots: new Slots(cluster, hosts, shape).all(room),
    })),
    losses: Array.from({ length: Math.min(most, cluster.H - 1) }, (_, i) => loss(cluster, largest.slice(0, i + 1))),
  };
}

/** The placement of the VMs of failed hosts. */
function loss(cluster: Cluster, lost: readonly number[]): Loss {
  const gone = new Set(lost);
  const vms = Array.from({ length: cluster.V }, (_, vm) => vm).filter((vm) => gone.has(int(cluster.vmHost, vm)));
  const found = new Refuge(cluster, gone, vms).run();
  return {
    hosts: lost.map((host) => item(cluster.hostNames, host)),
    servers: vms.length,
    stranded: found.stranded.map((vm) => ({
      serverId: item(cluster.vmIds, vm),
      serverName: item(cluster.vmNames, vm),
      host: item(cluster.hostNames, int(cluster.vmHost, vm)),
    })),
    proven: found.proven,
  };
}

/** Finds hosts for the VMs of failed hosts. */
class Refuge {
  readonly #cluster: Cluster;
  readonly #vms: readonly number[];
  readonly #lost: ReadonlySet<number>;
  readonly #destinations: readonly number[];
  readonly #room: Room;
  readonly #place: Int32Array;
  readonly #checker: Checker;
  #tries = 0;

  constructor(cluster: Cluster, lost: ReadonlySet<number>, vms: readonly number[]) {
    this.#cluster = cluster;
    this.#lost = lost;
    const { demand, R, capacity, H } = cluster;
    const largest = Float64Array.from({ length: R }, (_, r) => {
      let most = 0;
      for (let h = 0; h < H; h++)
        if (Number.isFinite(float(capacity, h * R + r))) most = Math.max(most, float(capacity, h * R + r));
      return most;
    });
    const share = (vm: number): number => {
      let most = 0;
      for (let r = 0; r < R; r++)
        if (float(largest, r) > 0) most = Math.max(most, float(demand, vm * R + r) / float(largest, r));
      return most;
    };
    this.#vms = vms.toSorted((a, b) => share(b) - share(a) || a - b);
    this.#destinations = [...destinationsOf(cluster)].filter((host) => !lost.has(host));
    this.#room = new Room(cluster, false);
    this.#place = Int32Array.from(cluster.vmHost);
    this.#checker = new Checker(this.#place, this.#room);
  }

  run(): { readonly stranded: readonly number[]; readonly proven: boolean } {
    // A first-fit placement gives an upper bound on the number of VMs that are left behind.
    const stranded: number[] = [];
    const placed: (readonly [number, number])[] = [];
    for (const vm of this.#vms) {
      const [host] = this.#hostsFor(vm);
      if (host === undefined) stranded.push(vm);
      else {
        this.#enter(vm, host);
        placed.push([vm, host]);
      }
    }
    for (const [vm, host] of placed.toReversed()) this.#leave(vm, host);
    for (let behind = 0; behind < stranded.length; behind++) {
      const left: number[] = [];
      if (this.#next(0, behind, left)) return { stranded: left, proven: this.#tries <= MOST_TRIES };
      if (this.#tries > MOST_TRIES) return { stranded, proven: false };
    }
    return { stranded, proven: true };
  }

  #next(i: number, behind: number, left: number[]): boolean {
    const vm = this.#vms[i];
    if (vm === undefined) return true;
    for (const host of this.#hostsFor(vm)) {
      if (++this.#tries > MOST_TRIES) return false;
      this.#enter(vm, host);
      if (this.#next(i + 1, behind, left)) return true;
      this.#leave(vm, host);
    }
    if (left.length >= behind) return false;
    left.push(vm);
    if (this.#next(i + 1, behind, left)) return true;
    left.pop();
    return false;
  }

  #enter(vm: number, host: number): void {
    this.#room.arrive(vm, host);
    this.#place[vm] = host;
  }

  #leave(vm: number, host: number): void {
    this.#room.depart(vm, host);
    this.#place[vm] = int(this.#cluster.vmHost, vm);
  }

  /** Hosts that can take the VM, the fullest first. */
  #hostsFor(vm: number): number[] {
    const { groups, vmGroups, R } = this.#cluster;
    // An affinity group whose members are all on failed hosts may start again on any host, together.
    const g = (vmGroups[vm] ?? []).find((one) => groups[one]?.affine === true && groups[one].strict) ?? NO_REPAIR;
    const homes = new Set(
      (g === NO_REPAIR ? [] : (groups[g]?.members ?? []))
        .filter((other) => other !== vm)
        .map((other) => int(this.#place, other))
        .filter((host) => !this.#lost.has(host)),
    );
    const left = (host: number): number => {
      let total = 0;
      for (let r = 0; r < R; r++) {
        const free = float(this.#room.free, host * R + r);
        if (Number.isFinite(free)) total += free;
      }
      return total;
    };
    return this.#destinations
      .filter((host) => homes.size === 0 || homes.has(host))
      .filter((host) => this.#checker.refusal(vm, host, g) === 0)
      .sort((a, b) => left(a) - left(b) || a - b);
  }
}
