import { float, int } from '../../base/array.ts';
import { type Cluster, destinationsOf, type Group } from '../../cluster/cluster.ts';
import type { Room } from '../../cluster/constraints.ts';
import { imbalances } from '../../cluster/measure.ts';
import { partsOf } from '../../cluster/parts.ts';
import { laxGroups, softBreaches } from '../../cluster/softRules.ts';
import type { Draft } from '../../draft/draft.ts';

/** A spread problem for the search: the start, the movable VMs, the budget. */
export type Field = {
  readonly cluster: Cluster;
  readonly H: number;
  readonly V: number;
  readonly P: number;
  readonly weights: Float64Array;
  readonly thresholds: Float64Array;
  /** The target by policy; at most the threshold. */
  readonly targets: Float64Array;
  /** Host of each VM at the start of the pass. */
  readonly home: Int32Array;
  /** Host values at the start of the pass. */
  readonly score: Float64Array;
  readonly imbalance: Float64Array;
  /** 1 for VMs that may move and have a destination, without regard to amounts and groups. */
  readonly movable: Uint8Array;
  /** Least cost of a move of each VM, in GiB; for one that was moved lately, as many times more as it was. */
  readonly costs: Float64Array;
  /** The cost of a move to each host, by `vm * H + host`; null: it is the same for each. {@link costTo} reads both. */
  readonly costsTo: Float64Array | null;
  /** Movable VMs by home host: `vmsOf[start[h]] .. vmsOf[start[h + 1] - 1]`. */
  readonly start: Int32Array;
  readonly vmsOf: Int32Array;
  /** Possible destinations, ascending. */
  readonly destinations: Int32Array;
  /** By host: the possible destinations in its part, ascending. */
  readonly destinationsNear: readonly Int32Array[];
  /** By host: the part that it is in. No move joins two parts. */
  readonly partOf: Int32Array;
  readonly room: Room;
  readonly budget: number;
  /** Groups that may be broken at a penalty, and the number of VMs that break them at the start of the pass. */
  readonly lax: readonly Group[];
  readonly breaches: number;
};

export function fieldOf(draft: Draft, imbalance: Float64Array, moveOverheadGib: number): Field {
  const { cluster, place } = draft;
  const { H, V, P, policies } = cluster;
  const willing = new Uint8Array(V);
  for (let v = 0; v < V; v++) willing[v] = draft.movable(v) ? 1 : 0;
  // A member of an affinity group may join the others. Of a pair either one may: where one has moved, the constraint keeps the other.
  for (const group of cluster.groups) {
    if (!group.affine || !group.strict) continue;
    const hosts = new Set(group.members.map((v) => int(place, v)));
    if (!group.hard && group.members.length === 1) continue;
    for (const v of group.members) {
      const apart = group.members.every((other) => other === v || place[other] !== place[v]);
      if (hosts.size !== 2 || !apart) willing[v] = 0;
    }
  }
  const parts = partsOf(cluster, place, willing);
  const { movable } = parts;
  const byHost: number[][] = Array.from({ length: H }, () => []);
  for (let v = 0; v < V; v++) if (movable[v] === 1) byHost[int(place, v)]?.push(v);
  const start = new Int32Array(H + 1);
  byHost.forEach((vms, h) => {
    start[h + 1] = int(start, h) + vms.length;
  });
  const destinations = destinationsOf(cluster);
  const near = Array.from({ length: parts.count }, (_, part) => destinations.filter((h) => parts.ofHost[h] === part));
  const lax = laxGroups(cluster);
  const { costs, costsTo } = costsOf(draft, moveOverheadGib);
  return {
    cluster,
    H,
    V,
    P,
    weights: Float64Array.from(policies, (policy) => policy.weight),
    thresholds: Float64Array.from(policies, (policy) => policy.threshold),
    targets: Float64Array.from(policies, (policy) => policy.target),
    home: Int32Array.from(place),
    score: Float64Array.from(draft.score),
    imbalance,
    movable,
    costs,
    costsTo,
    start,
    vmsOf: Int32Array.from(byHost.flat()),
    destinations,
    destinationsNear: Array.from(parts.ofHost, (part) => near[part] ?? destinations),
    partOf: parts.ofHost,
    room: draft.room,
    budget: draft.budget,
    lax,
    breaches: softBreaches(cluster, lax, place),
  };
}

