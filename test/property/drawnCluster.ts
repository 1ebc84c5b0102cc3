import type { ClusterFile } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';

/** A small cluster with a bit of everything that a rule is about, and a budget: drawn from a seed. */
export type Drawn = { readonly file: ClusterFile; readonly budget: number; readonly restrictToAz: boolean };

/**
 * Disabled and down hosts, zones and pins, unequal sizes, several capacities and groups of all kinds, each in some of the draws.
 *
 * @param scale times as many hosts, VMs, groups and moves
 */
export function drawnCluster(seed: number, scale = 1): Drawn {
  const random = seeded(seed * 2654435761 + 12345);
  const below = (n: number): number => Math.floor(random() * n);
  const often = (share: number): boolean => random() < share;
  const H = (2 + below(5)) * scale;
  const V = (1 + below(11)) * scale;
  const P = 1 + below(2);
  const [disabled, zoned, sized, scored, tight, grouped] = [0.4, 0.35, 0.25, 0.25, 0.4, 0.4].map(often);
  const quantum = [0, 0.01, 0.05, 0.1][below(4)] ?? 0;
  const gpus = tight === true && often(0.5);
  const share = (): number => {
    const w = 0.02 + 0.3 * random() * random();
    return quantum > 0 ? Math.max(1, Math.round(w / quantum)) * quantum : Math.round(w * 1e6) / 1e6;
  };
  const perPolicy = <T>(of: (p: number) => T): T[] => Array.from({ length: P }, (_, p) => of(p));
  const vms: ClusterFile['vms'][number][] = Array.from({ length: V }, (_, v) => ({
    id: `v${v}`,
    host: `h${often(0.5) ? below(Math.max(1, H >> 1)) : below(H)}`,
    w: perPolicy(share),
    memMb: 1024 * (1 + below(8)),
    vcpus: 1 + below(4),
    ...(gpus && often(0.3) ? { resources: { CUSTOM_GPU: 1 } } : {}),
    ...(zoned === true && often(0.2) ? { pin: `z${below(2)}` } : {}),
  }));
  const hosts: ClusterFile['hosts'][number][] = Array.from({ length: H }, (_, h) => {
    const sums = perPolicy((p) => vms.reduce((sum, vm) => sum + (vm.host === `h${h}` ? (vm.w[p] ?? 0) : 0), 0));
    return {
      id: `h${h}`,
      ...(zoned === true ? { az: `z${h % 2}` } : {}),
      ...(sized === true ? { size: perPolicy(() => 1 + below(3)) } : {}),
      ...(scored === true
        ? { score: sums.map((sum) => sum + (quantum > 0 ? quantum * below(3) : 0.1 * random())) }
        : {}),
      ...(tight === true && often(0.7) ? { memFreeMb: 1024 * below(10), vcpusFree: below(6) } : {}),
      ...(gpus ? { free: { CUSTOM_GPU: below(3) } } : {}),
      ...(disabled === true && often(0.3) ? { status: 'disabled' as const } : {}),
      ...(disabled === true && often(0.1) ? { state: 'down' as const } : {}),
    };
  });
  const groups: NonNullable<ClusterFile['groups']>[number][] = [];
  if (grouped === true)
    for (let v = 0, g = 0; v < V && g < 2 * scale; g++) {
      const size = 1 + below(3);
      const policy = (['anti-affinity', 'soft-anti-affinity', 'affinity', 'soft-affinity'] as const)[below(4)];
      const members = vms.slice(v, v + size).map((vm) => vm.id);
      v += size;
      if (policy !== undefined)
        groups.push({
          id: `g${g}`,
          policy,
          vms: members,
          maxServerPerHost: policy.endsWith('anti-affinity') ? 1 + below(2) : 1,
        });
    }
  return {
    file: { policies: perPolicy((p) => `p${p}`), weights: perPolicy(() => 1 + below(3)), hosts, vms, groups },
    budget: (1 + below(5)) * scale,
    restrictToAz: zoned === true && often(0.6),
  };
}
