import type { Decision } from '@kronos/contracts';
import { float, int, item } from '../base/array.ts';
import { type Cluster, destinationsOf } from '../cluster/cluster.ts';
import { Room } from '../cluster/constraints.ts';
import {
  byHardRules,
  type Evacuees,
  evacueesOf,
  type FailureState,
  findRefuge,
  kindOf,
  type Refuge,
  stillFits,
} from './refuge.ts';

/** Legality checks of the search for a failure that strands VMs already. */
const FEW_CHECKS = 20_000;

/** Hosts that fail together, and what becomes of their VMs. */
export type HostsFailure = Refuge & { readonly hosts: readonly number[]; readonly vms: number };

/**
 * The sets of hosts whose failure is tested: each host by itself, or with the `count - 1` other hosts whose VMs have the most RAM. For
 * one host the test is exact. For more it covers each single host and the largest ones, not every set.
 */
function failuresOf(cluster: Cluster, place: Int32Array, count: number): readonly (readonly number[])[] {
  if (count === 0) return [];
  const ram = new Float64Array(cluster.H);
  for (let vm = 0; vm < cluster.V; vm++) {
    const host = int(place, vm);
    ram[host] = float(ram, host) + float(cluster.ramMb, vm);
  }
  const largest = [...ram.keys()].sort((a, b) => float(ram, b) - float(ram, a) || a - b);
  const sets = new Map<string, readonly number[]>();
  for (const host of largest) {
    const others = largest.filter((other) => other !== host).slice(0, count - 1);
    const set = [host, ...others].sort((a, b) => a - b);
    sets.set(set.join(), set);
  }
  return [...sets.values()];
}

/**
 * Whether the VMs of failed hosts would have hosts, for a placement that moves change. It keeps a host for each VM of each failure, so
 * that the test of a move mostly repeats what was found before.
 */
export class FailureRoom {
  readonly count: number;
  readonly #cluster: Cluster;
  readonly #state: FailureState;
  readonly #hosts: readonly number[];
  /** Fixed at the start, so that states can be compared. */
  readonly #failures: readonly (readonly number[])[];
  /** By failed hosts: where the VMs go. Absent: they do not fit. */
  readonly #refuge = new Map<string, ReadonlyMap<number, number>>();
  /** By the list of failed hosts: their VMs in this state. Absent: not known yet. */
  readonly #evacuees = new Map<readonly number[], Evacuees>();

  /** @param count hosts that fail together, at least 1 */
  constructor(cluster: Cluster, count: number) {
    this.count = count;
    this.#cluster = byHardRules(cluster);
    this.#state = {
      cluster: this.#cluster,
      room: new Room(this.#cluster, { departuresFree: true }),
      place: Int32Array.from(cluster.vmHost),
    };
    this.#hosts = [...destinationsOf(cluster)];
    this.#failures = failuresOf(cluster, this.#state.place, count);
  }

