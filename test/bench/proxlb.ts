/** Scenario files of ProxLB's solver (github.com/credativ/proxlb-solver, `scenarios`) as cluster files. */
import type { ClusterFile } from '@kronos/placement';

type Rule = { readonly name?: string; readonly vms: readonly string[]; readonly hard?: boolean };
type Node = {
  readonly cpu_total: number;
  readonly memory_total_gb: number;
  readonly storage_free?: Readonly<Record<string, number>>;
  readonly reserve?: {
    readonly cpu?: number;
    readonly memory_gb?: number;
    readonly storage_gb?: Readonly<Record<string, number>>;
  };
  readonly maintenance?: boolean;
};
type Pressures = Readonly<Partial<Record<'cpu_pressure' | 'memory_pressure' | 'io_pressure', number>>>;
type Guest = Pressures & {
  readonly node: string;
  readonly cpu: number;
  readonly memory_gb: number;
  readonly cpu_usage?: number;
  readonly disks?: Readonly<Record<string, number>>;
  readonly priority?: number;
  readonly tags?: readonly string[];
};

export type Scenario = {
  readonly name?: string;
  readonly balancing?: Readonly<Record<string, unknown>>;
  readonly nodes: Readonly<Record<string, Node>>;
  readonly vms?: Readonly<Record<string, Guest>>;
  readonly constraints?: {
    readonly affinity?: readonly Rule[];
    readonly anti_affinity?: readonly Rule[];
    readonly pin?: readonly { readonly vm: string; readonly nodes: readonly string[] }[];
    readonly ignore?: readonly (string | { readonly vm: string })[];
  };
  readonly evacuate_node?: string;
  readonly expect?: {
    readonly feasible?: boolean;
    readonly constraints_satisfied?: boolean;
    readonly spread_improved?: boolean;
    readonly max_migrations?: number;
    readonly placements?: Readonly<Record<string, string>>;
    readonly node_empty?: string;
    readonly path_feasible?: boolean;
  };
};

/** Gap below which each level of `balanciness` moves nothing. */
const GAPS: Readonly<Record<number, number>> = { 1: 1, 2: 0.25, 3: 0.15, 4: 0.05, 5: 0 };
const USUAL_LEVEL = 3;
/** A load counts as often as its guest's priority says: their gaps are for guests of this one. */
const USUAL_PRIORITY = 2;
/** Figures of a share: a bound is compared with sums of them. */
const DIGITS = 1e6;

const sum = (values: Iterable<number>): number => Iterator.from(values).reduce((a, b) => a + b, 0);
const setting = ({ balancing = {} }: Scenario, name: string, usual: number): number => {
  const value = balancing[name];
  return typeof value === 'number' ? value : usual;
};

/** A measure that a scenario balances: a resource, by use or by pressure. */
type Measure = { readonly resource: 'cpu' | 'memory' | 'io'; readonly pressure: boolean; readonly weight: number };

/** @throws Error for a method that is not known */
function measuresOf(scenario: Scenario): readonly Measure[] {
  const method = String(scenario.balancing?.method ?? 'memory');
  const [, word, kind = ''] = /^(cpu|memory|disk|io|global)(?:_(psi|smart))?$/.exec(method) ?? [];
  if (word === undefined) throw new Error(`unknown method ${method}`);
  const resources = {
    cpu: ['cpu'],
    memory: ['memory'],
    disk: ['io'],
    io: ['io'],
    global: ['memory', 'cpu', 'io'],
  } as const;
  return resources[word as keyof typeof resources].flatMap((resource): Measure[] => {
    const short = { cpu: 'cpu', memory: 'mem', io: 'io' }[resource];
    const share = word === 'global' ? setting(scenario, `w_global_${short}`, resource === 'io' ? 1 : 10) : 1;
    const use = { resource, pressure: false, weight: share * setting(scenario, `w_${short}_usage`, 1) };
    const psi = { resource, pressure: true, weight: share * setting(scenario, `w_${short}_psi`, 1) };
    if (kind === 'smart') return [use, psi];
    return [{ ...(kind === 'psi' ? psi : use), weight: share }];
  });
}

