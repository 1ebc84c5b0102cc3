/** People and things but servers: users, flavors, hosts, aggregates, groups. */
import { comeUp, goDown } from './crash.ts';
import { ActError } from './errors.ts';
import type { Aggregate, Flavor, Group, Host, User } from './model.ts';
import { type Amount, allocate, capacity, deallocate } from './placement.ts';
import type { AggregateScenario, FlavorInput, GroupInput, HostInput } from './scenario.ts';
import { aggregateSchema, flavorSchema, groupSchema, hostSchema } from './scenario.ts';
import type { CloudState } from './state.ts';

const COMMON_TRAITS = [
  'COMPUTE_NODE',
  'COMPUTE_DEVICE_TAGGING',
  'COMPUTE_NET_ATTACH_INTERFACE',
  'COMPUTE_VOLUME_EXTEND',
  'COMPUTE_VOLUME_MULTI_ATTACH',
  'COMPUTE_TRUSTED_CERTS',
  'COMPUTE_IMAGE_TYPE_QCOW2',
  'COMPUTE_IMAGE_TYPE_RAW',
  'HW_CPU_X86_SSE42',
  'HW_CPU_X86_AVX2',
];

export function addUser(
  s: CloudState,
  {
    name,
    password,
    roles,
    project,
  }: Pick<User, 'name' | 'password' | 'roles'> & {
    /** By name. */
    readonly project: string;
  },
): void {
  const id = s.random.uuid().replaceAll('-', '');
  s.users.set(id, { id, name, password, roles, projectId: s.project(project).id });
}

export function addFlavor(s: CloudState, input: FlavorInput): Flavor {
  const parsed = flavorSchema.parse(input);
  if (s.flavors.has(parsed.name)) throw new ActError(`there is already a flavor ${parsed.name}`);
  const flavor = { id: String(s.flavors.size + 1), ...parsed };
  s.flavors.set(flavor.name, flavor);
  return flavor;
}

export function addHost(s: CloudState, input: HostInput): Host {
  const parsed = hostSchema.parse(input);
  if (s.hosts.has(parsed.name)) throw new ActError(`there is already a host ${parsed.name}`);
  const id = ++s.ids.host;
  const host: Host = {
    name: parsed.name,
    hypervisorHostname: parsed.hypervisorHostname ?? parsed.name,
    nodeUuid: s.random.uuid(),
    nodeId: id,
    serviceUuid: s.random.uuid(),
    serviceId: id + 3,
    cell: parsed.cell,
    hypervisorType: parsed.hypervisorType,
    hypervisorVersion: parsed.hypervisorVersion,
    ip: `10.0.${id >> 8}.${id & 255}`,
    total: {
      vcpus: parsed.vcpus,
      memoryMb: parsed.memoryMb,
      diskGb: parsed.diskGb,
      pcpus: parsed.cells.reduce((sum, cell) => sum + cell.dedicatedCpus, 0),
    },
    cells: parsed.cells,
    reserved: { vcpus: parsed.reservedVcpus, memoryMb: parsed.reservedMemoryMb, diskGb: parsed.reservedDiskGb },
    ratio: { vcpus: parsed.cpuRatio, memoryMb: parsed.memoryRatio, diskGb: parsed.diskRatio },
    traits: [...COMMON_TRAITS, ...parsed.traits],
    disabled: parsed.disabled,
    disabledReason: parsed.disabledReason,
    up: parsed.up,
    forcedDown: parsed.forcedDown,
    crashed: false,
    lastSeenMs: s.nowMs - 60_000,
    outages: parsed.up ? [] : [{ fromMs: 0, untilMs: null }],
    consumers: new Map(),
    used: { vcpus: 0, memoryMb: 0, diskGb: 0, pcpus: 0 },
    generation: 2,
    running: new Set(),
    waiting: [],
  };
  s.hosts.set(host.name, host);
  s.hostsByNode.set(host.nodeUuid, host);
  return host;
}

