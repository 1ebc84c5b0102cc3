import { type Cluster, destinationsOf } from '../../cluster.ts';
import type { Room } from '../../constraints.ts';
import type { Draft } from '../../draft.ts';

/** The search's view of a spread problem: where everything starts, what may move, how much of it. */
export type Field = {
  readonly cluster: Cluster;
  readonly H: number;
  readonly V: number;
  readonly P: number;
  readonly weights: Float64Array;
  readonly thresholds: Float64Array;
  /** Where each VM is when the pass starts. */
  readonly home: Int32Array;
  /** Host values when the pass starts. */
  readonly score: Float64Array;
  readonly imbalance: Float64Array;
  /** 1 for VMs that may move. */
  readonly movable: Uint8Array;
  /** Movable VMs by home host: `vmsOf[start[h]] .. vmsOf[start[h + 1] - 1]`. */
  readonly start: Int32Array;
  readonly vmsOf: Int32Array;
  /** Possible destinations, ascending. */
  readonly destinations: Int32Array;
  readonly room: Room;
  readonly budget: number;
};

export function fieldOf(draft: Draft, imbalance: Float64Array): Field {
  const { cluster } = draft;
  const { H, V, P } = cluster;
  const movable = new Uint8Array(V);
  for (let v = 0; v < V; v++) movable[v] = draft.movable(v) ? 1 : 0;
  // Of an affinity group at most one member may have somewhere to go, and only one: a second one would part them again.
  for (const group of cluster.groups) {
    if (!group.affine) continue;
    const hosts = new Set(group.members.map((v) => draft.place[v] ?? 0));
    if (!group.hard && group.members.length === 1) continue;
    let kept = false;
    for (const v of group.members) {
      const apart = group.members.every((other) => other === v || draft.place[other] !== draft.place[v]);
      if (hosts.size === 2 && apart && !kept && movable[v] === 1) kept = true;
      else movable[v] = 0;
    }
  }
  const start = new Int32Array(H + 1);
  for (let v = 0; v < V; v++)
    if (movable[v] === 1) start[(draft.place[v] ?? 0) + 1] = (start[(draft.place[v] ?? 0) + 1] ?? 0) + 1;
  for (let h = 0; h < H; h++) start[h + 1] = (start[h + 1] ?? 0) + (start[h] ?? 0);
  const next = Int32Array.from(start);
  const vmsOf = new Int32Array(start[H] ?? 0);
  for (let v = 0; v < V; v++) {
    if (movable[v] !== 1) continue;
    const h = draft.place[v] ?? 0;
    vmsOf[next[h] ?? 0] = v;
    next[h] = (next[h] ?? 0) + 1;
  }
  return {
    cluster,
    H,
    V,
    P,
    weights: Float64Array.from(cluster.policies, (policy) => policy.weight),
    thresholds: Float64Array.from(cluster.policies, (policy) => policy.threshold),
    home: Int32Array.from(draft.place),
    score: Float64Array.from(draft.score),
    imbalance,
    movable,
    start,
    vmsOf,
    destinations: destinationsOf(cluster),
    room: draft.room,
    budget: draft.budget,
  };
}
