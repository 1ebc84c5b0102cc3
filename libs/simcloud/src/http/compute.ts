import type { Cloud } from '../cloud.ts';
import { ActError, NovaRefusal } from '../errors.ts';
import { IN_PROGRESS, type Migration, type Server } from '../model.ts';
import { type Call, json, object, parseJson, python, type Reply, text } from './exchange.ts';
import { denied, type Identity, type Token } from './identity.ts';
import {
  actionView,
  aggregateView,
  eventViews,
  groupView,
  hypervisorView,
  migrationView,
  progressView,
  serverView,
  serviceView,
  statusOf,
} from './views.ts';

const NAMES: Readonly<Record<number, string>> = {
  400: 'badRequest',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'itemNotFound',
  409: 'conflictingRequest',
};
const NOT_FOUND = 'The resource could not be found.';
const TRUTHS = [true, 'True', 'TRUE', 'true', '1', 'ON', 'On', 'on', 'YES', 'Yes', 'yes'];
const LIES = [false, 'False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', 'No', 'no'];

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
const MIGRATION_QUERY = ['hidden', 'host', 'instance_uuid', 'source_compute', 'status', 'migration_type'];

interface Scope {
  readonly call: Call;
  readonly minor: number;
  readonly token: Token;
}

type Handler = (scope: Scope, ids: readonly string[]) => Reply;

interface Route {
  readonly method: string;
  readonly pattern: RegExp;
  readonly since: number;
  readonly until: number;
  /** The policy a caller without the admin role is refused with; readers pass every GET. */
  readonly policy: string;
  readonly handler: Handler;
}

/** Nova's API: version discovery, microversions, and the calls that live migration needs. */
export class Compute {
  readonly #cloud: Cloud;
  readonly #identity: Identity;
  readonly #keystone: () => string;
  readonly #max: number;
  readonly #routes: readonly Route[];

  constructor(cloud: Cloud, identity: Identity, keystone: () => string) {
    this.#cloud = cloud;
    this.#identity = identity;
    this.#keystone = keystone;
    this.#max = Number(cloud.scenario.compute.split('.')[1]);
    this.#routes = this.#table();
  }

