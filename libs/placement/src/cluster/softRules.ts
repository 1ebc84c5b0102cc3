import { int } from '../base/array.ts';
import type { Cluster, Group } from './cluster.ts';

/**
 * VMs that break a soft group. In a soft anti-affinity group these are the VMs beyond the maximum of a host. In a soft affinity group
 * these are the VMs that are not on the host with the most members.
 */
export function breachesOf(cluster: Cluster, group: Group, place: Int32Array): number {
  const counts = new Map<number, number>();
  const add = (host: number): void => {
    counts.set(host, (counts.get(host) ?? 0) + 1);
  };
  for (const vm of group.members) {
    add(int(place, vm));
    if (!group.affine) cluster.alsoOn.get(vm)?.forEach(add);
  }
  if (group.affine) return group.members.length - Math.max(0, ...counts.values());
  let breaches = 0;
  for (const count of counts.values()) breaches += Math.max(0, count - group.max);
  return breaches;
}

/** The groups that may be broken at a penalty. */
export const laxGroups = (cluster: Cluster): readonly Group[] => cluster.groups.filter((group) => !group.strict);

/** VMs that break groups which may be broken at a penalty. */
export function softBreaches(cluster: Cluster, lax: readonly Group[], place: Int32Array): number {
  let breaches = 0;
  for (const group of lax) breaches += breachesOf(cluster, group, place);
  return breaches;
}

/** The number of additional VMs that break soft groups when one VM moves to a host. */
export function breachGrowth(cluster: Cluster, place: Int32Array, vm: number, host: number): number {
  let growth = 0;
  const from = int(place, vm);
  for (const g of cluster.vmGroups[vm] ?? []) {
    const group = cluster.groups[g];
    if (group === undefined || group.strict) continue;
    const before = breachesOf(cluster, group, place);
    place[vm] = host;
    growth += breachesOf(cluster, group, place) - before;
    place[vm] = from;
  }
  return growth;
}
