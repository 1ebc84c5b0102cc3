import type { ClusterFile } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';

/** A host as the peers need it: all are alike. Memory in MiB. */
export const HOST = { cores: 64, memoryMb: 524_288, reservedMb: 8192, cpuRatio: 4 } as const;

/** Flavours: vCPUs with 4 GiB each, and their share of the VMs. */
const flavours: readonly (readonly [vcpus: number, share: number])[] = [
  [1, 0.25],
  [2, 0.3],
  [4, 0.25],
  [8, 0.15],
  [16, 0.05],
];

/**
 * A cluster that Ganeti and Watcher can hold too: alike hosts, two policies (cpu, mem) of equal weight, hosts preferred
 * unequally, everything fits. The CPU load of a VM is 5 to 95 % of its vCPUs, and half of that counts, so that no host
 * passes 1.
 */
export function peerCluster(hosts: number, vms: number, seed: number): ClusterFile {
  const random = seeded(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const preference = Array.from({ length: hosts }, () => Math.exp(0.6 * normal()));
  const all = preference.reduce((sum, p) => sum + p, 0);
  const pick = (): number => {
    let at = random() * all;
    for (const [h, p] of preference.entries()) {
      at -= p;
      if (at < 0) return h;
    }
    return hosts - 1;
  };
  const flavour = (): number => {
    let at = random();
    for (const [vcpus, share] of flavours) {
      at -= share;
      if (at < 0) return vcpus;
    }
    return 16;
  };
  const usable = HOST.memoryMb - HOST.reservedMb;
  const used = new Array<number>(hosts).fill(0);
  const claimed = new Array<number>(hosts).fill(0);
  const list = Array.from({ length: vms }, (_, v) => {
    const vcpus = flavour();
    const memMb = 4096 * vcpus;
    let host = pick();
    const fits = (h: number): boolean =>
      (used[h] ?? 0) + memMb <= 0.92 * usable && (claimed[h] ?? 0) + vcpus <= HOST.cpuRatio * HOST.cores;
    for (let tries = 0; !fits(host); tries++) {
      if (tries === 10_000) throw new Error(`${vms} VMs do not fit on ${hosts} hosts`);
      host = pick();
    }
    used[host] = (used[host] ?? 0) + memMb;
    claimed[host] = (claimed[host] ?? 0) + vcpus;
    const busy = Math.min(0.95, 0.05 + 0.9 * random() * Math.sqrt(random()));
    const share = (x: number): number => Math.round(x * 1e6) / 1e6;
    return {
      id: `vm${v}`,
      host: `node${host}`,
      w: [share((busy * vcpus) / HOST.cores / 2), share(memMb / HOST.memoryMb)],
      vcpus,
      memMb,
    };
  });
  return {
    policies: ['cpu', 'mem'],
    weights: [1, 1],
    hosts: used.map((mb, h) => ({ id: `node${h}`, memFreeMb: usable - mb })),
    vms: list,
    groups: [],
  };
}

/** The host of every VM, by id. */
export type Placement = ReadonlyMap<string, string>;

export const placementOf = (file: ClusterFile): Map<string, string> => new Map(file.vms.map((vm) => [vm.id, vm.host]));

/** Sum over the policies of `max - min` of the hosts' values: what the peers are compared by. */
export function spreadOf(file: ClusterFile, at: Placement): number {
  let sum = 0;
  for (const p of file.policies.keys()) {
    const value = new Map(file.hosts.map((host) => [host.id, 0]));
    for (const vm of file.vms) {
      const host = at.get(vm.id) ?? vm.host;
      value.set(host, (value.get(host) ?? 0) + (vm.w[p] ?? 0));
    }
    sum += Math.max(...value.values()) - Math.min(...value.values());
  }
  return sum;
}

/** The number of hosts without a VM. */
export const emptyHosts = (file: ClusterFile, at: Placement): number => file.hosts.length - new Set(at.values()).size;
