import type { Cloud } from '../../cloud.ts';
import { cellUnreached, NovaRefusal } from '../../errors.ts';
import type { Server } from '../../model.ts';
import { pinnedCpus } from '../../numa.ts';
import { findServer } from '../../state.ts';
import { bodyJson, json, object, type Reply, textIn } from '../exchange.ts';
import { linksOf, novaStatus, serverView } from '../views.ts';
import {
  caller,
  empty,
  ID,
  LIES,
  nextPage,
  novaReply,
  pageSize,
  type Route,
  route,
  type Scope,
  strings,
  truthy,
  versionHeaders,
} from './nova.ts';

/** Query parameters of GET /servers (nova/api/openstack/compute/schemas/servers.py); from 2.75 others are refused. */
const SERVER_QUERY = new Set(
  (
    'user_id project_id tenant_id launch_index image_ref image kernel_id ramdisk_id hostname key_name instance_type_id ' +
    'locked_by node_id launched_at terminated_at availability_zone user_data root_device_name default_swap_device ' +
    'created_at updated_at display_description architecture access_ip_v4 access_ip_v6 power_state task_state vm_state ' +
    'progress description config_drive disk_config auto_disk_config deleted deleted_at uuid display_name name host node ' +
    'hostid flavor status ip ip6 changes-since changes-before all_tenants limit marker sort_key sort_dir tags tags-any ' +
    'not-tags not-tags-any locked reservation_id'
  ).split(' '),
);

/** Nova's servers: list, show, create, delete, metadata and tags. */
export function serverRoutes(cloud: Cloud): readonly Route[] {
  return [
    route('GET /servers/detail', 'servers:detail', (scope) => listServers(cloud, scope, true)),
    route('GET /servers', 'servers:index', (scope) => listServers(cloud, scope, false)),
    route('POST /servers', 'servers:create', (scope) => createServer(cloud, scope)),
    route(`GET /servers/${ID}`, 'servers:show', (scope, [uuid = '']) => showServer(cloud, scope, uuid)),
    route(
      `GET /servers/${ID}/topology`,
      'server:topology:index',
      (scope, [uuid = '']) => topology(cloud, scope, uuid),
      { since: 78 },
    ),
    route(`DELETE /servers/${ID}`, 'servers:delete', (scope, [uuid = '']) => {
      findServer(cloud, uuid);
      cloud.deleteServer(scope.call.nowMs, uuid);
      return empty(scope, 204);
    }),
    route(`GET /servers/${ID}/metadata`, 'server-metadata:index', (scope, [uuid = '']) =>
      novaReply(scope, 200, { metadata: findServer(cloud, uuid).metadata }),
    ),
    route(`POST /servers/${ID}/metadata`, 'server-metadata:create', (scope, [uuid = '']) => {
      const server = findServer(cloud, uuid);
      const given = object(object(bodyJson(scope.call.body))?.metadata) ?? {};
      const metadata = { ...server.metadata, ...strings(given) };
      cloud.setServer(scope.call.nowMs, uuid, { metadata });
      return novaReply(scope, 200, { metadata });
    }),
    route(`DELETE /servers/${ID}/metadata/${ID}`, 'server-metadata:delete', (scope, [uuid = '', key = '']) => {
      const { [decodeURIComponent(key)]: _, ...metadata } = findServer(cloud, uuid).metadata;
      cloud.setServer(scope.call.nowMs, uuid, { metadata });
      return empty(scope, 204);
    }),
    route(
      `PUT /servers/${ID}/tags/${ID}`,
      'os-server-tags:update',
      (scope, [uuid = '', tag = '']) => {
        const { tags } = findServer(cloud, uuid);
        const added = decodeURIComponent(tag);
        if (tags.includes(added)) return empty(scope, 204);
        cloud.setServer(scope.call.nowMs, uuid, { tags: [...tags, added] });
        return empty(scope, 201);
      },
      { since: 26 },
    ),
    route(
      `DELETE /servers/${ID}/tags/${ID}`,
      'os-server-tags:delete',
      (scope, [uuid = '', tag = '']) => {
        const { tags } = findServer(cloud, uuid);
        const gone = decodeURIComponent(tag);
        if (!tags.includes(gone)) throw new NovaRefusal(404, `Server ${uuid} has no tag '${gone}'`);
        cloud.setServer(scope.call.nowMs, uuid, { tags: tags.filter((each) => each !== gone) });
        return empty(scope, 204);
      },
      { since: 26 },
    ),
  ];
}

