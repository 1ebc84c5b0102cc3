import { clause } from '@kronos/contracts';
import { isGrantable } from '@kronos/facts';
import { float, int, item } from '../base/array.ts';
import { codeNumber, codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';
import type { Cluster, Group } from './cluster.ts';
import { cellRefusal, shiftArrived } from './hostCells.ts';

/** A VM or a destination that is refused, and why. */
export type Refusal = { readonly code: ReasonCode; readonly detail: Readonly<Record<string, string | number>> };

/**
 * The resources and the places of server groups that are taken on every host. In a *cautious* room departures free nothing: every set
 * of moves that it accepts is legal in any order. In a *final* room departures do free room: the moves need an order, which may not
 * exist.
 */
export class Room {
  readonly cluster: Cluster;
  readonly departuresFree: boolean;
  readonly free: Float64Array;
  /** Members by host, for each group. */
  readonly members: Map<number, number>[];
  /** The share of VMs away from home in every NUMA cell, by host; null when no VM needs cells. Departures free no cells. */
  readonly arrived: Float64Array | null;

  constructor(cluster: Cluster, { departuresFree }: Pick<Room, 'departuresFree'>, from?: Room) {
    this.cluster = cluster;
    this.departuresFree = departuresFree;
    this.free = Float64Array.from(from?.free ?? cluster.free);
    const { numa, H } = cluster;
    this.arrived = numa === null ? null : Float64Array.from(from?.arrived ?? new Float64Array(H * numa.width));
    this.members =
      from === undefined ? countMembers(cluster, cluster.vmHost) : from.members.map((counts) => new Map(counts));
  }

  copy(departuresFree = this.departuresFree): Room {
    return new Room(this.cluster, { departuresFree }, this);
  }

  move(vm: number, from: number, to: number): void {
    this.#shift(vm, to, 1);
    if (this.departuresFree) this.#shift(vm, from, -1);
  }

  /** Undoes the last move of a VM. */
  undo(vm: number, from: number, to: number): void {
    this.#shift(vm, to, -1);
    if (this.departuresFree) this.#shift(vm, from, 1);
  }

  /** True when amounts and anti-affinity groups admit the VM. Nothing else can prevent its return home. */
  holds(vm: number, host: number): boolean {
    const { R, demand, groups, vmGroups } = this.cluster;
    for (let r = 0; r < R; r++) {
      const amount = float(demand, vm * R + r);
      if (amount > 0 && amount > float(this.free, host * R + r)) return false;
    }
    for (const g of vmGroups[vm] ?? []) {
      const group = groups[g];
      if (group?.strict === true && !group.affine && (this.members[g]?.get(host) ?? 0) >= group.max) return false;
    }
    return true;
  }

  /** Counts the VM on a host. */
  arrive(vm: number, host: number): void {
    this.#shift(vm, host, 1);
  }

  /** No longer counts the VM on a host. */
  depart(vm: number, host: number): void {
    this.#shift(vm, host, -1);
  }

  #shift(vm: number, host: number, sign: 1 | -1): void {
    const { R, demand, vmGroups, numa, vmHost } = this.cluster;
    if (numa !== null && this.arrived !== null && vmHost[vm] !== host)
      shiftArrived(numa, vm, this.arrived, { host, sign });
    for (let r = 0; r < R; r++)
      this.free[host * R + r] = float(this.free, host * R + r) - sign * float(demand, vm * R + r);
    for (const g of vmGroups[vm] ?? []) {
      const counts = this.members[g];
      if (counts !== undefined) counts.set(host, (counts.get(host) ?? 0) + sign);
    }
  }
}

function countMembers(cluster: Cluster, place: Int32Array): Map<number, number>[] {
  return cluster.groups.map((group) => {
    const counts = new Map<number, number>();
    for (const v of group.members)
      for (const h of [int(place, v), ...(cluster.alsoOn.get(v) ?? [])]) counts.set(h, (counts.get(h) ?? 0) + 1);
    return counts;
  });
}

/** No group is exempt from its rule. */
export const NO_REPAIR = -1;

/**
 * The one checker of moves, on a placement and a room that its owner changes. `cluster.vmRefusal` says whether a VM may move at all; it
 * is checked once, where VMs are filtered.
 */
export class Checker {
  readonly #cluster: Cluster;
  readonly #place: Int32Array;
  readonly #room: Room;
  readonly #strict: boolean;

  /**
   * @param place the host of every VM; -1 for a VM that is on none.
   * @param strict soft groups that may be broken at a penalty count, too.
   */
  constructor(place: Int32Array, room: Room, { strict = false }: { readonly strict?: boolean } = {}) {
    this.#cluster = room.cluster;
    this.#place = place;
    this.#room = room;
    this.#strict = strict;
  }