  answer(call: Call): Reply {
    const { path } = call;
    if (path === '' || path === '/') return this.#versions(call);
    if (!path.startsWith('/v2.1')) return unknownPath(call);
    const inner = path.slice('/v2.1'.length).replace(/\/+$/, '');
    if (inner === '') return json(200, { version: this.#version(call, true) }, versionHeaders(call, '2.1'));
    const token = this.#identity.check(call.headers['x-auth-token'], call.nowMs);
    if (token === undefined) return denied(call, this.#keystone());
    const asked = requested(call);
    if (asked === 'invalid' || typeof asked === 'string') {
      const given = asked === 'invalid' ? '' : asked;
      return refusal(
        call,
        null,
        400,
        `API Version String ${given} is of invalid format. Must be of format MajorNum.MinorNum.`,
      );
    }
    const [major, wanted] = asked;
    const minor = wanted === Number.POSITIVE_INFINITY ? this.#max : wanted;
    if (major !== 2 || minor < 1 || minor > this.#max)
      return json(
        406,
        {
          computeFault: {
            code: 406,
            message: `Version ${major}.${minor} is not supported by the API. Minimum is 2.1 and maximum is 2.${this.#max}.`,
          },
        },
        { ...versionHeaders(call, `${major}.${minor}`), 'Content-Type': 'application/json; charset=UTF-8' },
      );
    const scope: Scope = { call, minor, token };
    const withoutProject = inner.replace(/^\/[0-9a-f]{32}(?=\/)/, '');
    let known = false;
    for (const route of this.#routes) {
      const found = route.pattern.exec(withoutProject);
      if (found === null) continue;
      known = true;
      if (route.method !== call.method || minor < route.since || minor > route.until) continue;
      const { roles } = token.user;
      const allowed = roles.includes('admin') || (route.method === 'GET' && roles.includes('kronos_reader'));
      if (!allowed)
        return refusal(call, minor, 403, `Policy doesn't allow os_compute_api:${route.policy} to be performed.`);
      try {
        return route.handler(scope, found.slice(1));
      } catch (error) {
        if (error instanceof NovaRefusal) return refusal(call, minor, error.status, error.message);
        if (error instanceof ActError) return refusal(call, minor, 400, error.message);
        throw error;
      }
    }
    return known ? refusal(call, minor, 404, NOT_FOUND) : unknownPath(call);
  }

  #versions(call: Call): Reply {
    const old = {
      id: 'v2.0',
      status: 'SUPPORTED',
      version: '',
      min_version: '',
      updated: '2011-01-21T11:33:21Z',
      links: [{ rel: 'self', href: `${call.base}/v2/` }],
    };
    return json(200, { versions: [old, this.#version(call, false)] });
  }

  #version(call: Call, whole: boolean): unknown {
    const self = { rel: 'self', href: `${call.base}/v2.1/` };
    return {
      id: 'v2.1',
      status: 'CURRENT',
      version: `2.${this.#max}`,
      min_version: '2.1',
      updated: '2013-07-23T11:33:21Z',
      links: whole ? [self, { rel: 'describedby', type: 'text/html', href: 'http://docs.openstack.org/' }] : [self],
      ...(whole
        ? { 'media-types': [{ base: 'application/json', type: 'application/vnd.openstack.compute+json;version=2.1' }] }
        : {}),
    };
  }

  #table(): Route[] {
    const id = '([^/]+)';
    const route = (
      method: string,
      path: string,
      policy: string,
      handler: Handler,
      since = 1,
      until = Number.POSITIVE_INFINITY,
    ): Route => ({ method, pattern: new RegExp(`^${path}$`), since, until, policy, handler });
    return [
      route('GET', '/servers/detail', 'servers:detail', (scope) => this.#servers(scope, true)),
      route('GET', '/servers', 'servers:index', (scope) => this.#servers(scope, false)),
      route('POST', '/servers', 'servers:create', (scope) => this.#create(scope)),
      route('GET', `/servers/${id}`, 'servers:show', (scope, [uuid = '']) => this.#show(scope, uuid)),
      route('DELETE', `/servers/${id}`, 'servers:delete', (scope, [uuid = '']) => {
        this.#server(uuid);
        this.#cloud.deleteServer(scope.call.nowMs, uuid);
        return empty(scope, 204);
      }),
      route('POST', `/servers/${id}/action`, 'os-migrate-server:migrate_live:host', (scope, [uuid = '']) =>
        this.#act(scope, uuid),
      ),
      route('GET', `/servers/${id}/metadata`, 'server-metadata:index', (scope, [uuid = '']) =>
        reply(scope, 200, { metadata: this.#server(uuid).metadata }),
      ),
      route('POST', `/servers/${id}/metadata`, 'server-metadata:create', (scope, [uuid = '']) => {
        const server = this.#server(uuid);
        const given = object(object(parseJson(scope.call.body))?.metadata) ?? {};
        const metadata = { ...server.metadata, ...strings(given) };
        this.#cloud.setServer(scope.call.nowMs, uuid, { metadata });
        return reply(scope, 200, { metadata });
      }),
      route('DELETE', `/servers/${id}/metadata/${id}`, 'server-metadata:delete', (scope, [uuid = '', key = '']) => {
        const { [decodeURIComponent(key)]: _, ...metadata } = this.#server(uuid).metadata;
        this.#cloud.setServer(scope.call.nowMs, uuid, { metadata });
        return empty(scope, 204);
      }),
      route(
        'PUT',
        `/servers/${id}/tags/${id}`,
        'os-server-tags:update',
        (scope, [uuid = '', tag = '']) => {
          const { tags } = this.#server(uuid);
          const added = decodeURIComponent(tag);
          if (tags.includes(added)) return empty(scope, 204);
          this.#cloud.setServer(scope.call.nowMs, uuid, { tags: [...tags, added] });
          return empty(scope, 201);
        },
        26,
      ),
      route(
        'DELETE',
        `/servers/${id}/tags/${id}`,
        'os-server-tags:delete',
        (scope, [uuid = '', tag = '']) => {
          const { tags } = this.#server(uuid);
          const gone = decodeURIComponent(tag);
          if (!tags.includes(gone)) throw new NovaRefusal(404, `Server ${uuid} has no tag '${gone}'`);
          this.#cloud.setServer(scope.call.nowMs, uuid, { tags: tags.filter((each) => each !== gone) });
          return empty(scope, 204);
        },
        26,
      ),
      route(
        'GET',
        `/servers/${id}/migrations`,
        'servers:migrations:index',
        (scope, [uuid = '']) => {
          this.#server(uuid);
          const list = (this.#cloud.migrationsByServer.get(uuid) ?? []).filter(
            (each) => each.type === 'live-migration' && IN_PROGRESS.has(each.status),
          );
          return reply(scope, 200, { migrations: list.map((each) => progressView(this.#cloud, each, scope.minor)) });
        },
        23,
      ),
      route(
        'GET',
        `/servers/${id}/migrations/${id}`,
        'servers:migrations:show',
        (scope, [uuid = '', mid = '']) => {
          this.#server(uuid);
          const migration = this.#cloud.migrationsByServer.get(uuid)?.find((each) => String(each.id) === mid);
          if (migration === undefined)
            throw new NovaRefusal(404, `In-progress live migration ${mid} is not found for server ${uuid}.`);
          if (migration.type !== 'live-migration')
            throw new NovaRefusal(404, `Migration ${mid} for server ${uuid} is not live-migration.`);
          if (!IN_PROGRESS.has(migration.status))
            throw new NovaRefusal(404, `Live migration ${mid} for server ${uuid} is not in progress.`);
          return reply(scope, 200, { migration: progressView(this.#cloud, migration, scope.minor) });
        },
        23,
      ),
      route(
        'DELETE',
        `/servers/${id}/migrations/${id}`,
        'servers:migrations:delete',
        (scope, [uuid = '', mid = '']) => {
          this.#cloud.abort(scope.call.nowMs, caller(scope), uuid, mid, scope.minor >= 65);
          return empty(scope, 202);
        },
        24,
      ),
      route(
        'POST',
        `/servers/${id}/migrations/${id}/action`,
        'servers:migrations:force_complete',
        (scope, [uuid = '', mid = '']) => {
          const body = object(parseJson(scope.call.body));
          if (body === undefined || !('force_complete' in body)) throw new NovaRefusal(400, 'Malformed request body');
          this.#cloud.forceComplete(scope.call.nowMs, caller(scope), uuid, mid);
          return empty(scope, 202);
        },
        22,
      ),
      route('GET', `/servers/${id}/os-instance-actions`, 'os-instance-actions:list', (scope, [uuid = '']) =>
        this.#actions(scope, uuid),
      ),
      route(
        'GET',
        `/servers/${id}/os-instance-actions/${id}`,
        'os-instance-actions:show',
        (scope, [uuid = '', requestId = '']) => {
          const server = this.#anyServer(uuid, scope.minor);
          const action = this.#cloud.actions.get(uuid)?.find((each) => each.requestId === requestId);
          if (action === undefined) throw new NovaRefusal(404, `Action ${requestId} not found`);
          const view = actionView(action, scope.minor);
          view.events = eventViews(action, server.projectId, scope.minor);
          return reply(scope, 200, { instanceAction: view });
        },
      ),
      route('GET', '/os-migrations', 'os-migrations:index', (scope) => this.#migrations(scope)),
      route('GET', '/os-aggregates', 'os-aggregates:index', (scope) =>
        reply(scope, 200, {
          aggregates: [...this.#cloud.aggregates.values()].map((each) => aggregateView(each, scope.minor)),
        }),
      ),
      route('POST', '/os-aggregates', 'os-aggregates:create', (scope) => this.#createAggregate(scope)),
      route('GET', `/os-aggregates/${id}`, 'os-aggregates:show', (scope, [aid = '']) =>
        reply(scope, 200, { aggregate: aggregateView(this.#aggregate(aid), scope.minor) }),
      ),
      route('DELETE', `/os-aggregates/${id}`, 'os-aggregates:delete', (scope, [aid = '']) => {
        const aggregate = this.#aggregate(aid);
        if (aggregate.hosts.length > 0)
          throw new NovaRefusal(
            400,
            `Cannot perform action 'delete' on aggregate ${aid}. Reason: Host aggregate is not empty.`,
          );
        this.#cloud.removeAggregate(aid);
        return empty(scope, 200);
      }),
      route('POST', `/os-aggregates/${id}/action`, 'os-aggregates:add_host', (scope, [aid = '']) =>
        this.#aggregateAction(scope, aid),
      ),
      route('GET', '/os-services', 'os-services:list', (scope) => this.#services(scope)),
      route(
        'PUT',
        `/os-services/${id}`,
        'os-services:update',
        (scope, [uuid = '']) => this.#updateService(scope, uuid),
        53,
      ),
      route('GET', '/os-hypervisors', 'os-hypervisors:list', (scope) => this.#hypervisors(scope, false)),
      route('GET', '/os-hypervisors/detail', 'os-hypervisors:list-detail', (scope) => this.#hypervisors(scope, true)),
      route('GET', `/os-hypervisors/${id}`, 'os-hypervisors:show', (scope, [hid = '']) => {
        const host = [...this.#cloud.hosts.values()].find((each) =>
          scope.minor >= 53 ? each.nodeUuid === hid : String(each.nodeId) === hid,
        );
        if (host === undefined) {
          if (scope.minor >= 53 && !/^[0-9a-f-]{36}$/i.test(hid)) throw new NovaRefusal(400, `Invalid uuid ${hid}`);
          throw new NovaRefusal(404, `Hypervisor with ID '${hid}' could not be found.`);
        }
        const withServers = truthy(scope.call.query.get('with_servers'));
        const servers = this.#on(host.name);
        return reply(scope, 200, {
          hypervisor: hypervisorView(this.#cloud, host, scope.minor, true, servers, withServers),
        });
      }),
      route('GET', '/os-server-groups', 'os-server-groups:index', (scope) => this.#groups(scope)),
      route('POST', '/os-server-groups', 'os-server-groups:create', (scope) => this.#createGroup(scope)),
      route('GET', `/os-server-groups/${id}`, 'os-server-groups:show', (scope, [gid = '']) => {
        const group = this.#cloud.groups.get(gid);
        if (group === undefined) throw new NovaRefusal(404, `Instance group ${gid} could not be found.`);
        return reply(scope, 200, { server_group: groupView(group, scope.minor) });
      }),
      route('DELETE', `/os-server-groups/${id}`, 'os-server-groups:delete', (scope, [gid = '']) => {
        if (!this.#cloud.groups.has(gid)) throw new NovaRefusal(404, `Instance group ${gid} could not be found.`);
        this.#cloud.removeGroup(gid);
        return empty(scope, 204);
      }),
      route('GET', '/flavors/detail', 'flavors', (scope) =>
        reply(scope, 200, {
          flavors: [...this.#cloud.flavors.values()].map((each) => ({
            id: each.id,
            name: each.name,
            vcpus: each.vcpus,
            ram: each.memoryMb,
            disk: each.diskGb,
            'OS-FLV-EXT-DATA:ephemeral': 0,
            swap: scope.minor >= 75 ? 0 : '',
            'os-flavor-access:is_public': true,
            ...(scope.minor >= 61 ? { extra_specs: each.extraSpecs } : {}),
            links: [{ rel: 'bookmark', href: `${scope.call.base}/flavors/${each.id}` }],
          })),
        }),
      ),
    ];
  }

  // ---------------------------------------------------------------- servers

  #server(uuid: string): Server {
    const server = this.#cloud.servers.get(uuid);
    if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
    return server;
  }

  /** Actions of a deleted server can be read from 2.21 on. */
  #anyServer(uuid: string, minor: number): Server {
    const gone = minor >= 21 ? this.#cloud.deleted.get(uuid) : undefined;
    return gone ?? this.#server(uuid);
  }

  #on(host: string): Server[] {
    return [...this.#cloud.servers.values()].filter((server) => server.host === host);
  }

  #servers(scope: Scope, detail: boolean): Reply {
    const { call, minor } = scope;
    const { query } = call;
    if (minor >= 75)
      for (const key of query.keys())
        if (!SERVER_QUERY.has(key) && !key.startsWith('_'))
          throw new NovaRefusal(400, `'${key}' does not match any of the regexes: '^_'`);
    const limit = this.#limit(query);
    const marker = query.get('marker');
    let from = 0;
    // With changes-since Nova also lists what was deleted since (nova/api/openstack/compute/servers.py).
    const deleted = query.has('changes-since') ? [...this.#cloud.deleted.values()] : [];
    const all = deleted.length === 0 ? this.#cloud.listing() : [...this.#cloud.listing(), ...deleted];
    if (marker !== null) {
      const found = this.#cloud.position(marker) ?? all.findIndex((each) => each.uuid === marker);
      const place = found < 0 ? undefined : found;
      if (place === undefined) throw new NovaRefusal(400, `marker [${marker}] not found`);
      from = place + 1;
    }
    const keep = this.#filter(scope);
    const page: Server[] = [];
    const limits = limit ?? this.#cloud.scenario.maxLimit;
    for (let i = from; i < all.length && page.length < limits; i++) {
      const server = all[i];
      if (server !== undefined && keep(server)) page.push(server);
    }
    const views = detail
      ? page.map((server) => serverView(this.#cloud, server, minor, call.base, false))
      : page.map((server) =>
          JSON.stringify({
            id: server.uuid,
            name: server.name,
            links: [
              { rel: 'self', href: `${call.base}/v2.1/servers/${server.uuid}` },
              { rel: 'bookmark', href: `${call.base}/servers/${server.uuid}` },
            ],
          }),
        );
    const links = this.#next(call, detail ? 'servers/detail' : 'servers', page.length, page.at(-1)?.uuid);
    const tail = links === null ? '' : `,"servers_links":${JSON.stringify(links)}`;
    return {
      status: 200,
      headers: { ...versionHeaders(call, `2.${minor}`), 'Content-Type': 'application/json' },
      body: `{"servers":[${views.join(',')}]${tail}}`,
    };
  }

  #filter(scope: Scope): (server: Server) => boolean {
    const { query } = scope.call;
    const tests: ((server: Server) => boolean)[] = [];
    const allTenants = query.has('all_tenants') && !LIES.includes(query.get('all_tenants') ?? '');
    if (!allTenants) {
      const project = scope.token.projectId;
      tests.push((server) => server.projectId === project);
    } else {
      const project = query.get('project_id') ?? query.get('tenant_id');
      if (project !== null) tests.push((server) => server.projectId === project);
    }
    const host = query.get('host');
    if (host !== null) tests.push((server) => server.host === host);
    const node = query.get('node');
    if (node !== null) tests.push((server) => this.#cloud.hosts.get(server.host)?.hypervisorHostname === node);
    const uuid = query.get('uuid');
    if (uuid !== null) tests.push((server) => server.uuid === uuid);
    const name = query.get('name');
    if (name !== null) {
      const pattern = new RegExp(name);
      tests.push((server) => pattern.test(server.name));
    }
    const statuses = query.getAll('status').map((each) => each.toUpperCase());
    if (statuses.length > 0) {
      const known =
        'ACTIVE PAUSED SHUTOFF ERROR MIGRATING BUILD RESIZE VERIFY_RESIZE REVERT_RESIZE REBOOT HARD_REBOOT REBUILD SUSPENDED DELETED SHELVED SHELVED_OFFLOADED RESCUE PASSWORD SOFT_DELETED';
      if (!statuses.some((each) => known.split(' ').includes(each))) {
        if (scope.minor >= 38) throw new NovaRefusal(400, 'Invalid status value');
        tests.push(() => false);
      }
      tests.push((server) => statuses.includes(statusOf(server)));
    }
    const list = (key: string): string[] | null => query.get(key)?.split(',') ?? null;
    if (scope.minor >= 26) {
      const tags = list('tags');
      if (tags !== null) tests.push((server) => tags.every((tag) => server.tags.includes(tag)));
      const any = list('tags-any');
      if (any !== null) tests.push((server) => any.some((tag) => server.tags.includes(tag)));
      const none = list('not-tags');
      if (none !== null) tests.push((server) => !none.every((tag) => server.tags.includes(tag)));
      const notAny = list('not-tags-any');
      if (notAny !== null) tests.push((server) => !notAny.some((tag) => server.tags.includes(tag)));
    }
    const locked = query.get('locked');
    if (locked !== null && scope.minor >= 73) tests.push((server) => server.locked === truthy(locked));
    const since = query.get('changes-since');
    if (since !== null) {
      const at = Date.parse(since);
      tests.push((server) => server.updatedMs >= at);
    }
    return (server) => tests.every((test) => test(server));
  }

  #show(scope: Scope, uuid: string): Reply {
    const server = this.#server(uuid);
    return {
      status: 200,
      headers: { ...versionHeaders(scope.call, `2.${scope.minor}`), 'Content-Type': 'application/json' },
      body: `{"server":${serverView(this.#cloud, server, scope.minor, scope.call.base, true)}}`,
    };
  }

  #create(scope: Scope): Reply {
    const body = object(parseJson(scope.call.body));
    const wanted = object(body?.server);
    if (wanted === undefined) throw new NovaRefusal(400, 'Malformed request body');
    const flavorRef = text(wanted.flavorRef) ?? '';
    const flavor = [...this.#cloud.flavors.values()].find((each) => each.id === flavorRef);
    if (flavor === undefined) throw new NovaRefusal(400, `Flavor ${flavorRef} could not be found.`);
    const named = text(wanted.host);
    if (named !== undefined && !this.#cloud.hosts.has(named))
      throw new NovaRefusal(400, `Compute host ${named} could not be found.`);
    const hints = object(body?.['os:scheduler_hints'] ?? body?.['OS-SCH-HNT:scheduler_hints']);
    const group = text(hints?.group);
    if (group !== undefined && !this.#cloud.groups.has(group))
      throw new NovaRefusal(400, `Instance group ${group} could not be found.`);
    const metadata = strings(object(wanted.metadata) ?? {});
    const zone = text(wanted.availability_zone) ?? null;
    const given = Array.isArray(wanted.tags) ? wanted.tags.filter((tag) => typeof tag === 'string') : [];
    const server = this.#cloud.bootServer(scope.call.nowMs, caller(scope), {
      name: text(wanted.name) ?? 'server',
      flavor: flavor.name,
      host: named ?? null,
      pinnedZone: zone,
      group: group ?? null,
      metadata,
      tags: given,
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

  #act(scope: Scope, uuid: string): Reply {
    const { call, minor } = scope;
    const body = object(parseJson(call.body));
    const action = body === undefined ? undefined : Object.keys(body)[0];
    if (body === undefined || action === undefined) throw new NovaRefusal(400, 'Malformed request body');
    const given = body[action];
    switch (action) {
      case 'os-migrateLive': {
        const request = liveMigrationBody(given, minor);
        this.#cloud.liveMigrate(call.nowMs, caller(scope), uuid, request);
        return empty(scope, 202);
      }
      case 'migrate': {
        const wanted = minor >= 56 ? (text(object(given)?.host) ?? null) : null;
        this.#cloud.coldMigrate(call.nowMs, caller(scope), uuid, wanted);
        return empty(scope, 202);
      }
      case 'confirmResize':
      case 'revertResize':
        this.#cloud.finishCold(call.nowMs, caller(scope), uuid, action);
        return empty(scope, action === 'confirmResize' ? 204 : 202);
      case 'lock': {
        this.#server(uuid);
        const reason = minor >= 73 ? (text(object(given)?.locked_reason) ?? null) : null;
        this.#cloud.setServer(call.nowMs, uuid, { locked: true, lockedReason: reason });
        return empty(scope, 202);
      }
      case 'unlock':
        this.#server(uuid);
        this.#cloud.setServer(call.nowMs, uuid, { locked: false });
        return empty(scope, 202);
      case 'os-stop':
      case 'os-start': {
        const server = this.#server(uuid);
        const [from, to] = action === 'os-stop' ? (['active', 'stopped'] as const) : (['stopped', 'active'] as const);
        if (server.vmState !== from)
          throw new NovaRefusal(
            409,
            `Cannot '${action.slice(3)}' instance ${uuid} while it is in vm_state ${server.vmState}`,
          );
        if (server.taskState !== null)
          throw new NovaRefusal(
            409,
            `Cannot '${action.slice(3)}' instance ${uuid} while it is in task_state ${server.taskState}`,
          );
        this.#cloud.setServer(call.nowMs, uuid, { vmState: to });
        return empty(scope, 202);
      }
      case 'pause':
      case 'unpause': {
        const server = this.#server(uuid);
        const from = action === 'pause' ? 'active' : 'paused';
        if (server.vmState !== from)
          throw new NovaRefusal(409, `Cannot '${action}' instance ${uuid} while it is in vm_state ${server.vmState}`);
        if (server.taskState !== null)
          throw new NovaRefusal(
            409,
            `Cannot '${action}' instance ${uuid} while it is in task_state ${server.taskState}`,
          );
        this.#cloud.setServer(call.nowMs, uuid, { vmState: action === 'pause' ? 'paused' : 'active' });
        return empty(scope, 202);
      }
      default:
        throw new NovaRefusal(400, `There is no such action: ${action}`);
    }
  }

  #actions(scope: Scope, uuid: string): Reply {
    this.#anyServer(uuid, scope.minor);
    const { query } = scope.call;
    const list = [...(this.#cloud.actions.get(uuid) ?? [])].reverse();
    if (scope.minor < 58)
      return reply(scope, 200, { instanceActions: list.map((each) => actionView(each, scope.minor)) });
    const limit = this.#limit(query) ?? this.#cloud.scenario.maxLimit;
    const marker = query.get('marker');
    let from = 0;
    if (marker !== null) {
      from = list.findIndex((each) => each.requestId === marker) + 1;
      if (from === 0) throw new NovaRefusal(400, `Marker ${marker} could not be found.`);
    }
    const page = list.slice(from, from + limit);
    const links = this.#next(scope.call, `servers/${uuid}/os-instance-actions`, page.length, page.at(-1)?.requestId);
    return reply(scope, 200, {
      instanceActions: page.map((each) => actionView(each, scope.minor)),
      ...(links === null ? {} : { links }),
    });
  }

  // ---------------------------------------------------------------- migrations

  #migrations(scope: Scope): Reply {
    const { call, minor } = scope;
    const { query } = call;
    if (minor >= 59) {
      const known = [...MIGRATION_QUERY, 'limit', 'marker', 'changes-since'];
      if (minor >= 66) known.push('changes-before');
      if (minor >= 80) known.push('user_id', 'project_id');
      for (const key of query.keys())
        if (!known.includes(key))
          throw new NovaRefusal(400, `Additional properties are not allowed ('${key}' was unexpected)`);
    }
    const tests: ((migration: Migration) => boolean)[] = [];
    const test = (key: string, check: (migration: Migration, value: string) => boolean): void => {
      const value = query.get(key);
      if (value !== null) tests.push((migration) => check(migration, value));
    };
    test('instance_uuid', (migration, value) => migration.serverUuid === value);
    test('source_compute', (migration, value) => migration.source === value);
    test('host', (migration, value) => migration.source === value || migration.dest === value);
    test('status', (migration, value) => migration.status === value);
    test('migration_type', (migration, value) => migration.type === value);
    test('hidden', (_migration, value) => !truthy(value));
    if (minor >= 59)
      test('changes-since', (migration, value) => (migration.updatedMs ?? migration.createdMs) >= Date.parse(value));
    if (minor >= 66)
      test('changes-before', (migration, value) => (migration.updatedMs ?? migration.createdMs) <= Date.parse(value));
    if (minor >= 80) {
      test('user_id', (migration, value) => migration.userId === value);
      test('project_id', (migration, value) => migration.projectId === value);
    }
    // The rows of a deleted server are gone with it.
    tests.push((migration) => this.#cloud.servers.has(migration.serverUuid));
    const uuid = query.get('instance_uuid');
    const pool =
      uuid === null
        ? this.#cloud.migrations.filter((each) => !each.lost)
        : (this.#cloud.migrationsByServer.get(uuid) ?? []);
    if (minor < 59) {
      const list = pool.filter((migration) => tests.every((check) => check(migration)));
      return reply(scope, 200, { migrations: list.map((each) => migrationView(each, minor, call.base)) });
    }
    const limit = this.#limit(query) ?? this.#cloud.scenario.maxLimit;
    const marker = query.get('marker');
    let below = Number.POSITIVE_INFINITY;
    if (marker !== null) {
      const found = this.#cloud.migrations.find((each) => each.uuid === marker);
      if (found === undefined || !this.#cloud.servers.has(found.serverUuid))
        throw new NovaRefusal(400, `Marker ${marker} could not be found.`);
      below = found.id;
    }
    const page: Migration[] = [];
    for (let i = pool.length - 1; i >= 0 && page.length < limit; i--) {
      const migration = pool[i];
      if (migration !== undefined && migration.id < below && tests.every((check) => check(migration)))
        page.push(migration);
    }
    const links = this.#next(call, 'os-migrations', page.length, page.at(-1)?.uuid);
    return reply(scope, 200, {
      migrations: page.map((each) => migrationView(each, minor, call.base)),
      ...(links === null ? {} : { migrations_links: links }),
    });
  }

  // ---------------------------------------------------------------- hosts

  #services(scope: Scope): Reply {
    const { call, minor } = scope;
    const binary = call.query.get('binary');
    const host = call.query.get('host');
    const services: unknown[] = [...this.#cloud.hosts.values()]
      .filter((each) => host === null || each.name === host)
      .map((each) => serviceView(this.#cloud, each, minor, call.nowMs));
    const others = (['nova-scheduler', 'nova-conductor'] as const).map((name, index) => ({
      binary: name,
      host: 'controller',
      id: minor >= 53 ? `00000000-0000-4000-9000-00000000000${index}` : index + 1,
      zone: 'internal',
      status: 'enabled',
      state: 'up',
      updated_at: `${new Date(Math.floor(call.nowMs / 10_000) * 10_000).toISOString().slice(0, 19)}.000000`,
      disabled_reason: null,
      ...(minor >= 11 ? { forced_down: false } : {}),
    }));
    if (binary === null || binary !== 'nova-compute')
      services.push(
        ...others.filter(
          (each) => (binary === null || each.binary === binary) && (host === null || each.host === host),
        ),
      );
    const list =
      binary === null || binary === 'nova-compute'
        ? services
        : services.filter((each) => object(each)?.binary === binary);
    return reply(scope, 200, { services: list });
  }

  #updateService(scope: Scope, uuid: string): Reply {
    const { call, minor } = scope;
    const host = [...this.#cloud.hosts.values()].find((each) => each.serviceUuid === uuid);
    const body = object(parseJson(call.body));
    if (body === undefined) throw new NovaRefusal(400, 'Malformed request body');
    if (!/^[0-9a-f-]{36}$/i.test(uuid)) throw new NovaRefusal(400, `Invalid uuid ${uuid}`);
    if (body.status === undefined && body.forced_down === undefined)
      throw new NovaRefusal(400, "No updates were requested. Fields 'status' or 'forced_down' should be specified.");
    if (host === undefined) throw new NovaRefusal(404, `Service ${uuid} could not be found.`);
    const status = text(body.status);
    const reason = text(body.disabled_reason) ?? null;
    if (status === 'enabled' && reason !== null)
      throw new NovaRefusal(400, "Specifying 'disabled_reason' with status 'enabled' is invalid.");
    const down = body.forced_down;
    this.#cloud.setHost(call.nowMs, host.name, {
      disabled: status === undefined ? undefined : status === 'disabled',
      disabledReason: status === 'disabled' ? reason : undefined,
      forcedDown: down === undefined ? undefined : truthy(String(down)),
    });
    return reply(scope, 200, { service: serviceView(this.#cloud, host, minor, call.nowMs) });
  }

  #hypervisors(scope: Scope, detail: boolean): Reply {
    const { call, minor } = scope;
    const { query } = call;
    const hosts = [...this.#cloud.hosts.values()];
    const withServers = minor >= 53 && truthy(query.get('with_servers'));
    const pattern = minor >= 53 ? query.get('hypervisor_hostname_pattern') : null;
    const byHost = new Map<string, Server[]>();
    if (withServers || (detail && minor < 88))
      for (const server of this.#cloud.servers.values()) {
        const list = byHost.get(server.host);
        if (list === undefined) byHost.set(server.host, [server]);
        else list.push(server);
      }
    const view = (host: (typeof hosts)[number]): unknown =>
      hypervisorView(this.#cloud, host, minor, detail, byHost.get(host.name) ?? [], withServers);
    if (pattern !== null) {
      if (query.has('limit') || query.has('marker'))
        throw new NovaRefusal(
          400,
          'The server could not comply with the request since it is either malformed or otherwise incorrect.',
        );
      const found = hosts.filter((host) => host.hypervisorHostname.includes(pattern));
      if (found.length === 0) throw new NovaRefusal(404, `No hypervisor matching '${pattern}' could be found.`);
      return reply(scope, 200, { hypervisors: found.map(view) });
    }
    if (minor < 33) return reply(scope, 200, { hypervisors: hosts.map(view) });
    const limit = this.#limit(query) ?? this.#cloud.scenario.maxLimit;
    const marker = query.get('marker');
    let from = 0;
    if (marker !== null) {
      from = hosts.findIndex((host) => (minor >= 53 ? host.nodeUuid : String(host.nodeId)) === marker) + 1;
      if (from === 0) throw new NovaRefusal(400, `marker [${marker}] not found`);
    }
    const page = hosts.slice(from, from + limit);
    const last = page.at(-1);
    const links = this.#next(
      call,
      detail ? 'os-hypervisors/detail' : 'os-hypervisors',
      page.length,
      last === undefined ? undefined : minor >= 53 ? last.nodeUuid : String(last.nodeId),
    );
    return reply(scope, 200, {
      hypervisors: page.map(view),
      ...(links === null ? {} : { hypervisors_links: links }),
    });
  }

  // ---------------------------------------------------------------- aggregates, groups

  #aggregate(id: string): ReturnType<Cloud['aggregate']> {
    const aggregate = this.#cloud.aggregates.get(Number(id));
    if (aggregate === undefined) throw new NovaRefusal(404, `Aggregate ${id} could not be found.`);
    return aggregate;
  }

  #createAggregate(scope: Scope): Reply {
    const wanted = object(object(parseJson(scope.call.body))?.aggregate);
    const name = text(wanted?.name);
    if (name === undefined) throw new NovaRefusal(400, 'Malformed request body');
    for (const each of this.#cloud.aggregates.values())
      if (each.name === name) throw new NovaRefusal(409, `Aggregate ${name} already exists.`);
    this.#cloud.advance(scope.call.nowMs);
    const zone = text(wanted?.availability_zone) ?? null;
    const aggregate = this.#cloud.addAggregate({ name, availabilityZone: zone });
    const { hosts: _, metadata: __, ...view } = aggregateView(aggregate, scope.minor) as Record<string, unknown>;
    return reply(scope, 200, { aggregate: view });
  }

  #aggregateAction(scope: Scope, id: string): Reply {
    const aggregate = this.#aggregate(id);
    const body = object(parseJson(scope.call.body)) ?? {};
    const action = Object.keys(body)[0] ?? '';
    const given = object(body[action]);
    this.#cloud.advance(scope.call.nowMs);
    const host = text(given?.host) ?? '';
    if (action === 'add_host') {
      if (!this.#cloud.hosts.has(host)) throw new NovaRefusal(404, `Compute host ${host} could not be found.`);
      if (aggregate.hosts.includes(host)) throw new NovaRefusal(409, `Aggregate ${id} already has host ${host}.`);
      this.#cloud.setAggregate(id, { hosts: [...aggregate.hosts, host] });
    } else if (action === 'remove_host') {
      if (!aggregate.hosts.includes(host)) throw new NovaRefusal(404, `Cannot remove host ${host} in aggregate ${id}`);
      this.#cloud.setAggregate(id, { hosts: aggregate.hosts.filter((each) => each !== host) });
    } else if (action === 'set_metadata') {
      const changes = object(given?.metadata) ?? {};
      const metadata: Record<string, string> = { ...aggregate.metadata, ...strings(changes) };
      for (const [key, value] of Object.entries(changes)) if (value === null) delete metadata[key];
      this.#cloud.setAggregate(id, { metadata });
    } else throw new NovaRefusal(400, `There is no such action: ${action}`);
    return reply(scope, 200, { aggregate: aggregateView(this.#aggregate(id), scope.minor) });
  }

  #groups(scope: Scope): Reply {
    const { call, minor } = scope;
    const { query } = call;
    if (minor >= 75)
      for (const key of query.keys())
        if (!['all_projects', 'limit', 'offset'].includes(key))
          throw new NovaRefusal(400, `Additional properties are not allowed ('${key}' was unexpected)`);
    const project = scope.token.projectId;
    const list = [...this.#cloud.groups.values()].filter(
      (each) => query.has('all_projects') || each.projectId === project,
    );
    const max = this.#cloud.scenario.maxLimit;
    const number = (key: string): number => {
      const given = query.get(key);
      if (given !== null && !/^[0-9]*$/.test(given))
        throw new NovaRefusal(
          400,
          `Invalid input for query parameters ${key}. Value: ${given}. '${given}' does not match '^[0-9]*$'`,
        );
      return Number(given ?? 0);
    };
    const offset = number('offset');
    const limit = Math.min(max, number('limit') || max);
    return reply(scope, 200, {
      server_groups: list.slice(offset, offset + limit).map((each) => groupView(each, minor)),
    });
  }

  #createGroup(scope: Scope): Reply {
    const wanted = object(object(parseJson(scope.call.body))?.server_group);
    const legacy = Array.isArray(wanted?.policies) ? text(wanted.policies[0]) : undefined;
    const policy = scope.minor >= 64 ? text(wanted?.policy) : legacy;
    const known = ['affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity'] as const;
    const found = known.find((each) => each === policy);
    const name = text(wanted?.name);
    if (found === undefined || name === undefined) throw new NovaRefusal(400, 'Malformed request body');
    const most = object(wanted?.rules)?.max_server_per_host;
    if (most !== undefined && found !== 'anti-affinity')
      throw new NovaRefusal(400, 'Only anti-affinity policy supports rules.');
    const project = [...this.#cloud.projects.values()].find((each) => each.id === scope.token.projectId);
    const group = this.#cloud.addGroup({
      name,
      policy: found,
      maxServerPerHost: most === undefined ? null : Number(most),
      project: project?.name ?? 'admin',
    });
    return reply(scope, 200, { server_group: groupView(group, scope.minor) });
  }

  // ---------------------------------------------------------------- paging

  /** The page size asked for, at most Nova's own maximum; null when none was asked for. */
  #limit(query: URLSearchParams): number | null {
    const given = query.get('limit');
    if (given === null) return null;
    if (!/^[0-9]*$/.test(given))
      throw new NovaRefusal(
        400,
        `Invalid input for query parameters limit. Value: ${given}. '${given}' does not match '^[0-9]*$'`,
      );
    return Math.min(Number(given), this.#cloud.scenario.maxLimit);
  }

  /** nova/api/openstack/common.py _get_collection_links: a full page has a next one, even if that is empty. */
  #next(call: Call, collection: string, count: number, last: string | undefined): unknown[] | null {
    const most = Math.min(
      Number(call.query.get('limit') ?? this.#cloud.scenario.maxLimit),
      this.#cloud.scenario.maxLimit,
    );
    if (last === undefined || most === 0 || count !== most) return null;
    const params = new URLSearchParams(
      [...call.query].filter(([key]) => key !== 'marker').sort(([a], [b]) => (a < b ? -1 : 1)),
    );
    params.append('marker', last);
    return [{ rel: 'next', href: `${call.base}/v2.1/${collection}?${params.toString()}` }];
  }
}

function strings(given: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function truthy(value: string | null): boolean {
  return value !== null && (TRUTHS.includes(value) || /^(t|y)$/i.test(value));
}

function caller(scope: Scope): { userId: string; projectId: string; requestId: string } {
  return {
    userId: scope.token.user.id,
    projectId: scope.token.projectId ?? scope.token.user.projectId,
    requestId: scope.call.requestId,
  };
}

/** The body of os-migrateLive per microversion (nova/api/openstack/compute/schemas/migrate_server.py). */
function liveMigrationBody(given: unknown, minor: number): { host: string | null; force: boolean; async: boolean } {
  const invalid = (field: string, value: unknown, why: string): NovaRefusal => {
    const shown = typeof value === 'string' ? value : python(value);
    return new NovaRefusal(400, `Invalid input for field/attribute ${field}. Value: ${shown}. ${why}`);
  };
  const body = object(given);
  if (body === undefined) throw invalid('os-migrateLive', given, `${python(given)} is not of type 'object'`);
  const fields = ['block_migration', 'host'];
  if (minor < 25) fields.splice(1, 0, 'disk_over_commit');
  const booleans: unknown[] = [...TRUTHS, ...LIES];
  // In the order of Nova's validator: values, what is missing, what is too much.
  const oneOf = (key: string, choices: readonly unknown[]): void => {
    const value = body[key];
    if (key in body && !choices.includes(value))
      throw invalid(key, value, `${python(value)} is not one of ${python(choices)}`);
  };
  oneOf('block_migration', minor >= 25 ? [...booleans, 'auto'] : booleans);
  if (minor < 25) oneOf('disk_over_commit', booleans);
  const host = body.host ?? null;
  if (host !== null && typeof host !== 'string')
    throw invalid('host', host, `${python(host)} is not of type 'string', 'null'`);
  const takesForce = minor >= 30 && minor < 68;
  if (takesForce) oneOf('force', booleans);
  for (const key of fields)
    if (!(key in body)) throw invalid('os-migrateLive', given, `'${key}' is a required property`);
  for (const key of Object.keys(body))
    if (!fields.includes(key) && !(takesForce && key === 'force'))
      throw invalid('os-migrateLive', given, `Additional properties are not allowed ('${key}' was unexpected)`);
  const forced = takesForce && TRUTHS.includes(body.force as string | boolean);
  if (forced && host === null) throw new NovaRefusal(400, "Can't force to a non-provided destination");
  // Before 2.30 a named host by-passes the scheduler.
  return { host, force: forced || (minor < 30 && host !== null), async: minor >= 34 };
}

/** [major, minor] as asked; the text itself when it is malformed. No header means 2.1. */
function requested(call: Call): readonly [number, number] | string {
  const modern = call.headers['openstack-api-version'];
  const named = modern
    ?.split(',')
    .map((each) => each.trim().split(/\s+/))
    .find(([service]) => service === 'compute')?.[1];
  const given = named ?? call.headers['x-openstack-nova-api-version'];
  if (given === undefined) return [2, 1];
  if (given === 'latest') return [2, Number.POSITIVE_INFINITY];
  const found = /^(\d+)\.(\d+)$/.exec(given);
  return found === null ? given : [Number(found[1]), Number(found[2])];
}

function versionHeaders(call: Call, version: string): Record<string, string | readonly string[]> {
  return {
    'Openstack-Api-Version': `compute ${version}`,
    'X-Openstack-Nova-Api-Version': version,
    Vary: ['OpenStack-API-Version', 'X-OpenStack-Nova-API-Version'],
    'X-Openstack-Request-Id': call.requestId,
    'X-Compute-Request-Id': call.requestId,
  };
}

function reply(scope: Scope, status: number, body: unknown): Reply {
  return json(status, body, versionHeaders(scope.call, `2.${scope.minor}`));
}

function empty(scope: Scope, status: number): Reply {
  return {
    status,
    headers: { 'Content-Type': 'application/json', ...versionHeaders(scope.call, `2.${scope.minor}`) },
    body: '',
  };
}

function refusal(call: Call, minor: number | null, status: number, message: string): Reply {
  const name = NAMES[status] ?? 'computeFault';
  const headers =
    minor === null
      ? { 'X-Openstack-Request-Id': call.requestId, 'X-Compute-Request-Id': call.requestId }
      : versionHeaders(call, `2.${minor}`);
  return json(
    status,
    { [name]: { code: status, message } },
    { ...headers, 'Content-Type': 'application/json; charset=UTF-8' },
  );
}

function unknownPath(call: Call): Reply {
  return {
    status: 404,
    headers: { 'Content-Type': 'text/html; charset=UTF-8', 'X-Openstack-Request-Id': call.requestId },
    body:
      '<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n' +
      '  The resource could not be found.<br /><br />\n\n\n\n </body>\n</html>',
  };
}
