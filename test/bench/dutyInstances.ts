import type { ClusterFile } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';

const GIB = 1024;
const SIZES = [1, 1, 1, 2, 3, 3, 5, 5, 8] as const;

/** Disabled hosts whose VMs just fit on the others, or just do not: most fit only if other VMs move, too. */
export function tightEvacuation(seed: number): ClusterFile {
  const random = seeded(seed * 7919 + 11);
  const below = (n: number): number => Math.floor(random() * n);
  const hostCount = 5 + below(6);
  const leaving = 1 + below(hostCount > 7 ? 3 : 2);
  const vms = Array.from({ length: hostCount * (4 + below(4)) }, (_, v) => {
    const size = SIZES[below(SIZES.length)] ?? 1;
    return {
      id: `v${v}`,
      host: `h${below(hostCount)}`,
      w: [size / 100],
      memMb: size * GIB,
      vcpus: [1, 1, 2, 2, 4][below(5)] ?? 1,
    };
  });
  const need = vms.reduce((sum, vm) => sum + (Number(vm.host.slice(1)) < leaving ? vm.memMb / GIB : 0), 0);
  const free = new Array<number>(hostCount).fill(0);
  for (let gib = 0; gib < need; gib++) {
    const h = leaving + below(hostCount - leaving);
    free[h] = (free[h] ?? 0) + 1;
  }
  const groups = Array.from({ length: below(4) }, (_, g) => ({
    id: `g${g}`,
    policy: 'anti-affinity' as const,
    vms: [
      ...new Map(
        Array.from({ length: 4 }, () => vms[below(vms.length)]).flatMap((vm) =>
          vm === undefined ? [] : [[vm.host, vm.id]],
        ),
      ).values(),
    ],
  }));
  return {
    policies: ['cpu'],
    weights: [1],
    thresholds: [100],
    hosts: free.map((gib, h) => ({
      id: `h${h}`,
      memFreeMb: gib * GIB,
      vcpusFree: [4, 8, 8, 16][below(4)] ?? 8,
      ...(h < leaving ? { status: 'disabled' as const } : {}),
    })),
    vms,
    groups: groups.filter((group) => group.vms.length > 1),
  };
}

/** Members of groups that share a host or are apart against their rule, on hosts with little room. */
export function tightRepair(seed: number): ClusterFile {
  const random = seeded(seed * 6007 + 5);
  const below = (n: number): number => Math.floor(random() * n);
  const hostCount = 4 + below(4);
  const vms = Array.from({ length: hostCount * (3 + below(3)) }, (_, v) => {
    const size = SIZES[below(SIZES.length)] ?? 1;
    return { id: `v${v}`, host: `h${below(hostCount)}`, w: [size / 100], memMb: size * GIB, vcpus: 1 };
  });
  const used = new Set<string>();
  const groups = Array.from({ length: 2 + below(3) }, (_, g) => {
    const members = Array.from({ length: 2 + below(2) }, () => vms[below(vms.length)]?.id ?? '').filter(
      (id) => !used.has(id),
    );
    for (const id of members) used.add(id);
    return {
      id: `g${g}`,
      policy: below(2) === 0 ? ('affinity' as const) : ('anti-affinity' as const),
      vms: [...new Set(members)],
    };
  });
  return {
    policies: ['cpu'],
    weights: [1],
    thresholds: [100],
    hosts: Array.from({ length: hostCount }, (_, h) => ({ id: `h${h}`, memFreeMb: below(7) * GIB })),
    vms,
    groups: groups.filter((group) => group.vms.length > 1),
  };
}

/** Hosts of which some can be emptied: few VMs each, free memory, CPUs and load for about two hosts, and groups whose members stay apart. */
export function halfFull(seed: number): ClusterFile {
  const random = seeded(seed * 4409 + 3);
  const below = (n: number): number => Math.floor(random() * n);
  const hostCount = 5 + below(4);
  const policies = below(2) === 0 ? ['cpu'] : ['cpu', 'memory'];
  const vms = Array.from({ length: hostCount * (2 + below(4)) }, (_, v) => {
    const size = SIZES[below(SIZES.length)] ?? 1;
    return {
      id: `v${v}`,
      host: `h${below(hostCount)}`,
      w: policies.map(() => Math.round(1000 * size * (0.01 + 0.05 * random())) / 1000),
      memMb: size * GIB,
      vcpus: [1, 1, 2, 2, 4][below(5)] ?? 1,
    };
  });
  const group = Array.from({ length: 3 }, () => vms[below(vms.length)]).flatMap((vm) =>
    vm === undefined ? [] : [[vm.host, vm.id] as const],
  );
  return {
    policies,
    weights: policies.map(() => 1),
    capacityThresholds: policies.map(() => 0.7 + 0.1 * below(3)),
    hosts: Array.from({ length: hostCount }, (_, h) => ({
      id: `h${h}`,
      memFreeMb: below(14) * GIB,
      vcpusFree: 2 + below(12),
    })),
    vms,
    groups: [{ id: 'g', policy: 'anti-affinity', vms: [...new Map(group).values()] }],
  };
}

/** The budget of its plan: seldom enough for every host. */
export const budgetOf = (seed: number): number => 4 + (seed % 13);