  /**
   * May this VM go to this host? Returns 0, or the code number of the first reason against it. `repairs` names the group that the move
   * repairs (else {@link NO_REPAIR}). That group's rule is skipped, which is right only for a move of an affinity group to its gathering
   * host.
   */
  refusal(vm: number, host: number, repairs = NO_REPAIR): number {
    if (this.#place[vm] === host) return codeNumber['host-is-source'];
    const cluster = this.#cluster;
    const rule = this.rule(vm, host);
    if (rule !== 0) return rule;
    const short = this.#shortage(vm, host);
    if (short !== 0) return short;
    const { arrived } = this.#room;
    if (cluster.numa !== null && arrived !== null) {
      const cells = cellRefusal(cluster.numa, vm, host, arrived);
      if (cells !== 0) return cells;
    }
    const groups = cluster.vmGroups[vm];
    return groups === undefined || groups.length === 0 ? 0 : this.#groupRefusal(groups, vm, host, repairs);
  }

  /** As {@link refusal} without what other VMs change: the host's own refusal, and whether it ever takes such a VM. */
  rule(vm: number, host: number): number {
    const cluster = this.#cluster;
    const hostRefusal = int(cluster.hostRefusal, host);
    if (hostRefusal !== 0) return hostRefusal;
    const legal = int(cluster.keyLegal, int(cluster.vmKey, vm) * cluster.classes + int(cluster.hostClass, host));
    if (legal !== 0 || cluster.units === null) return legal;
    for (let r = 0; r < cluster.R; r++) {
      const amount = float(cluster.demand, vm * cluster.R + r);
      if (amount > 0 && !fitsUnits(cluster.units, host * cluster.R + r, amount)) return codeNumber['unit-limit'];
    }
    return 0;
  }

  #shortage(vm: number, host: number): number {
    const { R, demand } = this.#cluster;
    const { free } = this.#room;
    for (let r = 0; r < R; r++) {
      const amount = float(demand, vm * R + r);
      if (amount <= 0) continue;
      if (amount > float(free, host * R + r)) return codeNumber.capacity;
    }
    return 0;
  }

  #groupRefusal(groups: readonly number[], vm: number, host: number, repairs: number): number {
    for (const g of groups) {
      if (g === repairs) continue;
      const refusal = this.#refusalBy(g, vm, host);
      if (refusal !== 0) return refusal;
    }
    return 0;
  }

  #refusalBy(g: number, vm: number, host: number): number {
    const group = this.#cluster.groups[g];
    if (group === undefined || (!group.strict && !this.#strict)) return 0;
    if (group.affine) return this.#affinityRefusal(group, vm, host);
    return (this.#room.members[g]?.get(host) ?? 0) >= group.max ? codeNumber['anti-affinity'] : 0;
  }

  /** A refusal as a clause that names the host, and the group whose rule it is. */
  text(refusal: number, { vm, host, repairs = NO_REPAIR }: { vm: number; host: number; repairs?: number }): string {
    const { vmGroups, groups, hostNames } = this.#cluster;
    const g = vmGroups[vm]?.find((one) => one !== repairs && this.#refusalBy(one, vm, host) === refusal);
    const text = clause(reasonMeanings[codeOfNumber(refusal)]).replace(/\bthe host\b/, () => item(hostNames, host));
    const group = g === undefined ? undefined : groups[g];
    return group === undefined
      ? text
      : text.replace(/\bthe (?:anti-)?affinity group\b/, () => `the ${group.policy} group ${group.name}`);
  }

  #affinityRefusal(group: Group, vm: number, host: number): number {
    const place = this.#place;
    let elsewhere = false;
    let apart = false;
    for (const other of group.members) {
      if (other === vm) continue;
      if (place[other] !== place[vm]) apart = true;
      if (place[other] !== host || this.#cluster.alsoOn.has(other)) elsewhere = true;
    }
    if (group.hard && !apart) return codeNumber['affinity-gathered'];
    return elsewhere ? codeNumber.affinity : 0;
  }
}

/** True when the host takes this amount at once, by min_unit, max_unit and step_size. */
export function fitsUnits(units: NonNullable<Cluster['units']>, i: number, amount: number): boolean {
  return isGrantable(amount, float(units.min, i), float(units.max, i), float(units.step, i));
}

/**
 * May the VM go to the host in the start state of the cluster? For people and for callers outside the planner.
 *
 * @throws RangeError when the cluster has no such VM or host.
 */
export function checkMove(cluster: Cluster, vmId: string, destination: string): { ok: true } | Refusal {
  const vm = cluster.vmIndex.get(vmId);
  const host = cluster.hostIndex.get(destination);
  if (vm === undefined) throw new RangeError(`no VM ${vmId} in this cluster`);
  if (host === undefined) throw new RangeError(`no host ${destination} in this cluster`);
  const detail = { vm: vmId, host: destination };
  const own = int(cluster.vmRefusal, vm);
  if (own !== 0) return { code: codeOfNumber(own), detail };
  const refusal = new Checker(cluster.vmHost, new Room(cluster, { departuresFree: false })).refusal(vm, host);
  return refusal === 0 ? { ok: true } : { code: codeOfNumber(refusal), detail };
}
