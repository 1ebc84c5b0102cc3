import type { ClusterFile } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';

/**
 * A large synthetic cluster: flavours of 1 to 16 vCPUs, hosts preferred unequally, three policies, anti-affinity groups of
 * three for a tenth of the VMs, three zones, and a twentieth of the hosts disabled, so that they take nothing.
 */
export function largeCluster(hosts: number, vms: number, seed: number): ClusterFile {
  const random = seeded(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const preference = Float64Array.from({ length: hosts }, () => Math.exp(0.6 * normal()));
  const sums = new Float64Array(hosts);
  let all = 0;
  preference.forEach((p, h) => {
    all += p;
    sums[h] = all;
  });
  const pick = (): number => {
    const at = random() * all;
    let low = 0;
    let high = hosts - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  // A host holds what the average one does one and a half times over, so that most can take more.
  const perHost = vms / hosts;
  const memoryOf = 4096 * 3.8 * perHost * 1.6;
  const used = new Float64Array(hosts);
  const flavours = [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 8, 8, 8, 16];
  const list: ClusterFile['vms'][number][] = [];
  const onHost: number[] = [];
  for (let v = 0; v < vms; v++) {
    const vcpus = flavours[Math.floor(random() * flavours.length)] ?? 1;
    const memMb = 4096 * vcpus;
    let host = pick();
    for (let tries = 0; (used[host] ?? 0) + memMb > memoryOf && tries < 100; tries++) host = pick();
    used[host] = (used[host] ?? 0) + memMb;
    onHost.push(host);
    const busy = 0.05 + 0.6 * random() * random();
    const share = vcpus / (3.8 * perHost * 2);
    list.push({
      id: `vm${v}`,
      host: `host${host}`,
      w: [share * busy, share * 0.8, share * 0.5 * random()],
      vcpus,
      memMb,
    });
  }
  const groups: NonNullable<ClusterFile['groups']>[number][] = [];
  for (let v = 0; v + 2 < vms && groups.length < vms / 30; v += 3)
    if (new Set(onHost.slice(v, v + 3)).size === 3)
      groups.push({
        id: `group${groups.length}`,
        policy: 'anti-affinity',
        vms: [`vm${v}`, `vm${v + 1}`, `vm${v + 2}`],
      });
  return {
    policies: ['cpu', 'mem', 'net'],
    weights: [0.5, 0.3, 0.2],
    hosts: Array.from({ length: hosts }, (_, h) => ({
      id: `host${h}`,
      memFreeMb: Math.max(0, memoryOf - (used[h] ?? 0)),
      az: `zone${h % 3}`,
      ...(h % 20 === 19 ? { status: 'disabled' as const } : {}),
    })),
    vms: list,
    groups,
  };
}
