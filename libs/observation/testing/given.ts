/** A small cloud in the words of Nova, for tests: three hosts, each thing changed where a test needs it. */
import type { Policy } from '@kronos/contracts';
import type { Aggregate, ComputeService, Hypervisor, Migration, Server, ServerGroup } from '@kronos/openstack';
import type { RangeSeries, Sample } from '@kronos/prometheus';
import type { CloudLists, ObserveOptions } from '../src/cloud.ts';
import type { QueryAnswer } from '../src/readings.ts';
import { indexServers, type ServerIndex } from '../src/servers.ts';

export const options: ObserveOptions = {
  hypervisorTypes: ['QEMU', 'KVM'],
  optOut: ['kronos:exclude'],
  cells: [],
};

export const aggregate = (name: string, hosts: readonly string[], more: Partial<Aggregate> = {}): Aggregate => ({
  id: 1,
  uuid: `uuid-of-${name}`,
  name,
  availabilityZone: null,
  hosts,
  metadata: {},
  ...more,
});

export const service = (host: string, more: Partial<ComputeService> = {}): ComputeService => ({
  id: `service-${host}`,
  host,
  binary: 'nova-compute',
  zone: 'nova',
  status: 'enabled',
  state: 'up',
  cellDown: false,
  forcedDown: false,
  disabledReason: null,
  updatedAt: '2026-01-01T00:00:00.000Z',
  ...more,
});

export const hypervisor = (host: string, more: Partial<Hypervisor> = {}): Hypervisor => ({
  id: `id-of-${host}`,
  hypervisorHostname: `${host}.example`,
  hypervisorType: 'QEMU',
  hypervisorVersion: 8_002_000,
  state: 'up',
  status: 'enabled',
  service: { id: `service-${host}`, host, disabledReason: null },
  ...more,
});

export const group = (
  id: string,
  policy: string | null,
  memberIds: readonly string[],
  more: Partial<ServerGroup> = {},
): ServerGroup => ({
  id,
  name: `name-of-${id}`,
  policy,
  maxServersPerHost: 1,
  memberIds,
  projectId: 'project',
  ...more,
});

export const migration = (
  serverId: string,
  source: string | null,
  dest: string | null,
  more: Partial<Migration> = {},
): Migration => ({
  id: 7,
  uuid: `migration-of-${serverId}`,
  serverId,
  type: 'live-migration',
  status: 'running',
  sourceCompute: source,
  destCompute: dest,
  createdAt: '2026-01-01T11:59:00.000Z',
  updatedAt: null,
  ...more,
});

export const policy = (name: string, more: Partial<Policy> = {}): Policy => ({
  name,
  mode: 'spread',
  weight: 1,
  imbalanceQuery: `host_${name}`,
  hostLabel: 'host',
  vmProfileQuery: `vm_${name}`,
  vmProfileLabel: 'uuid',
  vmProfileLabelType: 'nova_instance_uuid',
  vmProfileFallback: 'skip',
  threshold: 0.2,
  capacityQuery: null,
  capacityThreshold: null,
  hostSizeQuery: null,
  maxMigrationsPerCycle: 5,
  minSustainedCycles: 0,
  enabled: true,
  ...more,
});

const got = <T>(value: T): { readonly ok: true; readonly value: T } => ({ ok: true, value });

/** A part of the cloud that could not be read. */
export const unread = { ok: false, code: 'KRONOS_HTTP_UNREACHABLE', text: 'nova is unreachable' } as const;

/** Hosts a, b and c in the aggregate `gpu`, all up and enabled, no servers; with the given parts instead. */
export const cloud = (
  parts: {
    readonly aggregates?: readonly Aggregate[];
    readonly services?: readonly ComputeService[];
    readonly hypervisors?: readonly Hypervisor[];
    readonly servers?: readonly Server[];
    readonly serverGroups?: readonly ServerGroup[];
    readonly migrations?: readonly Migration[];
  } = {},
): CloudLists => {
  const hosts = ['a', 'b', 'c'];
  return {
    aggregates: got(parts.aggregates ?? [aggregate('gpu', hosts)]),
    services: got(parts.services ?? hosts.map((host) => service(host))),
    hypervisors: got(parts.hypervisors ?? hosts.map((host) => hypervisor(host))),
    servers: got(parts.servers ?? []),
    serverGroups: got(parts.serverGroups ?? []),
    migrations: got(parts.migrations ?? []),
  };
};

export const indexOf = (lists: CloudLists): ServerIndex =>
  indexServers(lists.servers.ok ? lists.servers.value : [], lists.migrations.ok ? lists.migrations.value : [], at);

/** The time of every answer in tests. */
export const at = Date.parse('2026-01-01T12:00:00.000Z');

type Value = readonly [labels: Readonly<Record<string, string>>, value: number];

export const samples = (values: readonly Value[]): Sample[] =>
  values.map(([labels, value]) => ({ labels, timeMs: at, value }));

const ranges = (values: readonly Value[]): RangeSeries[] =>
  values.map(([labels, value]) => ({ labels, samples: [{ timeMs: at - 60_000, value }] }));

/** An answer whose series were all there within the staleness threshold too. */
export const answer = (query: string, values: readonly Value[], more: Partial<QueryAnswer> = {}): QueryAnswer => ({
  query,
  timeMs: at,
  instant: samples(values),
  range: ranges(values),
  timestamps: undefined,
  failure: null,
  warnings: [],
  ...more,
});
