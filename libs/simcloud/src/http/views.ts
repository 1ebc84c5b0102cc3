import { createHash } from 'node:crypto';
import type { Cloud } from '../cloud.ts';
import { shownRow } from '../migrations.ts';
import {
  type Action,
  type Aggregate,
  type Group,
  type Host,
  IN_PROGRESS,
  type Migration,
  type Server,
} from '../model.ts';
import { isoSeconds, micros } from './exchange.ts';

/** Nova's objects as JSON, per microversion (`minor` 96 means 2.96). Field order as Nova writes it. */

function hostId(projectId: string, host: string): string {
  return host === ''
    ? ''
    : createHash('sha224')
        .update(projectId + host)
        .digest('hex');
}

/** The statuses of states that no task changes. */
const PLAIN = {
  error: 'ERROR',
  building: 'BUILD',
  rescued: 'RESCUE',
  shelved: 'SHELVED',
  shelved_offloaded: 'SHELVED_OFFLOADED',
} as const;

/** nova/api/openstack/common.py _STATE_MAP, as far as the simulated states go. */
export function novaStatus(server: Server): string {
  if (server.deletedMs !== null) return 'DELETED';
  switch (server.vmState) {
    case 'active':
    case 'paused':
      if (server.taskState === 'migrating') return 'MIGRATING';
      return server.vmState === 'paused' ? 'PAUSED' : activeStatus(server);
    case 'stopped':
      return resizing(server) ? 'RESIZE' : 'SHUTOFF';
    case 'resized':
      return server.taskState === 'resize_reverting' ? 'REVERT_RESIZE' : 'VERIFY_RESIZE';
    default:
      return PLAIN[server.vmState];
  }
}

function activeStatus(server: Server): string {
  if (resizing(server)) return 'RESIZE';
  const task = server.taskState ?? '';
  if (task.startsWith('reboot')) return task.endsWith('hard') ? 'HARD_REBOOT' : 'REBOOT';
  return task.startsWith('rebuild') ? 'REBUILD' : 'ACTIVE';
}

/** While a revert is under way in its old cell a server has its old vm_state and `resize_reverting`, which is no RESIZE. */
function resizing(server: Server): boolean {
  return server.taskState?.startsWith('resize_') === true && server.taskState !== 'resize_reverting';
}

/** nova/compute/api.py get_instance_host_status. */
function hostStatus(host: Host | undefined): string {
  if (host === undefined) return '';
  if (host.forcedDown) return 'DOWN';
  if (host.disabled) return 'MAINTENANCE';
  return host.up ? 'UP' : 'UNKNOWN';
}

/** The form of an object. */
type Form = {
  readonly minor: number;
  /** See {@link Call.base}. */
  readonly base: string;
};
/** `show`: as GET of one server has it, not as a list. */
type ServerForm = Form & { readonly show: boolean };

export function serverView(cloud: Cloud, server: Server, form: ServerForm): string {
  if (cloud.isUnreachable(server)) return JSON.stringify(partialServer(cloud, server, form));
  const key = `${form.minor}${form.show ? 's' : ''}`;
  const cached = server.views.get(key);
  if (cached !== undefined) return cached;
  const view = JSON.stringify(serverObject(cloud, server, form));
  server.views.set(key, view);
  return view;
}

/** The fields of a server whose cell is not reached, from 2.69 on: Nova's API knows them itself. */
function partialServer(cloud: Cloud, server: Server, form: ServerForm): unknown {
  const list = {
    id: server.uuid,
    status: 'UNKNOWN',
    tenant_id: server.projectId,
    created: isoSeconds(server.createdMs),
    links: linksOf(server, form),
  };
  if (!form.show) return list;
  const group = cloud.groupOf.get(server.uuid);
  return {
    ...list,
    user_id: server.userId,
    image: imageOf(server, form),
    flavor: flavorOf(server, form),
    'OS-EXT-AZ:availability_zone': server.pinnedZone ?? 'UNKNOWN',
    'OS-EXT-STS:power_state': 0,
    ...(form.minor >= 71 ? { server_groups: group === undefined ? [] : [group.uuid] } : {}),
  };
}

export const linksOf = ({ uuid }: Server, { base }: Pick<Form, 'base'>): object[] => [
  { rel: 'self', href: `${base}/v2.1/servers/${uuid}` },
  { rel: 'bookmark', href: `${base}/servers/${uuid}` },
];