function capacityFor(node: Node, { resource, pressure }: Measure): number {
  if (pressure) return 100;
  if (resource === 'cpu') return Math.max(1, node.cpu_total - (node.reserve?.cpu ?? 0));
  if (resource === 'memory') return Math.max(1, node.memory_total_gb - (node.reserve?.memory_gb ?? 0));
  return Math.max(1, sum(Object.values(node.storage_free ?? {})));
}

function loadFor(scenario: Scenario, guest: Guest, { resource, pressure }: Measure): number {
  const load = (): number => {
    if (pressure) return guest[`${resource}_pressure`] ?? 0;
    if (resource === 'memory') return guest.memory_gb;
    if (resource === 'io') return sum(Object.values(guest.disks ?? {}));
    return scenario.balancing?.mode === 'assigned' ? guest.cpu : (guest.cpu_usage ?? guest.cpu);
  };
  return (load() * (guest.priority ?? USUAL_PRIORITY)) / USUAL_PRIORITY;
}

const guestsOf = ({ vms = {} }: Scenario): readonly (readonly [string, Guest])[] => Object.entries(vms);
const claims = (guest: Guest): Readonly<Record<string, number>> => ({
  MEMORY_MB: guest.memory_gb * 1024,
  VCPU: guest.cpu,
  ...Object.fromEntries(Object.entries(guest.disks ?? {}).map(([pool, gb]) => [`POOL ${pool}`, gb])),
});

/** The capacity of a node for guests, by resource. */
function capacities(scenario: Scenario, node: Node): Readonly<Record<string, number>> {
  const { reserve = {}, storage_free: storage = {} } = node;
  const overcommit = setting(scenario, 'cpu_overcommit', 2);
  const pools = Object.entries(storage).map(([pool, gb]): [string, number] => [
    `POOL ${pool}`,
    Math.max(0, gb - (reserve.storage_gb?.[pool] ?? 0)),
  ]);
  return {
    MEMORY_MB: (node.memory_total_gb - (reserve.memory_gb ?? 0)) * 1024,
    VCPU: Math.max(0, node.cpu_total - (reserve.cpu ?? 0)) * overcommit,
    ...Object.fromEntries(pools),
  };
}

/** Hosts that a guest may be on, by its pins and tags; null: all. */
function pinsOf({ constraints = {} }: Scenario, id: string, { tags = [] }: Guest): readonly string[] | null {
  const sets = [
    ...(constraints.pin ?? []).filter(({ vm }) => vm === id).map(({ nodes }) => nodes),
    ...tags.filter((tag) => tag.startsWith('plb_pin_')).map((tag) => [tag.slice('plb_pin_'.length)]),
  ];
  const [first, ...others] = sets;
  return first === undefined ? null : first.filter((node) => others.every((nodes) => nodes.includes(node)));
}

type Group = NonNullable<ClusterFile['groups']>[number];

/** Rules of the file, and those that tags make. */
function groupsOf(scenario: Scenario): readonly Group[] {
  const kinds = ['affinity', 'anti-affinity'] as const;
  return kinds.flatMap((kind): Group[] => {
    const written = scenario.constraints?.[kind === 'affinity' ? 'affinity' : 'anti_affinity'] ?? [];
    const prefix = `plb_${kind.replace('-', '_')}_`;
    const tagged = new Map<string, string[]>();
    for (const [id, { tags = [] }] of guestsOf(scenario))
      for (const tag of tags.filter((one) => one.startsWith(prefix))) tagged.set(tag, [...(tagged.get(tag) ?? []), id]);
    const rules: Rule[] = [...written, ...[...tagged].map(([name, vms]) => ({ name, vms }))];
    return rules.map(({ name = '', vms, hard = true }, i) => ({
      id: `${kind}-${i} ${name}`,
      policy: hard ? kind : `soft-${kind}`,
      vms: vms.filter((id) => scenario.vms?.[id] !== undefined),
    }));
  });
}

/**
 * A guest whose pins name one node belongs to the zone of that node alone, so that it goes there. Pins that name several nodes keep a guest
 * within them, and call none home.
 */