function listServers(cloud: Cloud, scope: Scope, detail: boolean): Reply {
  const { call, minor } = scope;
  const { query } = call;
  const unknown =
    minor >= 75 ? [...query.keys()].find((key) => !SERVER_QUERY.has(key) && !key.startsWith('_')) : undefined;
  if (unknown !== undefined) throw new NovaRefusal(400, `'${unknown}' does not match any of the regexes: '^_'`);
  // With changes-since Nova also lists servers that were deleted since (nova/api/openstack/compute/servers.py).
  const deleted = query.has('changes-since') ? [...cloud.deleted.values()] : [];
  const all = deleted.length === 0 ? cloud.listing() : [...cloud.listing(), ...deleted];
  const limit = pageSize(cloud, query) ?? cloud.scenario.maxLimit;
  const from = afterMarker(cloud, query.get('marker'), all);
  const passes = serverFilter(cloud, scope);
  const reached: Server[] = [];
  for (let i = from; i < all.length && reached.length < limit; i++) {
    const server = all[i];
    if (server !== undefined && !cloud.isUnreachable(server) && passes(server)) reached.push(server);
  }
  const page = [...unreachedOf(cloud, scope, passes).slice(0, limit - reached.length), ...reached];
  const views = detail
    ? page.map((server) => serverView(cloud, server, { minor, base: call.base, show: false }))
    : page.map((server) =>
        JSON.stringify({
          id: server.uuid,
          ...(cloud.isUnreachable(server) ? { status: 'UNKNOWN' } : { name: server.name }),
          links: linksOf(server, call),
        }),
      );
  const links = nextPage(cloud, call, detail ? 'servers/detail' : 'servers', {
    count: page.length,
    last: page.at(-1)?.uuid,
  });
  const tail = links === null ? '' : `,"servers_links":${JSON.stringify(links)}`;
  return {
    status: 200,
    headers: { ...versionHeaders(call, `2.${minor}`), 'Content-Type': 'application/json' },
    body: `{"servers":[${views.join(',')}]${tail}}`,
  };
}

/**
 * Nova leaves out servers of a cell that it does not reach, but in a list without filters and paging (nova/api/openstack/compute/
 * servers.py _is_cell_down_supported): there they come first, as far as the page has room.
 */
function unreachedOf(cloud: Cloud, { call: { query }, minor }: Scope, passes: ServerTest): readonly Server[] {
  if (cloud.unreachable.size === 0 || minor < 69 || [...query.keys()].some((key) => key !== 'all_tenants')) return [];
  return cloud
    .listing()
    .filter((server) => cloud.isUnreachable(server) && passes(server))
    .reverse();
}

/** The place of the first server of a page. */
function afterMarker(cloud: Cloud, marker: string | null, all: readonly Server[]): number {
  if (marker === null) return 0;
  const found = cloud.position(marker) ?? all.findIndex((each) => each.uuid === marker);
  const server = all[found];
  if (server === undefined) throw new NovaRefusal(400, `marker [${marker}] not found`);
  if (cloud.isUnreachable(server)) throw cellUnreached();
  return found + 1;
}

type ServerTest = (server: Server) => boolean;

function serverFilter(cloud: Cloud, scope: Scope): ServerTest {
  const { query } = scope.call;
  const tests: ServerTest[] = [];
  const allTenants = query.has('all_tenants') && !LIES.includes(query.get('all_tenants') ?? '');
  const project = allTenants ? (query.get('project_id') ?? query.get('tenant_id')) : scope.token.projectId;
  if (!allTenants || project !== null) tests.push((server) => server.projectId === project);
  const host = query.get('host');
  if (host !== null) tests.push((server) => server.host === host);
  const node = query.get('node');
  if (node !== null) tests.push((server) => cloud.hosts.get(server.host)?.hypervisorHostname === node);
  const uuid = query.get('uuid');
  if (uuid !== null) tests.push((server) => server.uuid === uuid);
  const name = query.get('name');
  if (name !== null) {
    const pattern = new RegExp(name);
    tests.push((server) => pattern.test(server.name));
  }
  tests.push(...statusTests(scope));
  if (scope.minor >= 26) tests.push(...tagTests(query));
  const locked = query.get('locked');
  if (locked !== null && scope.minor >= 73) tests.push((server) => server.locked === truthy(locked));
  const since = query.get('changes-since');
  if (since !== null) {
    const at = Date.parse(since);
    tests.push((server) => server.updatedMs >= at);
  }
  return (server) => tests.every((test) => test(server));
}

const STATUSES = (
  'ACTIVE PAUSED SHUTOFF ERROR MIGRATING BUILD RESIZE VERIFY_RESIZE REVERT_RESIZE REBOOT HARD_REBOOT REBUILD SUSPENDED ' +
  'DELETED SHELVED SHELVED_OFFLOADED RESCUE PASSWORD SOFT_DELETED'
).split(' ');

