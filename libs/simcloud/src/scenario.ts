import { z } from 'zod';
import { ScenarioError } from './errors.ts';
import { fixedFactsSchema } from './fixedFacts.ts';
import { NOVA_TIMING, type Timing } from './model.ts';

const name = z.string().min(1);
const amount = z.number().int().nonnegative();
const labels = z.record(z.string(), z.string());
const microversion = z.string().regex(/^\d+\.\d+$/);

export const demandSchema = z.strictObject({
  /** Cores the guest uses. */
  cpuCores: z.number().nonnegative(),
  memoryMb: z.number().nonnegative(),
  /** Makes the cores vary: see DemandCurve in model.ts. Cloud seconds. */
  curve: z
    .strictObject({
      amplitude: z.number().min(0).max(1),
      periodSeconds: z.number().positive(),
      phase: z.number().default(0),
    })
    .optional(),
});

export const flavorSchema = z.strictObject({
  name,
  vcpus: amount.min(1),
  memoryMb: amount.min(1),
  diskGb: amount.default(0),
  extraSpecs: labels.default({}),
});

export const hostSchema = z.strictObject({
  name,
  /** Default: the name. */
  hypervisorHostname: name.optional(),
  vcpus: amount.default(64),
  memoryMb: amount.default(262_144),
  diskGb: amount.default(4000),
  reservedVcpus: amount.default(0),
  reservedMemoryMb: amount.default(512),
  reservedDiskGb: amount.default(0),
  cpuRatio: z.number().positive().default(4),
  memoryRatio: z.number().positive().default(1.5),
  diskRatio: z.number().positive().default(1),
  hypervisorType: name.default('QEMU'),
  hypervisorVersion: amount.default(8_002_002),
  cell: name.default('cell1'),
  traits: z.array(name).default([]),
  /** NUMA cells; none: one that takes everything. Their dedicated CPUs are the host's PCPU. */
  cells: z
    .array(
      z.strictObject({
        id: amount,
        dedicatedCpus: amount.default(0),
        sharedCpus: amount.default(0),
        memoryMb: amount,
        pages: z.record(z.string(), amount).default({}),
      }),
    )
    .default([]),
  disabled: z.boolean().default(false),
  disabledReason: z.string().nullable().default(null),
  up: z.boolean().default(true),
  forcedDown: z.boolean().default(false),
});

export const aggregateSchema = z.strictObject({
  name,
  hosts: z.array(name).default([]),
  availabilityZone: name.nullable().default(null),
  metadata: labels.default({}),
});

export const groupSchema = z.strictObject({
  name,
  policy: z.enum(['affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity']),
  maxServerPerHost: z.number().int().positive().nullable().default(null),
  project: name.default('admin'),
});

export const portSchema = z.strictObject({
  vnicType: name.default('normal'),
  minKbps: z.number().int().positive().nullable().default(null),
  /** An IPv4 address. */
  address: z.ipv4().nullable().default(null),
});

export const serverSchema = z.strictObject({
  name,
  /** A uuid; drawn from the seed when absent. */
  id: z.uuid().optional(),
  host: name,
  flavor: name,
  /** Default: 30 % of the flavor's vCPUs and 50 % of its memory. */
  demand: demandSchema.optional(),
  metadata: labels.default({}),
  tags: z.array(name).default([]),
  locked: z.boolean().default(false),
  lockedReason: z.string().nullable().default(null),
  /** The name of a server group. */
  group: name.optional(),
  project: name.default('admin'),
  /** The AZ the server was created with; Nova never leaves it. */
  pinnedZone: name.nullable().default(null),
  status: z.enum(['ACTIVE', 'PAUSED', 'SHUTOFF', 'ERROR']).default('ACTIVE'),
  bootFromVolume: z.boolean().default(false),
  ...fixedFactsSchema.shape,
  ports: z.array(portSchema).default([]),
});

const timingSchema = z.strictObject(
  Object.fromEntries(Object.keys(NOVA_TIMING).map((key) => [key, z.number().nonnegative()])) as {
    [K in keyof Timing]: z.ZodNumber;
  },
);

