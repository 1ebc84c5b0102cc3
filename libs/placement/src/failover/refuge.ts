import { float, int, item } from '../base/array.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { Checker, fitsUnits, NO_REPAIR, type Room } from '../cluster/constraints.ts';

/** A state of the cluster in which hosts may fail. A search changes it, and leaves it as it was. */
export type FailureState = {
  readonly cluster: Cluster;
  /** Departures free room. */
  readonly room: Room;
  /** The host of every VM. */
  readonly place: Int32Array;
  /** A further limit of hosts beside amounts and rules. */
  readonly load?: {
    /** By policy: the amount of a VM, and what a host has left, in one unit. */
    readonly policies: number;
    readonly amount: (vm: number, policy: number) => number;
    readonly left: (host: number, policy: number) => number;
    readonly takes: (vm: number, host: number) => boolean;
    readonly add: (vm: number, host: number, sign: 1 | -1) => void;
  };
};

export type Refuge = {
  /** By VM of the failed hosts: the host that takes it. */
  readonly to: ReadonlyMap<number, number>;
  /** VMs that no host takes: the fewest that the search found. */
  readonly stranded: readonly number[];
  /** No placement strands fewer. */
  readonly proven: boolean;
};

/** Legality checks of one search, at most. */
const MOST_CHECKS = 200_000;

/** A copy in which only hard groups count: Nova weighs soft ones when it chooses a host for an evacuation. */
export const byHardRules = (cluster: Cluster): Cluster => ({
  ...cluster,
  vmKey: Int32Array.from(cluster.vmKey),
  groups: cluster.groups.map((group) => (group.hard ? group : { ...group, strict: false })),
});

/** The VMs of hosts that fail together, as one state has them. They stay the same until a VM comes to these hosts or leaves them. */
export type Evacuees = {
  readonly home: ReadonlyMap<number, number>;
  /** Hosts that may take them. */
  readonly hosts: readonly number[];
  /** Hosts with equal amounts are alike: neither groups nor cells nor loads nor limits of units tell them apart. */
  readonly alike: boolean;
  readonly order: () => Order;
};

type Order = {
  /** The hardest VMs first; VMs of one kind follow each other. */
  readonly vms: readonly number[];
  /** By place in the order: the next VM is of the same kind. */
  readonly same: readonly boolean[];
};

/** @param hosts that may take VMs; the failed ones among them take none. */
export function evacueesOf(state: FailureState, lost: ReadonlySet<number>, hosts: readonly number[]): Evacuees {
  const { cluster, place, load } = state;
  const home = new Map<number, number>();
  for (let vm = 0; vm < cluster.V; vm++) if (lost.has(int(place, vm))) home.set(vm, int(place, vm));
  const grouped = home.keys().some((vm) => (cluster.vmGroups[vm] ?? []).some((g) => cluster.groups[g]?.strict));
  const open = hosts.filter((host) => !lost.has(host));
  let order: Order | null = null;
  return {
    home,
    hosts: open,
    alike: !grouped && cluster.units === null && cluster.numa === null && load === undefined,
    order: () => (order ??= inOrder(state, [...home.keys()], open)),
  };
}

/**
 * Finds hosts for the VMs of failed hosts: an exact search for the fewest stranded VMs, with a limit. Affinity groups whose members are
 * all on failed hosts may start on any host, together.
 *
 * @param within `limit`: legality checks, at most; `enough`: what first fit finds is taken where it strands no more VMs than this.
 */
export function findRefuge(
  state: FailureState,
  evacuees: Evacuees,
  within: { readonly limit?: number; readonly enough?: number } = {},
): Refuge {
  const { limit = MOST_CHECKS, enough = 0 } = within;
  const search = new Search(state, evacuees, limit);
  try {
    return search.fewest(enough);
  } finally {
    search.restore();
  }
}

/** VMs of one kind replace each other. A VM with a group, cells or loads is a kind of its own. */
export function kindOf({ cluster, load }: FailureState, vm: number): string {
  const { R, demand, vmGroups, vmKey, numa } = cluster;
  const alone = (vmGroups[vm]?.length ?? 0) > 0 || numa !== null || load !== undefined;
  const own = alone ? ` ${vm}` : '';
  return `${int(vmKey, vm)} ${demand.subarray(vm * R, vm * R + R).join()}${own}`;
}