/** All ports are of one network. */
function addressesOf({ ports }: Server): Record<string, object[]> {
  const found = ports.flatMap((port) =>
    port.address === null
      ? []
      : [{ version: 4, addr: port.address, 'OS-EXT-IPS:type': 'fixed', 'OS-EXT-IPS-MAC:mac_addr': port.mac }],
  );
  return found.length === 0 ? {} : { net: found };
}

function imageOf({ imageId }: Server, { minor, base }: Form): unknown {
  if (imageId === null) return '';
  return {
    id: imageId,
    links: [{ rel: 'bookmark', href: `${base}/images/${imageId}` }],
    ...(minor >= 98 ? { properties: { base_image_ref: imageId, min_ram: '0', min_disk: '1' } } : {}),
  };
}

function flavorOf({ flavor }: Server, { minor, base }: Form): unknown {
  if (minor < 47) return { id: flavor.id, links: [{ rel: 'bookmark', href: `${base}/flavors/${flavor.id}` }] };
  return {
    vcpus: flavor.vcpus,
    ram: flavor.memoryMb,
    disk: flavor.diskGb,
    ephemeral: 0,
    swap: 0,
    original_name: flavor.name,
    extra_specs: flavor.extraSpecs,
  };
}

const WITH_PROGRESS: readonly string[] = ['ACTIVE', 'BUILD', 'REBUILD', 'RESIZE', 'VERIFY_RESIZE', 'MIGRATING'];

function serverObject(cloud: Cloud, server: Server, form: ServerForm): unknown {
  const status = novaStatus(server);
  const view: Record<string, unknown> = {
    id: server.uuid,
    name: server.name,
    status,
    tenant_id: server.projectId,
    user_id: server.userId,
    metadata: server.metadata,
    hostId: hostId(server.projectId, server.host),
    image: imageOf(server, form),
    flavor: flavorOf(server, form),
    created: isoSeconds(server.createdMs),
    updated: isoSeconds(server.updatedMs),
    addresses: addressesOf(server),
    accessIPv4: '',
    accessIPv6: '',
    links: linksOf(server, form),
    'OS-DCF:diskConfig': 'MANUAL',
  };
  if (server.fault !== null && status === 'ERROR')
    view.fault = {
      code: server.fault.code,
      created: isoSeconds(server.fault.createdMs),
      message: server.fault.message,
    };
  if (WITH_PROGRESS.includes(status)) view.progress = 0;
  const host = cloud.hosts.get(server.host);
  const group = cloud.groupOf.get(server.uuid);
  addExtensions(view, server, {
    minor: form.minor,
    host,
    zone: host === undefined ? '' : cloud.zoneOf(server.host),
    group,
  });
  addLaterFields(view, server, { ...form, host, group });
  return view;
}

/** The fields of what were extensions of the API, in their order. */
function addExtensions(
  view: Record<string, unknown>,
  server: Server,
  {
    minor,
    host,
    zone,
    group,
  }: Pick<Form, 'minor'> & {
    readonly host: Host | undefined;
    readonly zone: string;
    readonly group: Group | undefined;
  },
): void {
  view['OS-EXT-AZ:availability_zone'] = zone;
  if (minor >= 96) view.pinned_availability_zone = server.pinnedZone;
  if (minor >= 100) view.scheduler_hints = group === undefined ? {} : { group: [group.uuid] };
  view.config_drive = server.fixed.configDrive ? 'True' : '';
  view.key_name = null;
  view['OS-SRV-USG:launched_at'] = server.vmState === 'building' ? null : micros(server.launchedMs);
  view['OS-SRV-USG:terminated_at'] = null;
  view['OS-EXT-SRV-ATTR:host'] = server.host === '' ? null : server.host;
  view['OS-EXT-SRV-ATTR:instance_name'] = instanceName(server);
  view['OS-EXT-SRV-ATTR:hypervisor_hostname'] = host?.hypervisorHostname ?? null;
  if (minor >= 3) {
    view['OS-EXT-SRV-ATTR:reservation_id'] = server.reservationId;
    view['OS-EXT-SRV-ATTR:launch_index'] = 0;
    view['OS-EXT-SRV-ATTR:hostname'] = server.name;
    view['OS-EXT-SRV-ATTR:kernel_id'] = '';
    view['OS-EXT-SRV-ATTR:ramdisk_id'] = '';
    view['OS-EXT-SRV-ATTR:root_device_name'] = '/dev/sda';
    view['OS-EXT-SRV-ATTR:user_data'] = null;
  }
  view['OS-EXT-STS:task_state'] = server.taskState;
  view['OS-EXT-STS:vm_state'] = server.vmState;
  view['OS-EXT-STS:power_state'] = server.powerState;
  const root = minor >= 3 ? { id: server.uuid, delete_on_termination: true } : { id: server.uuid };
  view['os-extended-volumes:volumes_attached'] = server.imageId === null ? [root] : [];
}