function costsOf({ cluster, place }: Draft, moveOverheadGib: number): Pick<Field, 'costs' | 'costsTo'> {
  const { H, V, copyGib, copyGibTo, recentMoves } = cluster;
  const costOf = (v: number, gib: number): number => (moveOverheadGib + gib) * (1 + int(recentMoves, v));
  if (copyGibTo === null)
    return { costs: Float64Array.from({ length: V }, (_, v) => costOf(v, float(copyGib, v))), costsTo: null };
  const costsTo = copyGibTo.map((gib, i) => costOf(Math.floor(i / H), gib));
  const costs = Float64Array.from({ length: V }, (_, v) =>
    costsTo
      .subarray(v * H, (v + 1) * H)
      .reduce((least, cost, h) => (h === place[v] ? least : Math.min(least, cost)), Number.POSITIVE_INFINITY),
  );
  return { costs, costsTo };
}

/** Cost of a move of a VM to a host, in GiB. */
export const costTo = ({ costs, costsTo, H }: Field, vm: number, host: number): number =>
  costsTo === null ? float(costs, vm) : float(costsTo, vm * H + host);

/** Change of the cost of all moves when a VM goes from one host to another. */
export function costOfChange(field: Field, vm: number, from: number, to: number): number {
  const home = int(field.home, vm);
  if (from === home) return to === home ? 0 : costTo(field, vm, to);
  if (to === home) return -costTo(field, vm, from);
  return field.costsTo === null ? 0 : costTo(field, vm, to) - costTo(field, vm, from);
}

/**
 * The parts of a field as separate fields: only the hosts of the part count, and only its VMs move. The budget is divided by the number
 * of VMs. Empty when VMs can move in one part only.
 */
export function partFields(field: Field): Field[] {
  const { cluster, partOf, vmsOf, home, budget } = field;
  const byPart = new Map<number, number[]>();
  for (const v of vmsOf) {
    const part = int(partOf, int(home, v));
    const vms = byPart.get(part);
    if (vms === undefined) byPart.set(part, [v]);
    else vms.push(v);
  }
  if (byPart.size < 2) return [];
  return [...byPart].flatMap(([part, vms]) => {
    const counted = cluster.counted.map((is, h) => (is === 1 && partOf[h] === part ? 1 : 0));
    const share = Math.floor((budget * vms.length) / vmsOf.length);
    if (share === 0 || counted.every((is) => is === 0)) return [];
    const own = { ...cluster, counted };
    const destinations = field.destinations.filter((h) => partOf[h] === part);
    const imbalance = imbalances(own, field.score);
    return [{ ...ofVms(field, vms), cluster: own, destinations, imbalance, budget: share }];
  });
}

/** The field in which the VMs stay that were moved lately. Null: none of them was. */
export function withoutRecent(field: Field): Field | null {
  const vms = field.vmsOf.filter((v) => int(field.cluster.recentMoves, v) === 0);
  return vms.length < field.vmsOf.length ? ofVms(field, vms) : null;
}

/** The field in which only these of its VMs move. */
function ofVms(field: Field, vms: ArrayLike<number>): Field {
  const { home, H } = field;
  const vmsOf = Int32Array.from(vms);
  const start = new Int32Array(H + 1);
  for (const v of vmsOf) start[int(home, v) + 1] = int(start, int(home, v) + 1) + 1;
  for (let h = 0; h < H; h++) start[h + 1] = int(start, h + 1) + int(start, h);
  return { ...field, start, vmsOf };
}
