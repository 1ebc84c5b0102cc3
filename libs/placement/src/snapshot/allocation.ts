import {
  allocationLabels,
  allocationQuery,
  type HostObservation,
  type HostReading,
  INSTANCES,
  type Policy,
  type ServerObservation,
  totalQuery,
  type VmReading,
} from '@kronos/contracts';

export type AllocationInput = {
  readonly policies: readonly Policy[];
  readonly hosts: readonly Pick<HostObservation, 'name' | 'service' | 'inventory'>[];
  readonly servers: readonly Pick<ServerObservation, 'id' | 'host' | 'alsoOn' | 'resources'>[];
};

/**
 * The readings of allocation policies, from Placement's inventories and the servers' own allocations. A host's value is
 * used / capacity, where capacity is (total - reserved) x allocation_ratio; a VM's is its own allocation / capacity of its
 * host. Of `instances`, both are shares of the largest number of VMs on one host.
 */
export function allocationReadings(input: AllocationInput): {
  readonly hostReadings: readonly HostReading[];
  readonly vmReadings: readonly VmReading[];
} {
  const names = new Set(
    input.policies.flatMap(({ enabled, allocation }) => (enabled && allocation !== undefined ? [allocation] : [])),
  );
  const readings = [...names].map((name) => (name === INSTANCES ? instances(input) : resource(name, input)));
  return {
    hostReadings: readings.flatMap((reading) => reading.hosts),
    vmReadings: readings.flatMap((reading) => reading.vms),
  };
}

type Readings = { readonly hosts: readonly HostReading[]; readonly vms: readonly VmReading[] };

function resource(name: string, { hosts, servers }: AllocationInput): Readings {
  const capacity = new Map<string, number>();
  const used: Record<string, number> = {};
  // A running migration holds a claim on its other host. The claim moves with the VM, or it is released.
  const claimed = new Map<string, number>();
  for (const { host, alsoOn, resources } of servers)
    for (const other of new Set(alsoOn))
      if (other !== host) claimed.set(other, (claimed.get(other) ?? 0) + (resources[name] ?? 0));
  for (const host of hosts) {
    const inventory = host.inventory?.[name];
    if (inventory === undefined || inventory.capacity <= 0) continue;
    capacity.set(host.name, inventory.capacity);
    used[host.name] = share(Math.max(0, inventory.used - (claimed.get(host.name) ?? 0)), inventory.capacity);
  }
  const weights: Record<string, number> = {};
  for (const { id, host, resources } of servers) {
    const total = capacity.get(host);
    if (total !== undefined) weights[id] = share(resources[name] ?? 0, total);
  }
  const text = `Placement gives no ${name}`;
  return {
    hosts: [
      hostReading(allocationQuery(name), used, hosts, text),
      hostReading(totalQuery(name), Object.fromEntries(capacity), hosts, text),
    ],
    vms: [vmReading(allocationQuery(name), weights)],
  };
}

function instances({ hosts, servers }: AllocationInput): Readings {
  const counts = new Map(hosts.map(({ name }) => [name, 0]));
  for (const { host } of servers) counts.set(host, (counts.get(host) ?? 0) + 1);
  const most = Math.max(1, ...hosts.map(({ name }) => counts.get(name) ?? 0));
  const values = Object.fromEntries(hosts.map(({ name }) => [name, (counts.get(name) ?? 0) / most]));
  const weights = Object.fromEntries(servers.map(({ id }) => [id, 1 / most]));
  return {
    hosts: [hostReading(allocationQuery(INSTANCES), values, hosts, '')],
    vms: [vmReading(allocationQuery(INSTANCES), weights)],
  };
}

/** An allocation can exceed a capacity that was lowered since: the host is full. */
const share = (amount: number, total: number): number => Math.min(1, amount / total);

function hostReading(
  query: string,
  values: Readonly<Record<string, number>>,
  hosts: AllocationInput['hosts'],
  why: string,
): HostReading {
  const missing = hosts
    .filter(({ name, service }) => service.state !== 'down' && !Object.hasOwn(values, name))
    .map(({ name }) => name);
  const health = missing.length === 0 ? 'HEALTHY' : 'PARTIAL';
  const text = missing.length === 0 ? '' : `${why} for ${missing.join(', ')}`;
  return { query, label: allocationLabels.host, health, text, values: { ...values }, missing, unmatchedLabels: [] };
}

const vmReading = (query: string, values: Readonly<Record<string, number>>): VmReading => ({
  query,
  label: allocationLabels.vm,
  labelType: 'nova_instance_uuid',
  health: 'HEALTHY',
  text: '',
  values: { ...values },
  unmatchedLabels: 0,
  ambiguousLabels: 0,
});
