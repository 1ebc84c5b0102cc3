import type { ClusterFile } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';

/** A small cluster with a known shape, for comparison with proven optima. */
export type SmallKind = {
  readonly name: string;
  readonly hosts: number;
  readonly vms: number;
  readonly policies: number;
  /** Weights are multiples of this; 0: continuous. */
  readonly quantum: number;
  /** Anti-affinity groups of three. */
  readonly groups: number;
  /** Affinity pairs whose members are apart. */
  readonly pairs?: number;
  /** Free memory of a host as a share of the average memory of its VMs; null: not limited. */
  readonly slack: number | null;
  /** Two zones. With `restrictToAz` no VM leaves its zone; otherwise a fifth of the VMs is pinned to its zone. */
  readonly zones?: 'restricted' | 'pins';
  /** Hosts have the size 1, 2 or 3. */
  readonly sizes?: boolean;
  /** The last host is disabled: it takes no VM, and its VMs may leave. */
  readonly disabled?: boolean;
};

export const smallKinds: readonly SmallKind[] = [
  { name: '5x20', hosts: 5, vms: 20, policies: 2, quantum: 0, groups: 0, slack: null },
  { name: '5x20-quantised', hosts: 5, vms: 20, policies: 2, quantum: 0.02, groups: 0, slack: null },
  { name: '10x50', hosts: 10, vms: 50, policies: 2, quantum: 0, groups: 0, slack: null },
  { name: '5x20-3p', hosts: 5, vms: 20, policies: 3, quantum: 0, groups: 0, slack: null },
  { name: '5x20-rules', hosts: 5, vms: 20, policies: 2, quantum: 0, groups: 3, slack: 0.3 },
  { name: '6x24-zones', hosts: 6, vms: 24, policies: 2, quantum: 0, groups: 0, slack: null, zones: 'restricted' },
  { name: '6x24-pins', hosts: 6, vms: 24, policies: 2, quantum: 0, groups: 0, slack: null, zones: 'pins' },
  { name: '5x20-sizes', hosts: 5, vms: 20, policies: 2, quantum: 0, groups: 0, slack: null, sizes: true },
  { name: '6x24-disabled', hosts: 6, vms: 24, policies: 2, quantum: 0, groups: 0, slack: null, disabled: true },
  { name: '5x20-groups', hosts: 5, vms: 20, policies: 2, quantum: 0, groups: 5, slack: null },
  { name: '5x20-capacity', hosts: 5, vms: 20, policies: 2, quantum: 0, groups: 0, slack: 0.15 },
  { name: '3x7-pairs', hosts: 3, vms: 7, policies: 1, quantum: 0, groups: 0, slack: null, pairs: 2 },
];

export function smallCluster(kind: SmallKind, seed: number): ClusterFile {
  const random = seeded(seed * 7919 + kind.hosts * 31 + kind.vms);
  const round = (value: number): number =>
    kind.quantum > 0 ? Math.max(1, Math.round(value / kind.quantum)) * kind.quantum : Math.round(value * 1e6) / 1e6;
  const preference = Array.from({ length: kind.hosts }, () => 0.2 + random());
  let all = 0;
  for (const p of preference) all += p;
  const pick = (): number => {
    let at = random() * all;
    for (const [h, p] of preference.entries()) {
      at -= p;
      if (at < 0) return h;
    }
    return kind.hosts - 1;
  };
  const mean = 0.5 / (kind.vms / kind.hosts);
  const vms = Array.from({ length: kind.vms }, (_, v) => ({
    id: `vm${v}`,
    host: `host${pick()}`,
    w: Array.from({ length: kind.policies }, () => round(mean * (0.2 + 1.6 * random()))),
    memMb: 1024 * (1 + Math.floor(random() * 8)),
    vcpus: 1 + Math.floor(random() * 4),
  }));
  const pinned = vms.map(({ host }) =>
    kind.zones === 'pins' && random() < 0.2 ? { pin: `zone${Number(host.slice('host'.length)) % 2}` } : {},
  );
  let memory = 0;
  for (const vm of vms) memory += vm.memMb;
  const hosts = Array.from({ length: kind.hosts }, (_, h) => ({
    id: `host${h}`,
    ...(kind.slack === null ? {} : { memFreeMb: Math.round((kind.slack * memory) / kind.hosts) }),
    ...(kind.zones === undefined ? {} : { az: `zone${h % 2}` }),
    ...(kind.sizes === true ? { size: Array.from({ length: kind.policies }, () => 1 + (h % 3)) } : {}),
    ...(kind.disabled === true && h === kind.hosts - 1 ? { status: 'disabled' as const } : {}),
  }));
  const groups: NonNullable<ClusterFile['groups']>[number][] = [];
  const ids = vms.map((_, v) => v);
  for (let g = 0; g < kind.groups; g++) {
    const members: number[] = [];
    for (const v of ids)
      if (members.length < 3 && members.every((other) => vms[other]?.host !== vms[v]?.host)) members.push(v);
    for (const v of members) ids.splice(ids.indexOf(v), 1);
    groups.push({ id: `group${g}`, policy: 'anti-affinity', vms: members.map((v) => `vm${v}`) });
  }
  for (let g = 0; g < (kind.pairs ?? 0); g++) {
    const first = ids.shift() ?? 0;
    const second = ids.find((v) => vms[v]?.host !== vms[first]?.host);
    if (second === undefined) break;
    ids.splice(ids.indexOf(second), 1);
    groups.push({ id: `pair${g}`, policy: 'affinity', vms: [`vm${first}`, `vm${second}`] });
  }
  return {
    policies: Array.from({ length: kind.policies }, (_, p) => `p${p}`),
    weights: Array.from({ length: kind.policies }, () => 1),
    hosts,
    vms: vms.map((vm, v) => ({ ...vm, ...pinned[v] })),
    groups,
  };
}
