import { int } from '../base/array.ts';
import type { Cluster } from './cluster.ts';

/**
 * Parts of a cluster: no move leads from one part to another, so no change in one part affects another. Zones are parts when VMs stay
 * in their zone. Cells and kinds of hypervisors are parts, too.
 */
export type Parts = {
  readonly count: number;
  /** By host: its part, numbered by their lowest hosts. */
  readonly ofHost: Int32Array;
  /** 1 for VMs that may move and for which some host is a destination, apart from amounts and groups. */
  readonly movable: Uint8Array;
};

/** @param movable 1 for VMs that nothing about themselves keeps from moving. */
export function partsOf(cluster: Cluster, place: Int32Array, movable: Uint8Array): Parts {
  const { H, V, classes, vmKey, hostClass, hostRefusal, keyLegal } = cluster;
  const { find, join } = disjointSets(H);
  const open: number[][] = Array.from({ length: classes }, () => []);
  for (let h = 0; h < H; h++) if (hostRefusal[h] === 0) open[int(hostClass, h)]?.push(h);
  const joined = new Uint8Array(classes);
  const seen = new Set<number>();
  const out = new Uint8Array(V);
  for (let v = 0; v < V; v++) {
    if (movable[v] !== 1) continue;
    const key = int(vmKey, v);
    const own = int(place, v);
    // VMs of one key on one host have the same destinations.
    const pair = key * H + own;
    const known = seen.has(pair);
    seen.add(pair);
    for (let c = 0; c < classes; c++) {
      const hosts = open[c] ?? [];
      if (int(keyLegal, key * classes + c) !== 0 || hosts.length === 0) continue;
      if (hosts.length > 1 || hosts[0] !== own) out[v] = 1;
      if (known) continue;
      for (const h of joined[c] === 1 ? hosts.slice(0, 1) : hosts) join(own, h);
      joined[c] = 1;
    }
  }
  return { ...numbered(H, find), movable: out };
}

/** Sets of hosts, at first one for each. `find` gives the least host of a set. */
function disjointSets(H: number) {
  const root = Int32Array.from({ length: H }, (_, h) => h);
  const find = (h: number): number => {
    let top = h;
    while (int(root, top) !== top) top = int(root, top);
    for (let x = h; x !== top; ) {
      const next = int(root, x);
      root[x] = top;
      x = next;
    }
    return top;
  };
  const join = (a: number, b: number): void => {
    const [x, y] = [find(a), find(b)];
    if (x !== y) root[Math.max(x, y)] = Math.min(x, y);
  };
  return { find, join };
}

/** Numbers the sets in the order of their hosts. */
function numbered(H: number, find: (h: number) => number): Pick<Parts, 'count' | 'ofHost'> {
  const number = new Int32Array(H).fill(-1);
  const ofHost = new Int32Array(H);
  let count = 0;
  for (let h = 0; h < H; h++) {
    const top = find(h);
    if (int(number, top) < 0) number[top] = count++;
    ofHost[h] = int(number, top);
  }
  return { count, ofHost };
}