/** True when the VMs of the failed hosts still fit where `to` says. */
export function stillFits(state: FailureState, evacuees: Evacuees, to: ReadonlyMap<number, number>): boolean {
  const search = new Search(state, evacuees, 0);
  try {
    return search.accepts(to);
  } finally {
    search.restore();
  }
}

function inOrder(state: FailureState, vms: readonly number[], hosts: readonly number[]): Order {
  const { cluster, load } = state;
  const { R, H, capacity, demand } = cluster;
  const largest = Float64Array.from({ length: R }, (_, r) => {
    let most = 0;
    for (let h = 0; h < H; h++)
      if (Number.isFinite(float(capacity, h * R + r))) most = Math.max(most, float(capacity, h * R + r));
    return most;
  });
  const kind = new Map(vms.map((vm) => [vm, kindOf(state, vm)]));
  const hard = new Map<number, number>();
  const ofKind = new Map<string, number>();
  for (const vm of vms) {
    const known = ofKind.get(kind.get(vm) ?? '');
    if (known !== undefined) {
      hard.set(vm, known);
      continue;
    }
    let share = 0;
    for (let r = 0; r < R; r++)
      if (float(largest, r) > 0) share = Math.max(share, float(demand, vm * R + r) / float(largest, r));
    for (let p = 0; p < (load?.policies ?? 0); p++) share = Math.max(share, load?.amount(vm, p) ?? 0);
    const legal = hosts.filter((host) => mayHold(cluster, vm, host)).length;
    const hardness = legal === 0 ? Number.POSITIVE_INFINITY : share / legal;
    hard.set(vm, hardness);
    ofKind.set(kind.get(vm) ?? '', hardness);
  }
  const sorted = vms.toSorted((a, b) => {
    const [x, y] = [hard.get(a) ?? 0, hard.get(b) ?? 0];
    if (x !== y) return y - x;
    const [p, q] = [kind.get(a) ?? '', kind.get(b) ?? ''];
    return p < q ? -1 : p > q ? 1 : a - b;
  });
  return {
    vms: sorted,
    same: sorted.map((vm, i) => i + 1 < sorted.length && kind.get(item(sorted, i + 1)) === kind.get(vm)),
  };
}

/** Whatever is on the host: kinds of VMs and hosts, and limits of units. */
function mayHold(cluster: Cluster, vm: number, host: number): boolean {
  const { keyLegal, vmKey, classes, hostClass, hostRefusal, units, R, demand } = cluster;
  if (int(hostRefusal, host) !== 0) return false;
  if (int(keyLegal, int(vmKey, vm) * classes + int(hostClass, host)) !== 0) return false;
  if (units === null) return true;
  for (let r = 0; r < R; r++) {
    const amount = float(demand, vm * R + r);
    if (amount > 0 && !fitsUnits(units, host * R + r, amount)) return false;
  }
  return true;
}

class Search {
  readonly #state: FailureState;
  readonly #evacuees: Evacuees;
  readonly #limit: number;
  readonly #checker: Checker;
  readonly #entered: number[] = [];
  #checks = 0;

  constructor(state: FailureState, evacuees: Evacuees, limit: number) {
    const { place, room } = state;
    this.#state = state;
    this.#evacuees = evacuees;
    this.#limit = limit;
    this.#checker = new Checker(place, room);
    for (const [vm, host] of evacuees.home) {
      room.depart(vm, host);
      place[vm] = -1;
    }
  }