/** The fields that microversions added at the end. */
function addLaterFields(
  view: Record<string, unknown>,
  server: Server,
  { minor, show, host, group }: ServerForm & { readonly host: Host | undefined; readonly group: Group | undefined },
): void {
  if (minor >= 9) view.locked = server.locked;
  if (minor >= 73) view.locked_reason = server.lockedReason;
  if (minor >= 19) view.description = null;
  if (minor >= 26) view.tags = server.tags;
  if (minor >= 63) view.trusted_image_certificates = null;
  if (minor >= 16) view.host_status = hostStatus(host);
  if (show && minor >= 71) view.server_groups = group === undefined ? [] : [group.uuid];
}

const instanceName = ({ id }: Server): string => `instance-${id.toString(16).padStart(8, '0')}`;

export function migrationView(migration: Migration, minor: number, base: string): unknown {
  const row = shownRow(migration);
  const live = migration.type === 'live-migration';
  const view: Record<string, unknown> = { id: row.id };
  if (minor >= 59) view.uuid = migration.uuid;
  const conducted = migration.dest !== null;
  view.source_compute = migration.source;
  view.dest_compute = migration.dest;
  view.source_node = conducted ? migration.sourceNode : null;
  view.dest_node = conducted ? migration.destNode : null;
  view.dest_host = !live && migration.dest !== null ? '10.0.0.1' : null;
  view.old_instance_type_id = Number(migration.oldFlavor.id);
  view.new_instance_type_id = Number(migration.newFlavor.id);
  view.instance_uuid = migration.serverUuid;
  view.status = row.status;
  if (minor >= 23) view.migration_type = migration.type;
  if (minor >= 80) {
    view.user_id = migration.userId;
    view.project_id = migration.projectId;
  }
  view.created_at = micros(migration.createdMs);
  view.updated_at = row.updatedMs === null ? null : micros(row.updatedMs);
  if (minor >= 23 && live && IN_PROGRESS.has(migration.status))
    view.links = [
      { rel: 'self', href: `${base}/v2.1/servers/${migration.serverUuid}/migrations/${row.id}` },
      { rel: 'bookmark', href: `${base}/servers/${migration.serverUuid}/migrations/${row.id}` },
    ];
  return view;
}

export function progressView(cloud: Cloud, migration: Migration, minor: number): unknown {
  const memory = cloud.progress(migration);
  const row = shownRow(migration);
  const view: Record<string, unknown> = {
    created_at: micros(migration.createdMs),
    dest_compute: migration.dest,
    dest_host: null,
    dest_node: migration.destNode,
    disk_processed_bytes: memory === null ? null : 0,
    disk_remaining_bytes: memory === null ? null : 0,
    disk_total_bytes: memory === null ? null : 0,
    id: row.id,
    memory_processed_bytes: memory?.processed ?? null,
    memory_remaining_bytes: memory?.remaining ?? null,
    memory_total_bytes: memory?.total ?? null,
    server_uuid: migration.serverUuid,
    source_compute: migration.source,
    source_node: migration.sourceNode,
    status: migration.status,
    updated_at: row.updatedMs === null ? null : micros(row.updatedMs),
  };
  if (minor >= 59) view.uuid = migration.uuid;
  if (minor >= 80) {
    view.user_id = migration.userId;
    view.project_id = migration.projectId;
  }
  return view;
}

export function actionView(action: Action, minor: number): Record<string, unknown> {
  const view: Record<string, unknown> = {
    action: action.action,
    instance_uuid: action.serverUuid,
    request_id: action.requestId,
    user_id: action.userId,
    project_id: action.projectId,
    start_time: micros(action.startMs),
    message: action.message,
  };
  if (minor >= 58) view.updated_at = micros(action.updatedMs);
  return view;
}

/** `cell`: the one that has the server. */
export function eventViews(action: Action, projectId: string, minor: number, cell: string): unknown[] {
  return action.events
    .filter((event) => event.cell === null || event.cell === cell)
    .map((event) => {
      const view: Record<string, unknown> = {
        event: event.event,
        start_time: micros(event.startMs),
        finish_time: event.finishMs === null ? null : micros(event.finishMs),
        result: event.result,
        traceback: event.traceback,
      };
      if (minor >= 62) {
        view.host = event.host;
        view.hostId = hostId(action.projectId ?? projectId, event.host);
      }
      if (minor >= 84) view.details = event.details;
      return view;
    })
    .reverse();
}