/** `full`: a filler takes all that is left, so that nothing fits any more. */
export function setHost(
  s: CloudState,
  name: string,
  change: {
    disabled?: boolean | undefined;
    disabledReason?: string | null | undefined;
    up?: boolean | undefined;
    forcedDown?: boolean | undefined;
    hypervisorVersion?: number | undefined;
    full?: boolean | undefined;
  },
): void {
  const host = s.host(name);
  if (change.disabled !== undefined) {
    host.disabled = change.disabled;
    if (!change.disabled) host.disabledReason = null;
  }
  if (change.disabledReason !== undefined) host.disabledReason = change.disabledReason;
  if (change.up === true) comeUp(s, host);
  if (change.up === false) goDown(s, host);
  if (change.forcedDown !== undefined) host.forcedDown = change.forcedDown;
  if (change.hypervisorVersion !== undefined) host.hypervisorVersion = change.hypervisorVersion;
  if (change.full !== undefined) {
    const filler = `00000000-0000-4000-8000-${String(host.nodeId).padStart(12, '0')}`;
    deallocate(s, filler);
    if (change.full) {
      const left = (key: Amount): number => Math.max(0, capacity(host, key) - host.used[key]);
      allocate(s, filler, host, { vcpus: left('vcpus'), memoryMb: left('memoryMb'), diskGb: left('diskGb') });
    }
  }
  s.forgetViews(name);
}

export function addAggregate(s: CloudState, input: AggregateScenario): Aggregate {
  const parsed = aggregateSchema.parse(input);
  for (const each of s.aggregates.values())
    if (each.name === parsed.name) throw new ActError(`there is already an aggregate ${parsed.name}`);
  for (const host of parsed.hosts) s.host(host);
  const id = ++s.ids.aggregate;
  const metadata = { ...parsed.metadata };
  if (parsed.availabilityZone !== null) metadata.availability_zone = parsed.availabilityZone;
  const aggregate: Aggregate = {
    uuid: s.random.uuid(),
    id,
    name: parsed.name,
    availabilityZone: parsed.availabilityZone,
    hosts: [...parsed.hosts],
    metadata,
    createdMs: s.nowMs,
    updatedMs: null,
  };
  s.aggregates.set(id, aggregate);
  for (const host of aggregate.hosts) s.forgetViews(host);
  return aggregate;
}

export function removeAggregate(s: CloudState, idOrName: string): void {
  const aggregate = s.aggregate(idOrName);
  s.aggregates.delete(aggregate.id);
  for (const host of aggregate.hosts) s.forgetViews(host);
}

export function setAggregate(
  s: CloudState,
  idOrName: string,
  change: {
    name?: string | undefined;
    hosts?: readonly string[] | undefined;
    metadata?: Record<string, string> | undefined;
  },
): void {
  const aggregate = s.aggregate(idOrName);
  for (const host of change.hosts ?? []) s.host(host);
  for (const host of aggregate.hosts) s.forgetViews(host);
  if (change.name !== undefined) aggregate.name = change.name;
  if (change.hosts !== undefined) aggregate.hosts = [...change.hosts];
  if (change.metadata !== undefined) {
    aggregate.metadata = { ...change.metadata };
    aggregate.availabilityZone = change.metadata.availability_zone ?? null;
  }
  aggregate.updatedMs = s.nowMs;
  for (const host of aggregate.hosts) s.forgetViews(host);
}

export function addGroup(s: CloudState, input: GroupInput): Group {
  const parsed = groupSchema.parse(input);
  const group: Group = {
    uuid: s.random.uuid(),
    id: ++s.ids.group,
    name: parsed.name,
    policy: parsed.policy,
    maxServerPerHost: parsed.maxServerPerHost,
    projectId: s.project(parsed.project).id,
    userId: s.admin.id,
    members: [],
  };
  s.groups.set(group.uuid, group);
  return group;
}

export function removeGroup(s: CloudState, idOrName: string): void {
  const group = s.group(idOrName);
  s.groups.delete(group.uuid);
  for (const member of group.members) s.groupOf.delete(member);
}

/** Nova itself never changes a group's members after boot; people do, in its database or by re-creating VMs. */
export function setMembership(s: CloudState, serverIdOrName: string, groupIdOrName: string | null): void {
  const server = s.server(serverIdOrName);
  const old = s.groupOf.get(server.uuid);
  if (old !== undefined) old.members.splice(old.members.indexOf(server.uuid), 1);
  s.groupOf.delete(server.uuid);
  if (groupIdOrName !== null) {
    const group = s.group(groupIdOrName);
    group.members.push(server.uuid);
    s.groupOf.set(server.uuid, group);
  }
  s.touch(server);
}