  restore(): void {
    while (this.#entered.length > 0) this.#leave();
    for (const [vm, host] of this.#evacuees.home) {
      this.#state.place[vm] = host;
      this.#state.room.arrive(vm, host);
    }
  }

  accepts(to: ReadonlyMap<number, number>): boolean {
    for (const vm of this.#evacuees.home.keys()) {
      const host = to.get(vm);
      if (host === undefined || !this.#fits(vm, host)) return false;
      this.#enter(vm, host);
    }
    return true;
  }

  #firstFit(): Refuge {
    const stranded: number[] = [];
    const largest = this.#largestFree();
    for (const vm of this.#evacuees.order().vms) {
      const host = this.#exceeds(vm, largest) ? null : this.#fullest(vm);
      if (host === null) stranded.push(vm);
      else this.#enter(vm, host);
    }
    return { to: this.#placed(), stranded, proven: stranded.length === 0 };
  }

  /** By resource: the most that a host has free. */
  #largestFree(): Float64Array {
    const { cluster, room } = this.#state;
    const { R } = cluster;
    const largest = new Float64Array(R).fill(Number.NEGATIVE_INFINITY);
    for (const host of this.#evacuees.hosts)
      for (let r = 0; r < R; r++) largest[r] = Math.max(float(largest, r), float(room.free, host * R + r));
    return largest;
  }

  /** True when the VM wants more than any host has free. It counts as a check of each of them. */
  #exceeds(vm: number, largest: Float64Array): boolean {
    const { R, demand } = this.#state.cluster;
    for (let r = 0; r < R; r++) {
      const amount = float(demand, vm * R + r);
      if (amount <= 0 || amount <= float(largest, r)) continue;
      this.#checks += this.#evacuees.hosts.length;
      return true;
    }
    return false;
  }

  fewest(enough: number): Refuge {
    const first = this.#firstFit();
    if (first.stranded.length <= enough) return first;
    while (this.#entered.length > 0) this.#leave();
    const least = this.#leastStranded(this.#evacuees.order().vms);
    for (let behind = least; behind < first.stranded.length; behind++) {
      const left: number[] = [];
      if (this.#next(0, behind, left, -1)) return { to: this.#placed(), stranded: left, proven: true };
      if (this.#checks >= this.#limit) return { ...first, proven: false };
    }
    return { ...first, proven: true };
  }

  #placed(): ReadonlyMap<number, number> {
    return new Map(this.#entered.map((vm) => [vm, int(this.#state.place, vm)]));
  }

  /**
   * A lower bound of the VMs that are stranded. The free room of each host is counted in pieces of the size of one VM, by resource or
   * load: more VMs of at least this size than pieces do not fit. The smallest VMs must fit into the sum of what is free.
   */
  #leastStranded(vms: readonly number[]): number {
    const { cluster, room, load } = this.#state;
    const { R, demand, hostRefusal } = cluster;
    const open = this.#evacuees.hosts.filter((host) => int(hostRefusal, host) === 0);
    let least = vms.filter((vm) => !open.some((host) => mayHold(cluster, vm, host))).length;
    const offer = (amounts: readonly number[], free: readonly number[]): void => {
      least = Math.max(least, mostStranded(amounts, free));
    };
    for (let r = 0; r < R; r++)
      offer(
        vms.map((vm) => float(demand, vm * R + r)),
        open.map((host) => float(room.free, host * R + r)),
      );
    for (let p = 0; p < (load?.policies ?? 0); p++)
      offer(
        vms.map((vm) => load?.amount(vm, p) ?? 0),
        open.map((host) => load?.left(host, p) ?? 0),
      );
    return least;
  }

  /** @param last the place in the list of hosts of the VM of the same kind before; -1 for the first one of its kind. */
  #next(i: number, behind: number, left: number[], last: number): boolean {
    const order = this.#evacuees.order();
    const vm = order.vms[i];
    if (vm === undefined) return true;
    const same = order.same[i] === true;
    for (const { host, at } of this.#hostsFor(vm, last)) {
      if (this.#checks >= this.#limit) return false;
      this.#enter(vm, host);
      if (this.#next(i + 1, behind, left, same ? at : -1)) return true;
      this.#leave();
    }
    if (left.length >= behind || this.#checks >= this.#limit) return false;
    left.push(vm);
    // VMs of one kind: the others of it are left behind, too.
    if (this.#next(i + 1, behind, left, same ? this.#evacuees.hosts.length : -1)) return true;
    left.pop();
    return false;
  }

  #enter(vm: number, host: number): void {
    this.#state.room.arrive(vm, host);
    this.#state.place[vm] = host;
    this.#state.load?.add(vm, host, 1);
    this.#entered.push(vm);
  }

  #leave(): void {
    const vm = this.#entered.pop();
    if (vm === undefined) return;
    const host = int(this.#state.place, vm);
    this.#state.load?.add(vm, host, -1);
    this.#state.room.depart(vm, host);
    this.#state.place[vm] = -1;
  }

  #fits(vm: number, host: number): boolean {
    const { cluster, load } = this.#state;
    const grouped = (cluster.vmGroups[vm]?.length ?? 0) > 0;
    this.#checks++;
    const g = grouped ? this.#affineGroupOf(vm) : NO_REPAIR;
    if (g !== NO_REPAIR && this.#isApart(vm, g, host)) return false;
    return this.#checker.refusal(vm, host, g) === 0 && (load === undefined || load.takes(vm, host));
  }

  #affineGroupOf(vm: number): number {
    const { groups, vmGroups } = this.#state.cluster;
    return (vmGroups[vm] ?? []).find((one) => groups[one]?.affine === true && groups[one].strict) ?? NO_REPAIR;
  }

  /** True when members of the group are on hosts, and none is on this one. */
  #isApart(vm: number, g: number, host: number): boolean {
    const { cluster, place } = this.#state;
    let apart = false;
    for (const other of item(cluster.groups, g).members) {
      if (other === vm || int(place, other) < 0) continue;
      if (place[other] === host) return false;
      apart = true;
    }
    return apart;
  }

  /** The first of {@link #hostsFor}; null: there is none. */
  #fullest(vm: number): number | null {
    let best: number | null = null;
    let least = Number.POSITIVE_INFINITY;
    for (const host of this.#evacuees.hosts) {
      if (!this.#fits(vm, host)) continue;
      const left = this.#leftBy(vm, host);
      if (best !== null && (left > least || (left === least && host > best))) continue;
      best = host;
      least = left;
    }
    return best;
  }

  /** The room of a host after the VM, in pieces of its size, of the resource of which it has the most. */
  #leftBy(vm: number, host: number): number {
    const { cluster, room } = this.#state;
    const { R, demand } = cluster;
    let left = 0;
    for (let r = 0; r < R; r++) {
      const amount = float(demand, vm * R + r);
      const free = float(room.free, host * R + r);
      if (amount > 0 && Number.isFinite(free)) left = Math.max(left, (free - amount) / amount);
    }
    return left;
  }

  /** Hosts that can take the VM, with their places in the list of hosts, the fullest first; of hosts that are alike, one. */
  #hostsFor(vm: number, last: number): readonly Open[] {
    const found: Open[] = [];
    for (let at = Math.max(0, last); at < this.#evacuees.hosts.length; at++) {
      const host = item(this.#evacuees.hosts, at);
      if (!this.#fits(vm, host)) continue;
      const left = this.#leftBy(vm, host);
      if (this.#evacuees.alike && found.some((other) => other.left === left && this.#areAlike(other.host, host)))
        continue;
      found.push({ host, at, left });
    }
    return found.sort((a, b) => a.left - b.left || a.host - b.host);
  }

  #areAlike(a: number, b: number): boolean {
    const { cluster, room } = this.#state;
    const { R, hostClass } = cluster;
    if (hostClass[a] !== hostClass[b]) return false;
    for (let r = 0; r < R; r++) if (float(room.free, a * R + r) !== float(room.free, b * R + r)) return false;
    return true;
  }
}

/** A host that can take a VM: its place in the list of hosts, and what it has left then. */
type Open = { readonly host: number; readonly at: number; readonly left: number };

/** A lower bound on the amounts that do not fit into what is free, of one resource. */
function mostStranded(amounts: readonly number[], free: readonly number[]): number {
  const wanted = amounts.filter((amount) => amount > 0).sort((a, b) => a - b);
  let least = 0;
  for (const size of new Set(wanted)) {
    let pieces = 0;
    for (const left of free) if (left >= size) pieces += Math.floor(left / size);
    least = Math.max(least, wanted.filter((amount) => amount >= size).length - pieces);
  }
  let sum = 0;
  for (const left of free) sum += Math.max(0, left);
  let held = 0;
  for (const amount of wanted) {
    if (amount > sum) break;
    sum -= amount;
    held++;
  }
  return Math.max(least, wanted.length - held);
}