/** The periodic report of a nova-compute. */
const REPORT_MS = 10_000;

export function serviceView(cloud: Cloud, host: Host, minor: number, nowMs: number): unknown {
  // As Nova's API shows it from 2.69 on.
  if (cloud.unreachable.has(host.cell)) return { binary: 'nova-compute', host: host.name, status: 'UNKNOWN' };
  const seenMs = host.up ? Math.floor(nowMs / REPORT_MS) * REPORT_MS : host.lastSeenMs;
  return {
    binary: 'nova-compute',
    host: host.name,
    id: minor >= 53 ? host.serviceUuid : host.serviceId,
    zone: cloud.zoneOf(host.name),
    status: host.disabled ? 'disabled' : 'enabled',
    state: cloud.isUp(host) ? 'up' : 'down',
    updated_at: micros(seenMs),
    disabled_reason: host.disabledReason,
    ...(minor >= 11 ? { forced_down: host.forcedDown } : {}),
  };
}

/** The detailed form of a hypervisor or the short one, with its servers or without them. */
type HypervisorParts = { readonly detail: boolean; readonly servers: readonly Server[]; readonly withServers: boolean };

export function hypervisorView(
  cloud: Cloud,
  host: Host,
  minor: number,
  { detail, servers, withServers }: HypervisorParts,
): unknown {
  const uuids = minor >= 53;
  const view: Record<string, unknown> = {
    id: uuids ? host.nodeUuid : host.nodeId,
    hypervisor_hostname: host.hypervisorHostname,
    state: cloud.isUp(host) ? 'up' : 'down',
    status: host.disabled ? 'disabled' : 'enabled',
  };
  if (detail) {
    view.hypervisor_type = host.hypervisorType;
    view.hypervisor_version = host.hypervisorVersion;
    view.host_ip = host.ip;
    view.service = {
      id: uuids ? host.serviceUuid : host.serviceId,
      host: host.name,
      disabled_reason: host.disabledReason,
    };
    if (minor < 88) {
      const cpuInfo = {
        arch: 'x86_64',
        model: 'Skylake-Server',
        vendor: 'Intel',
        features: ['pge', 'clflush', 'avx2'],
        topology: { cores: 16, threads: 2, sockets: 2 },
      };
      view.vcpus = host.total.vcpus;
      view.memory_mb = host.total.memoryMb;
      view.local_gb = host.total.diskGb;
      view.vcpus_used = host.used.vcpus;
      view.memory_mb_used = host.reserved.memoryMb + host.used.memoryMb;
      view.local_gb_used = host.used.diskGb;
      view.free_ram_mb = host.total.memoryMb - host.reserved.memoryMb - host.used.memoryMb;
      view.free_disk_gb = host.total.diskGb - host.used.diskGb;
      view.current_workload = 0;
      view.running_vms = servers.length;
      view.disk_available_least = 0;
      view.cpu_info = minor >= 28 ? cpuInfo : JSON.stringify(cpuInfo);
    } else {
      view.uptime = cloud.isUp(host) ? ' 10:00:00 up 40 days, 2:00,  1 user,  load average: 4.10, 4.20, 4.00' : null;
    }
  }
  if (withServers && servers.length > 0)
    view.servers = servers.map((server) => ({
      name: instanceName(server),
      uuid: server.uuid,
    }));
  else if (withServers && minor >= 75) view.servers = [];
  return view;
}

export function aggregateView(aggregate: Aggregate, minor: number): unknown {
  return {
    id: aggregate.id,
    ...(minor >= 41 ? { uuid: aggregate.uuid } : {}),
    name: aggregate.name,
    hosts: aggregate.hosts,
    metadata: aggregate.metadata,
    created_at: micros(aggregate.createdMs),
    updated_at: aggregate.updatedMs === null ? null : micros(aggregate.updatedMs),
    deleted_at: null,
    deleted: false,
    availability_zone: aggregate.availabilityZone,
  };
}

export function groupView(group: Group, minor: number): unknown {
  const rules =
    group.policy === 'anti-affinity' && group.maxServerPerHost !== null
      ? { max_server_per_host: group.maxServerPerHost }
      : {};
  return {
    id: group.uuid,
    name: group.name,
    ...(minor >= 64 ? { policy: group.policy, rules } : { policies: [group.policy], metadata: {} }),
    members: group.members,
    ...(minor >= 13 ? { project_id: group.projectId, user_id: group.userId } : {}),
  };
}