function statusTests({ call, minor }: Scope): ServerTest[] {
  const statuses = call.query.getAll('status').map((each) => each.toUpperCase());
  if (statuses.length === 0) return [];
  if (statuses.some((each) => STATUSES.includes(each))) return [(server) => statuses.includes(novaStatus(server))];
  if (minor >= 38) throw new NovaRefusal(400, 'Invalid status value');
  return [() => false];
}

function tagTests(query: URLSearchParams): ServerTest[] {
  const kinds: readonly [string, (has: (tag: string) => boolean, tags: readonly string[]) => boolean][] = [
    ['tags', (has, tags) => tags.every(has)],
    ['tags-any', (has, tags) => tags.some(has)],
    ['not-tags', (has, tags) => !tags.every(has)],
    ['not-tags-any', (has, tags) => !tags.some(has)],
  ];
  return kinds.flatMap(([key, test]): ServerTest[] => {
    const tags = query.get(key)?.split(',');
    return tags === undefined ? [] : [(server) => test((tag) => server.tags.includes(tag), tags)];
  });
}

function showServer(cloud: Cloud, scope: Scope, uuid: string): Reply {
  const server = findServer(cloud, uuid);
  return {
    status: 200,
    headers: { ...versionHeaders(scope.call, `2.${scope.minor}`), 'Content-Type': 'application/json' },
    body: `{"server":${serverView(cloud, server, { minor: scope.minor, base: scope.call.base, show: true })}}`,
  };
}

/** nova/api/openstack/compute/server_topology.py, as an administrator sees it. */
function topology(cloud: Cloud, scope: Scope, uuid: string): Reply {
  const server = findServer(cloud, uuid);
  // While it moves, the migration holds what is on its host.
  const consumers = [uuid, ...(cloud.migrationsByServer.get(uuid) ?? []).map((migration) => migration.uuid)];
  const held = consumers.map((id) => cloud.allocations.get(id)).find((each) => each?.host === server.host);
  const cells = held?.resources.cells ?? [];
  const emulator = Math.max(0, pinnedCpus(server.flavor) - server.flavor.vcpus);
  let next = 0;
  const nodes = cells.map(({ id, pinned, shared, memoryMb }, i) => {
    const own = pinned - (i === 0 ? emulator : 0);
    const vcpus = Array.from({ length: own + shared }, () => next++);
    return {
      cpu_pinning: Object.fromEntries(vcpus.slice(0, own).map((cpu) => [String(cpu), cpu])),
      host_node: id,
      memory_mb: memoryMb,
      siblings: [],
      vcpu_set: vcpus,
    };
  });
  return novaReply(scope, 200, { nodes, pagesize_kb: cells[0]?.pageKb ?? null });
}

/** The group in the scheduler hints; undefined when they name none. */
function groupHint(cloud: Cloud, body: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const hints = object(body?.['os:scheduler_hints'] ?? body?.['OS-SCH-HNT:scheduler_hints']);
  const group = textIn(hints?.group);
  if (group !== undefined && !cloud.groups.has(group))
    throw new NovaRefusal(400, `Instance group ${group} could not be found.`);
  return group;
}

function createServer(cloud: Cloud, scope: Scope): Reply {
  const body = object(bodyJson(scope.call.body));
  const wanted = object(body?.server);
  if (wanted === undefined) throw new NovaRefusal(400, 'Malformed request body');
  const flavorRef = textIn(wanted.flavorRef) ?? '';
  const flavor = [...cloud.flavors.values()].find((each) => each.id === flavorRef);
  if (flavor === undefined) throw new NovaRefusal(400, `Flavor ${flavorRef} could not be found.`);
  const named = textIn(wanted.host);
  if (named !== undefined && !cloud.hosts.has(named))
    throw new NovaRefusal(400, `Compute host ${named} could not be found.`);
  const group = groupHint(cloud, body);
  const server = cloud.bootServer(scope.call.nowMs, caller(scope), {
    name: textIn(wanted.name) ?? 'server',
    flavor: flavor.name,
    host: named ?? null,
    pinnedZone: textIn(wanted.availability_zone) ?? null,
    group: group ?? null,
    metadata: strings(object(wanted.metadata) ?? {}),
    tags: Array.isArray(wanted.tags) ? wanted.tags.filter((tag) => typeof tag === 'string') : [],
  });
  const self = `${scope.call.base}/v2.1/servers/${server.uuid}`;
  return json(
    202,
    {
      server: {
        id: server.uuid,
        links: [
          { rel: 'self', href: self },
          { rel: 'bookmark', href: `${scope.call.base}/servers/${server.uuid}` },
        ],
        'OS-DCF:diskConfig': 'MANUAL',
        security_groups: [{ name: 'default' }],
        adminPass: server.reservationId.slice(2),
      },
    },
    { Location: self, ...versionHeaders(scope.call, `2.${scope.minor}`) },
  );
}