export function clusterFileOf(scenario: Scenario): ClusterFile {
  const measures = measuresOf(scenario);
  const ignored = new Set((scenario.constraints?.ignore ?? []).map((one) => (typeof one === 'string' ? one : one.vm)));
  const gap = (GAPS[setting(scenario, 'balanciness', USUAL_LEVEL)] ?? 0) / USUAL_PRIORITY;
  const guests = guestsOf(scenario);
  return {
    policies: measures.map(({ resource, pressure }) => `${resource}${pressure ? ' pressure' : ''}`),
    weights: measures.map(({ weight }) => weight),
    thresholds: measures.map(() => gap),
    targets: measures.map(() => 0),
    hosts: Object.entries(scenario.nodes).map(([id, node]) => {
      const left = { ...capacities(scenario, node) };
      for (const [, guest] of guests)
        if (guest.node === id)
          for (const [of, amount] of Object.entries(claims(guest))) left[of] = (left[of] ?? 0) - amount;
      const { MEMORY_MB: memFreeMb = 0, VCPU: vcpusFree = 0, ...pools } = left;
      const free = Object.fromEntries(Object.entries(pools).map(([pool, amount]) => [pool, Math.max(0, amount)]));
      const status = node.maintenance === true || scenario.evacuate_node === id ? 'disabled' : 'enabled';
      const size = measures.map((measure) => capacityFor(node, measure));
      return { id, az: id, status, size, memFreeMb, vcpusFree, free };
    }),
    vms: guests.map(([id, guest]) => {
      const node = scenario.nodes[guest.node];
      const pins = pinsOf(scenario, id, guest);
      const { MEMORY_MB: memMb = 0, VCPU: vcpus = 0, ...resources } = claims(guest);
      const share = (measure: Measure): number =>
        node === undefined ? 0 : loadFor(scenario, guest, measure) / capacityFor(node, measure);
      return {
        ...{ id, host: guest.node, memMb, vcpus, resources },
        w: measures.map((measure) => Math.round(share(measure) * DIGITS) / DIGITS),
        // A local disk is copied whole: their solver counts it four times.
        costGib: guest.memory_gb + 4 * sum(Object.values(guest.disks ?? {})),
        ...(ignored.has(id) ? { immovable: true } : {}),
        ...(pins === null ? {} : { hosts: pins, ...(pins.length === 1 ? { pin: pins[0] ?? '' } : {}) }),
      };
    }),
    groups: groupsOf(scenario),
  };
}

/** Hosts by guest. */
export type Places = ReadonlyMap<string, string>;

/** The breaches of the scenario's own rules by a placement. */
export function breaches(scenario: Scenario, places: Places): string[] {
  const guests = guestsOf(scenario);
  const at = (id: string): string => places.get(id) ?? '';
  const found: string[] = [];
  for (const [name, node] of Object.entries(scenario.nodes)) {
    const here = guests.filter(([id]) => at(id) === name);
    if (here.length > 0 && (node.maintenance === true || scenario.evacuate_node === name))
      found.push(`${name} is not empty`);
    const has = capacities(scenario, node);
    for (const of of new Set(here.flatMap(([, guest]) => Object.keys(claims(guest)))))
      if (sum(here.map(([, guest]) => claims(guest)[of] ?? 0)) > (has[of] ?? 0))
        found.push(`${name} has too little ${of}`);
  }
  for (const [id, guest] of guests)
    if (pinsOf(scenario, id, guest)?.includes(at(id)) === false) found.push(`${id} is not where it is pinned`);
  for (const { id, policy, vms } of groupsOf(scenario)) {
    const hosts = new Set(vms.map(at));
    if (policy.endsWith('anti-affinity') ? hosts.size < vms.length : hosts.size > 1) found.push(`${id} is broken`);
  }
  return found;
}

/** True when a guest may not arrive on its new host in this placement. */
export function refuses(scenario: Scenario, places: Places, id: string): boolean {
  const to = places.get(id) ?? '';
  const guest = scenario.vms?.[id];
  const node = scenario.nodes[to];
  if (guest === undefined || node === undefined || node.maintenance === true || scenario.evacuate_node === to)
    return true;
  if (pinsOf(scenario, id, guest)?.includes(to) === false) return true;
  const here = guestsOf(scenario).filter(([other]) => places.get(other) === to);
  const has = capacities(scenario, node);
  return Object.keys(claims(guest)).some((of) => sum(here.map(([, one]) => claims(one)[of] ?? 0)) > (has[of] ?? 0));
}
