import { EPSILON } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import type { Draft } from '../draft/draft.ts';

/** A host that may be emptied. */
export type Emptiable = {
  readonly host: number;
  readonly vms: number;
  /** The needs of its VMs elsewhere, and the room that it could have offered itself: by resource class, then by policy. */
  readonly burden: Float64Array;
};

/** Steps of a search that are left. */
export type Work = { left: number };

export type Sought = {
  /** Hosts of a set, and its VMs at most. */
  readonly size: number;
  readonly most: number;
  /** The room of all hosts that take VMs: by resource class, then by policy. */
  readonly room: Float64Array;
  readonly work: Work;
};

/** Sets of hosts that may be emptied together as far as the sums of amounts show, those with the fewest VMs first. */
export function* setsOf(all: readonly Emptiable[], { size, most, room, work }: Sought): Generator<readonly number[]> {
  const hosts = all.toSorted((a, b) => a.vms - b.vms);
  const left = Float64Array.from(room);
  const chosen: number[] = [];
  const spend = ({ burden }: Emptiable, sign: 1 | -1): boolean => {
    let fits = true;
    for (let i = 0; i < left.length; i++) {
      left[i] = float(left, i) - sign * float(burden, i);
      if (float(left, i) < -EPSILON) fits = false;
    }
    return fits;
  };
  function* choose(from: number, count: number, total: number): Generator<readonly number[]> {
    if (count === 0) {
      if (total === 0) yield [...chosen];
      return;
    }
    for (let i = from; i + count <= hosts.length && work.left > 0; i++) {
      const next = item(hosts, i);
      if (next.vms * count > total) return;
      if (largest(hosts, count - 1) + next.vms < total) continue;
      work.left--;
      chosen.push(next.host);
      if (spend(next, 1)) yield* choose(i + 1, count - 1, total - next.vms);
      spend(next, -1);
      chosen.pop();
    }
  }
  if (size > hosts.length) return;
  const least = hosts.slice(0, size).reduce((sum, { vms }) => sum + vms, 0);
  for (let total = least; total <= most && work.left > 0; total++) yield* choose(0, size, total);
}

/** VMs of the hosts with the most VMs. */
function largest(hosts: readonly Emptiable[], count: number): number {
  let sum = 0;
  for (let i = hosts.length - count; i < hosts.length; i++) sum += item(hosts, i).vms;
  return sum;
}

/** The room of a host, by resource class, then by policy; infinite without a limit. */
export function roomOn({ cluster, room, fullness }: Draft, host: number): Float64Array {
  const { P, R, policies, size, hostRefusal } = cluster;
  if (int(hostRefusal, host) !== 0) return new Float64Array(R + P);
  return Float64Array.from({ length: R + P }, (_, i) => {
    if (i < R) return Math.max(0, float(room.free, host * R + i));
    const at = host * P + i - R;
    return Math.max(0, (item(policies, i - R).capacityThreshold - float(fullness, at)) * float(size, at));
  });
}

/** A host with what its VMs need; what has no limit anywhere is no burden. */
export function emptiable(draft: Draft, host: number, vms: readonly number[]): Emptiable {
  const { P, R, demand, load } = draft.cluster;
  const burden = roomOn(draft, host).map((amount) => (Number.isFinite(amount) ? amount : 0));
  for (const vm of vms) {
    for (let r = 0; r < R; r++) burden[r] = float(burden, r) + float(demand, vm * R + r);
    for (let p = 0; p < P; p++) burden[R + p] = float(burden, R + p) + float(load, vm * P + p);
  }
  return { host, vms: vms.length, burden };
}
