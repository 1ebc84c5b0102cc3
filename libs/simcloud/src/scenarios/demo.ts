import { random } from '../random.ts';
import { parseScenario, type Scenario, type ServerInput } from '../scenario.ts';

/** Sizes of the demo's hosts, needed in its policies: a VM's share of its host. */
const CORES = 64;
const MEMORY_MB = 262_144;

/** How busy each host is at the start: far apart in CPU, and in memory too, but not on the same hosts. */
const BUSY: readonly (readonly [cpu: number, memory: number, vms: number])[] = [
  [0.88, 0.35, 15],
  [0.82, 0.42, 14],
  [0.33, 0.84, 13],
  [0.74, 0.3, 14],
  [0.2, 0.78, 12],
  [0.16, 0.25, 8],
  [0.9, 0.46, 16],
  [0.28, 0.87, 14],
  [0.24, 0.2, 9],
  [0.48, 0.33, 12],
  [0.12, 0.7, 11],
  [0.38, 0.36, 12],
];

const FLAVORS = [
  { name: 'c.small', vcpus: 2, memoryMb: 4096, diskGb: 20 },
  { name: 'c.medium', vcpus: 4, memoryMb: 8192, diskGb: 40 },
  { name: 'm.medium', vcpus: 4, memoryMb: 16_384, diskGb: 40 },
  { name: 'c.large', vcpus: 8, memoryMb: 16_384, diskGb: 80 },
  { name: 'm.large', vcpus: 8, memoryMb: 32_768, diskGb: 80 },
  { name: 'm.xlarge', vcpus: 16, memoryMb: 65_536, diskGb: 160 },
] as const;

const ROLES = ['web', 'api', 'db', 'cache', 'queue', 'batch', 'build', 'mail'] as const;

/**
 * The demo's cloud: 12 hosts in the aggregate `general`, two availability zones, 150 VMs, badly balanced in CPU and in
 * memory; server groups of each policy (one soft one broken), a disabled host with VMs on it, a locked VM, and two
 * VMs that opted out, one by tag and one by metadata.
 */
export function demoCloud(seed = 7): Scenario {
  const chance = random(seed);
  const hosts = BUSY.map((_, index) => `compute-${String(index + 1).padStart(2, '0')}`);
  const servers: ServerInput[] = [];
  for (const [index, [cpu, memory, count]] of BUSY.entries()) {
    const cores = shares(count, cpu * CORES, 15, chance.next);
    const megabytes = shares(count, memory * MEMORY_MB, 60_000, chance.next);
    for (let i = 0; i < count; i++) {
      const cpuCores = Math.round((cores[i] ?? 0) * 100) / 100;
      const memoryMb = Math.round(megabytes[i] ?? 0);
      const flavor = FLAVORS.find((each) => each.vcpus >= cpuCores && each.memoryMb >= memoryMb) ?? FLAVORS[5];
      const role = ROLES[servers.length % ROLES.length] ?? 'web';
      servers.push({
        id: chance.uuid(),
        name: `${role}-${String(Math.floor(servers.length / ROLES.length) + 1).padStart(2, '0')}`,
        host: hosts[index] ?? '',
        flavor: flavor.name,
        demand: { cpuCores, memoryMb },
      });
    }
  }
  const change = (place: number, fields: Partial<ServerInput>): void => {
    const server = servers[place];
    if (server !== undefined) servers[place] = { ...server, ...fields };
  };
  const on = (host: string): number[] => servers.flatMap((server, place) => (server.host === host ? [place] : []));
  const take = (host: string, nth: number): number => on(host)[nth] ?? 0;
  for (const host of ['compute-01', 'compute-05', 'compute-09']) change(take(host, 0), { group: 'db-primary' });
  for (const host of ['compute-02', 'compute-02', 'compute-07', 'compute-10'].entries())
    change(take(host[1], host[0] === 1 ? 2 : 1), { group: 'web-front' });
  for (const nth of [3, 4]) change(take('compute-04', nth), { group: 'app-and-cache' });
  for (const nth of [5, 6]) change(take('compute-03', nth), { group: 'build-farm' });
  change(take('compute-01', 2), { locked: true, lockedReason: 'kept where it is by its owner' });
  change(take('compute-07', 3), { tags: ['kronos:exclude'] });
  change(take('compute-02', 4), { metadata: { 'kronos:exclude': 'true' } });
  change(take('compute-06', 1), { pinnedZone: 'az-a' });
  return parseScenario({
    name: 'demo',
    seed,
    hosts: hosts.map((name, index) => ({
      name,
      vcpus: CORES,
      memoryMb: MEMORY_MB,
      diskGb: 8000,
      ...(index === 11 ? { disabled: true, disabledReason: 'firmware upgrade' } : {}),
    })),
    flavors: [...FLAVORS],
    aggregates: [
      { name: 'general', hosts },
      { name: 'zone-a', hosts: hosts.slice(0, 6), availabilityZone: 'az-a' },
      { name: 'zone-b', hosts: hosts.slice(6), availabilityZone: 'az-b' },
    ],
    groups: [
      { name: 'db-primary', policy: 'anti-affinity' },
      { name: 'web-front', policy: 'soft-anti-affinity' },
      { name: 'app-and-cache', policy: 'affinity' },
      { name: 'build-farm', policy: 'soft-affinity' },
    ],
    servers,
  });
}

/** `count` positive parts of `total`, none above `most`. */
function shares(count: number, total: number, most: number, chance: () => number): number[] {
  const weights = Array.from({ length: count }, () => 0.25 + chance() ** 2 * 2);
  const sum = weights.reduce((a, b) => a + b, 0);
  let parts = weights.map((weight) => (weight / sum) * total);
  for (let round = 0; round < 20 && parts.some((part) => part > most); round++) {
    const over = parts.reduce((excess, part) => excess + Math.max(0, part - most), 0);
    const room = parts.reduce((left, part) => left + Math.max(0, most - part), 0);
    parts = parts.map((part) => (part > most ? most : part + (over * (most - part)) / room));
  }
  return parts;
}

/** The two policies that the demo runs with, as `policies.yaml` takes them. */
export const demoPolicies = `policies:
  - name: cpu
    mode: spread
    weight: 0.6
    imbalance_query: host_cpu_utilisation
    host_label: host
    vm_profile_query: vm_cpu_cores / ${CORES}
    vm_profile_label: instance_uuid
    vm_profile_label_type: nova_instance_uuid
    threshold: 0.2
    max_migrations_per_cycle: 10
  - name: memory
    mode: spread
    weight: 0.4
    imbalance_query: host_mem_utilisation
    host_label: host
    vm_profile_query: vm_mem_mb / ${MEMORY_MB}
    vm_profile_label: instance_uuid
    vm_profile_label_type: nova_instance_uuid
    threshold: 0.25
    max_migrations_per_cycle: 10
`;
