import type { GroupPolicy } from '@kronos/contracts';
import { byte, float, int, item } from '../base/array.ts';
import { onGrid } from './grid.ts';
import type { CellModel } from './hostCells.ts';

/**
 * The cluster that the passes work on: a structure of arrays. Hosts and VMs have indexes in the order of their names and ids, so the
 * order of the input does not matter. Per-host arrays by policy are indexed `host * P + policy`, by resource
 * class `host * R + class`; per-VM arrays likewise.
 */
export type Cluster = {
  readonly H: number;
  readonly V: number;
  /** Policies that take part. */
  readonly P: number;
  /** Resource classes. */
  readonly R: number;
  readonly policies: readonly PolicyModel[];
  readonly resourceClasses: readonly string[];

  readonly hostNames: readonly string[];
  readonly hostZone: readonly (string | null)[];
  /** Value of each policy in the start state. */
  readonly score: Float64Array;
  /** Relative size by policy; 1 where hosts are alike. */
  readonly size: Float64Array;
  /** True when every host has size 1. */
  readonly alike: boolean;
  /** Capacity value by policy (pack mode) in the start state; 0 in spread mode. */
  readonly fullness: Float64Array;
  /** 1 for hosts that take part in the imbalance: up, enabled, not forced down. */
  readonly counted: Uint8Array;
  /** Code number of the reason that the host is no destination for any VM; 0 when it may be one. */
  readonly hostRefusal: Int32Array;
  /** 1 for hosts that the evacuator empties: disabled and up, and either drained or subject to `evacuate_disabled_hosts`. */
  readonly leaving: Uint8Array;
  /** Free amount per resource class: neither used nor promised. Infinite where it is not limited. */
  readonly free: Float64Array;
  /** Capacity per resource class, for shares; infinite where it is not limited. */
  readonly capacity: Float64Array;
  /** min_unit, max_unit and step_size; null when no host sets any that could refuse something. */
  readonly units: { readonly min: Float64Array; readonly max: Float64Array; readonly step: Float64Array } | null;
  /** NUMA cells; null when no VM needs any. */
  readonly numa: CellModel | null;

  readonly vmIds: readonly string[];
  readonly vmNames: readonly string[];
  /** Host of each VM in the start state. */
  readonly vmHost: Int32Array;
  /** Share of the source host's value, by policy. */
  readonly weight: Float64Array;
  /** Share of a host of size 1 that the VM would have, by policy. */
  readonly load: Float64Array;
  readonly demand: Float64Array;
  readonly ramMb: Float64Array;
  readonly diskGb: Float64Array;
  readonly vcpus: Float64Array;
  /** GiB that a move of the VM copies. */
  readonly copyGib: Float64Array;
  /** The cost of a move of each VM to each host in its place, in GiB, by `vm * H + host`. Null: the host does not matter. */
  readonly copyGibTo: Float64Array | null;
  /** Number of recent moves of the VM (`recentMoves` of libs/rules): each adds the cost of a move to the next one. */
  readonly recentMoves: Int32Array;
  /**
   * Code number of the reason that only an evacuation may move the VM (on a disabled host, too young, or outside its own windows); 0 when
   * there is none.
   */
  readonly evacuationOnly: Int32Array;
  /** Code number of the reason that the VM may not move at all; 0 when it may. */
  readonly vmRefusal: Int32Array;
  /** Other hosts on which a VM counts for groups (migrating, in flight, seen twice); empty for most. */
  readonly alsoOn: ReadonlyMap<number, readonly number[]>;
  /** The claim of the VM, as given. */
  readonly vmResources: readonly Readonly<Record<string, number>>[];

  /**
   * Compatibility: `keyLegal[vmKey * classes + hostClass]` is 0 or the code number of the refusal. A VM's key is its kind
   * (pin, traits) and the source kind of the host it is on: `vmKind * sources + hostSource`.
   */
  readonly vmKind: Int32Array;
  readonly vmKey: Int32Array;
  readonly hostSource: Int32Array;
  readonly sources: number;
  readonly hostClass: Int32Array;
  readonly classes: number;
  readonly keyLegal: Int32Array;

  readonly groups: readonly Group[];
  /** Penalty in the combined imbalance for each VM that breaks a soft group; 0 when soft groups are as strict as hard ones. */
  readonly softPenalty: number;
  /** Indexes of the groups that each VM is in; shared empty array for most. */
  readonly vmGroups: readonly (readonly number[])[];

  readonly hostIndex: ReadonlyMap<string, number>;
  readonly vmIndex: ReadonlyMap<string, number>;
};

/** The hosts that may be destinations, ascending. */
export const destinationsOf = ({ hostRefusal, H }: Cluster): Int32Array =>
  Int32Array.from({ length: H }, (_, h) => h).filter((h) => hostRefusal[h] === 0);

/** Hosts that take part in imbalances, ascending. */
export const countedHosts = ({ H, counted }: Pick<Cluster, 'H' | 'counted'>): Int32Array =>
  Int32Array.from({ length: H }, (_, h) => h).filter((h) => byte(counted, h) === 1);

/** A VM's addition to a host's value: its load divided by the size of the host. */
export function shareOn(cluster: Cluster, vm: number, host: number, policy: number): number {
  const load = float(cluster.load, vm * cluster.P + policy);
  return cluster.alike ? load : onGrid(load / float(cluster.size, host * cluster.P + policy));
}

/** True when every policy's capacity value of the host stays below its threshold with the VM on it. */
export function staysBelow(cluster: Cluster, fullness: Float64Array, vm: number, host: number): boolean {
  for (let p = 0; p < cluster.P; p++) {
    const threshold = item(cluster.policies, p).capacityThreshold;
    if (!(float(fullness, host * cluster.P + p) + shareOn(cluster, vm, host, p) < threshold)) return false;
  }
  return true;
}

/** Adds a VM's shares to the values of a host, or takes them away. */
export function sharesIn(cluster: Cluster, values: Float64Array): (vm: number, host: number, sign: 1 | -1) => void {
  const { P } = cluster;
  return (vm, host, sign) => {
    for (let p = 0; p < P; p++)
      values[host * P + p] = float(values, host * P + p) + sign * shareOn(cluster, vm, host, p);
  };
}

export type PolicyModel = {
  readonly name: string;
  readonly weight: number;
  readonly threshold: number;
  /** The value that a plan aims at: at most the threshold. */
  readonly target: number;
  /** Pack mode: hosts are filled only below this; infinite in spread mode. */
  readonly capacityThreshold: number;
};

/** Of a policy that does not act: it asks for nothing. Other policies' moves may not make a host fuller than full for it. */
export const idleAims = (threshold: number): Pick<PolicyModel, 'threshold' | 'target'> => {
  const idle = Math.max(1, threshold);
  return { threshold: idle, target: idle };
};

export type Group = {
  readonly id: string;
  readonly name: string;
  readonly policy: GroupPolicy;
  readonly affine: boolean;
  readonly hard: boolean;
  /** False for a soft group that may be broken at a penalty. */
  readonly strict: boolean;
  /** Members that a host may hold; 1 unless an anti-affinity group says more. */
  readonly max: number;
  /** Members that are visible in this aggregate. */
  readonly members: readonly number[];
};

/** The compatibility keys of VMs that are on these hosts. */
export function keysAt(vmKind: Int32Array, hostSource: Int32Array, sources: number, place: Int32Array): Int32Array {
  return vmKind.map((kind, v) => kind * sources + int(hostSource, int(place, v)));
}