const scenarioSchema = z.strictObject({
  name: name.default('cloud'),
  seed: z.number().int().default(1),
  region: name.default('RegionOne'),
  /** The newest microversions the cloud speaks. */
  compute: microversion.default('2.100'),
  placement: microversion.default('1.39'),
  timing: timingSchema.partial().default({}),
  /** Live migrations that may leave one host at once (nova.conf max_concurrent_live_migrations). */
  maxConcurrentLiveMigrations: z.number().int().positive().default(1),
  /** Nova's policy `compute:servers:resize:cross_cell` grants administrators a resize or cold migration to another cell. */
  crossCellResize: z.boolean().default(false),
  /** nova.conf resize_confirm_window: seconds after which Nova confirms a move within a cell by itself; 0: never. */
  resizeConfirmWindow: z.number().nonnegative().default(0),
  /** nova-scheduler workers: with more than one, none knows which moves the others have just admitted. */
  schedulers: z.number().int().positive().default(1),
  /** NUMATopologyFilter is on. Without it the destination's compute refuses what does not fit. */
  numaFilter: z.boolean().default(false),
  /** nova.conf [compute] packing_host_numa_cells_allocation_strategy. */
  packNumaCells: z.boolean().default(false),
  /** The most items of one page (nova.conf [api] max_limit). */
  maxLimit: z.number().int().positive().default(1000),
  tokenSeconds: z.number().positive().default(3600),
  scrapeSeconds: z.number().positive().default(2),
  /** The most samples that one query may load (Prometheus' --query.max-samples). */
  maxSamples: z.number().int().positive().default(50_000_000),
  hosts: z.array(hostSchema).min(1),
  aggregates: z.array(aggregateSchema).default([]),
  flavors: z.array(flavorSchema).default([]),
  groups: z.array(groupSchema).default([]),
  servers: z.array(serverSchema).default([]),
  /** Users besides admin / secret, which always exists. */
  users: z
    .array(z.strictObject({ name, password: name, roles: z.array(name), project: name.default('admin') }))
    .default([]),
  applicationCredentials: z
    .array(z.strictObject({ id: name, name, secret: name, user: name.default('admin') }))
    .default([]),
});

/** A cloud to be simulated, complete. */
export type Scenario = z.infer<typeof scenarioSchema>;
/** The same as people write it: everything with a default may be left out. */
export type ScenarioInput = z.input<typeof scenarioSchema>;
export type HostInput = z.input<typeof hostSchema>;
export type ServerInput = z.input<typeof serverSchema>;
export type GroupInput = z.input<typeof groupSchema>;
export type AggregateScenario = z.input<typeof aggregateSchema>;
export type FlavorInput = z.input<typeof flavorSchema>;

/** Says where in the input each problem is: `hosts[3].vcpus: ...`. */
export function describeIssues(error: z.ZodError): string {
  return error.issues
    .map((issue) => {
      const path = issue.path.reduce<string>(
        (text, key) =>
          typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`,
        '',
      );
      return `${path === '' ? 'the whole' : path}: ${issue.message}`;
    })
    .join('; ');
}

function unique(place: string, names: readonly string[]): void {
  const seen = new Set<string>();
  for (const [index, each] of names.entries()) {
    if (seen.has(each)) throw new ScenarioError(`${place}[${index}]: the name ${each} is taken; give it another`);
    seen.add(each);
  }
}

/** Checks and completes a scenario. Throws ScenarioError naming the place. */
export function parseScenario(input: unknown): Scenario {
  const parsed = scenarioSchema.safeParse(input);
  if (!parsed.success) throw new ScenarioError(describeIssues(parsed.error));
  const scenario = parsed.data;
  unique(
    'hosts',
    scenario.hosts.map((host) => host.name),
  );
  unique(
    'aggregates',
    scenario.aggregates.map((aggregate) => aggregate.name),
  );
  unique(
    'flavors',
    scenario.flavors.map((flavor) => flavor.name),
  );
  unique(
    'groups',
    scenario.groups.map((group) => group.name),
  );
  const hosts = new Set(scenario.hosts.map((host) => host.name));
  const flavors = new Set(scenario.flavors.map((flavor) => flavor.name));
  const groups = new Set(scenario.groups.map((group) => group.name));
  for (const [index, aggregate] of scenario.aggregates.entries())
    for (const host of aggregate.hosts)
      if (!hosts.has(host))
        throw new ScenarioError(`aggregates[${index}].hosts: there is no host ${host}; add it to hosts`);
  for (const [index, server] of scenario.servers.entries()) {
    if (!hosts.has(server.host)) throw new ScenarioError(`servers[${index}].host: there is no host ${server.host}`);
    if (!flavors.has(server.flavor))
      throw new ScenarioError(`servers[${index}].flavor: there is no flavor ${server.flavor}; add it to flavors`);
    if (server.group !== undefined && !groups.has(server.group))
      throw new ScenarioError(`servers[${index}].group: there is no group ${server.group}; add it to groups`);
  }
  return scenario;
}