  /** Makes one move. */
  move(vm: number, to: number): void {
    const { place, room } = this.#state;
    const from = int(place, vm);
    for (const hosts of this.#failures) if (hosts.includes(from) || hosts.includes(to)) this.#evacuees.delete(hosts);
    room.move(vm, from, to);
    place[vm] = to;
    const { vmKey, vmKind, sources, hostSource } = this.#cluster;
    vmKey[vm] = int(vmKind, vm) * sources + int(hostSource, to);
  }

  at(vm: number): number {
    return int(this.#state.place, vm);
  }

  /** Each failure of hosts with VMs, with the fewest VMs that it strands. */
  all(): readonly HostsFailure[] {
    return this.#failures.flatMap((hosts) => {
      const found = findRefuge(this.#state, this.#evacueesOf(hosts));
      this.#keep(hosts, found);
      const vms = found.to.size + found.stranded.length;
      return vms === 0 ? [] : [{ ...found, hosts, vms }];
    });
  }

  /**
   * By failed hosts: how many VMs would have no host, at least 1 where it is not known that all have one. Only failures that strand VMs.
   *
   * @param known failures that strand VMs already: the search for a place for these is short.
   */
  gaps(known: Gaps = noGaps): Gaps {
    return this.#gaps(known, Number.POSITIVE_INFINITY) ?? noGaps;
  }

  /** {@link gaps} where no failure strands more VMs than `known` says; null as soon as one does. */
  gapsIfKept(known: Gaps): Gaps | null {
    return this.#gaps(known, 0);
  }

  /**
   * {@link gapsIfKept} after a move, which is undone. VMs of one kind replace each other: a failure that strands VMs after the move of one
   * of them is not searched again for the others between the same two hosts.
   *
   * @param tried what earlier calls found in this state, with the same `known`
   */
  gapsAfter({ vm, to }: { readonly vm: number; readonly to: number }, known: Gaps, tried: Tried): Gaps | null {
    const from = this.at(vm);
    const alike = `${kindOf(this.#state, vm)} ${from} ${to}`;
    const strandedBy = tried.get(alike) ?? new Map<string, number>();
    tried.set(alike, strandedBy);
    this.move(vm, to);
    const gaps = this.#gaps(known, 0, strandedBy);
    this.move(vm, from);
    return gaps;
  }

  /**
   * @param further VMs that a failure may strand beyond those that are known
   * @param searched by failed hosts: how many VMs a search left stranded in such a state
   */
  #gaps(known: Gaps, further: number, searched = new Map<string, number>()): Gaps | null {
    const gaps = new Map<string, number>();
    for (const hosts of this.#failures) {
      const key = hosts.join();
      const kept = this.#refuge.get(key);
      if (kept !== undefined && stillFits(this.#state, this.#evacueesOf(hosts), kept)) continue;
      const before = known.get(key) ?? 0;
      const stranded = searched.get(key) ?? this.#search(hosts, before);
      if (stranded > 0) {
        searched.set(key, stranded);
        this.#refuge.delete(key);
      }
      if (stranded > before + further) return null;
      if (stranded > 0) gaps.set(key, stranded);
    }
    return gaps;
  }

  /** How many VMs the failure strands. Where it strands none, the hosts of its VMs are kept. */
  #search(hosts: readonly number[], known: number): number {
    const short = known === 0 ? {} : { limit: FEW_CHECKS, enough: known };
    const found = findRefuge(this.#state, this.#evacueesOf(hosts), short);
    this.#keep(hosts, found);
    return found.stranded.length;
  }

  #evacueesOf(hosts: readonly number[]): Evacuees {
    const evacuees = this.#evacuees.get(hosts) ?? evacueesOf(this.#state, new Set(hosts), this.#hosts);
    this.#evacuees.set(hosts, evacuees);
    return evacuees;
  }

  #keep(hosts: readonly number[], { to, stranded }: Refuge): void {
    if (stranded.length === 0) this.#refuge.set(hosts.join(), to);
    else this.#refuge.delete(hosts.join());
  }

  /** The hosts of a key of {@link gaps}. */
  static hostsOf(key: string): readonly number[] {
    return key.split(',').map(Number);
  }
}

export type Gaps = ReadonlyMap<string, number>;

/** By kind of VM, its host and its destination: by failed hosts, how many VMs would have no host; at least 1. */
export type Tried = Map<string, Map<string, number>>;

const noGaps: Gaps = new Map();

/** Failures and VMs that a decision names. */
const FAILURES_NAMED = 10;
const SERVERS_NAMED = 10;

/** The failures as a decision records them. */
export function recorded(
  cluster: Cluster,
  count: number,
  failures: readonly HostsFailure[],
): NonNullable<Decision['failover']> {
  const lacking = failures.filter(({ stranded }) => stranded.length > 0);
  const nameOf = (host: number): string => item(cluster.hostNames, host);
  return {
    hosts: count,
    tested: failures.length,
    lacking: lacking.length,
    failures: lacking.slice(0, FAILURES_NAMED).map(({ hosts, vms, stranded, proven }) => ({
      hosts: hosts.map(nameOf),
      servers: vms,
      stranded: stranded.length,
      names: stranded.slice(0, SERVERS_NAMED).map((vm) => item(cluster.vmNames, vm)),
      proven,
    })),
  };
}
