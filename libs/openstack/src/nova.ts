import { BadAnswer, HttpError } from './errors.ts';
import { atLeast, type VersionRange } from './microversion.ts';
import {
  type ActOptions,
  type CallOptions,
  createTransport,
  MAX_RESTARTS,
  type NOVA_CALLS,
  type NovaOptions,
} from './novaTransport.ts';
import {
  type ActionOutcome,
  type Aggregate,
  type ComputeService,
  type Hypervisor,
  type InstanceAction,
  type Migration,
  type NamedFlavor,
  type Server,
  type ServerGroup,
  type ServerMigration,
  UNFINISHED_MIGRATION_STATUSES,
} from './novaTypes.ts';
import {
  aggregatesSchema,
  flavorsSchema,
  hypervisorServersSchema,
  hypervisorsSchema,
  instanceActionsSchema,
  migrationsSchema,
  oneInstanceActionSchema,
  oneServerMigrationSchema,
  oneServerSchema,
  serverGroupsSchema,
  serverIdsSchema,
  serverMigrationsSchema,
  serversSchema,
  servicesSchema,
} from './novaWire.ts';
import type { Session } from './session.ts';

interface ServerFilter {
  /** Service host. */
  readonly host?: string;
  /** Only servers changed since this time (ISO-8601), those deleted since then too (status DELETED). */
  readonly changesSince?: string;
  /** Only the servers of one project; default all. */
  readonly projectId?: string;
}

interface MigrationFilter {
  readonly status?: string;
  readonly serverId?: string;
  /** `live-migration`, `migration`, `resize` or `evacuation`. */
  readonly type?: string;
  readonly sourceCompute?: string;
  /** As source or destination. */
  readonly host?: string;
  readonly changesSince?: string;
  /** The maximum number; the newest are kept. */
  readonly limit?: number;
}

export interface Nova {
  /** The microversions that the cloud offers. */
  versions(options?: CallOptions): Promise<VersionRange>;
  /** The microversion that a call uses on this cloud. @throws MicroversionUnsupported */
  versionFor(call: keyof typeof NOVA_CALLS, options?: CallOptions): Promise<string>;

  listAggregates(options?: CallOptions): Promise<Aggregate[]>;
  /** The nova-compute services of all cells. */
  listServices(options?: CallOptions): Promise<ComputeService[]>;
  listHypervisors(options?: CallOptions): Promise<Hypervisor[]>;
  /**
   * Servers of all projects. Reads are not atomic: one that is created or moves while the list is read may be missing or twice
   * in it. Where Nova cannot say the pinned zone of one of them, it is undefined (not known) in all.
   */
  listServers(filter?: ServerFilter, options?: CallOptions): Promise<Server[]>;
  /** The ids of the servers of all projects that carry at least one of these tags. */
  listServerIds(filter: { readonly tagsAny: readonly string[] }, options?: CallOptions): Promise<Set<string>>;
  /** The ids of the servers on each service host, as the database of its cell has them; soft-deleted ones too. */
  listServerIdsByHost(options?: CallOptions): Promise<Map<string, Set<string>>>;
  /** @throws NotFound */
  getServer(serverId: string, options?: CallOptions): Promise<Server>;
  /** Every flavor, private ones too. */
  listFlavors(options?: CallOptions): Promise<NamedFlavor[]>;
  /** Groups of all projects. */
  listServerGroups(options?: CallOptions): Promise<ServerGroup[]>;
  /** Newest first. */
  listMigrations(filter?: MigrationFilter, options?: CallOptions): Promise<Migration[]>;
  /**
   * Migrations of any kind that are not over, as one list per status in the order of a migration's life, so that one that
   * moves on between two calls is not missed. Each once, with the status seen last.
   */
  listUnfinishedMigrations(options?: CallOptions): Promise<Migration[]>;
  /** The live migrations of a server that are queued, preparing, running or post-migrating. Empty does not mean finished. */
  listServerMigrations(serverId: string, options?: CallOptions): Promise<ServerMigration[]>;
  /** @throws NotFound when it is not in progress (accepted ones and finished ones are not). */
  getServerMigration(serverId: string, migrationId: number, options?: CallOptions): Promise<ServerMigration>;
  listInstanceActions(serverId: string, options?: CallOptions): Promise<InstanceAction[]>;
  /** By the request id of the call that began it, with its events. @throws NotFound */
  getInstanceAction(serverId: string, requestId: string, options?: CallOptions): Promise<InstanceAction>;

  /**
   * Asks Nova to live-migrate a server to a service host that the scheduler verifies (`block_migration: "auto"`). Sent once.
   * `accepted`: Nova said 202; it names no migration, see `listMigrations`. `unknown`: the request may have reached Nova (the
   * connection broke, a proxy or Nova answered 5xx, or the caller's signal aborted it on its way).
   * `force` skips the scheduler and exists only below 2.68.
   *
   * @throws BadRequest, Forbidden, NotFound, Conflict, Unauthorized, MicroversionUnsupported; NotSent (`checkSend` refused),
   * Unreachable and Timeout only when the request was certainly not sent.
   */
  liveMigrate(
    request: { readonly serverId: string; readonly host: string; readonly force?: boolean },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Asks Nova to migrate a server cold to a service host, in another cell too where its policy grants that. Sent once.
   *
   * @throws as `liveMigrate`.
   */
  coldMigrate(
    request: { readonly serverId: string; readonly host: string },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Asks Nova to give a server another flavor; Nova chooses the host. Sent once.
   *
   * @throws as `liveMigrate`.
   */
  resize(
    request: { readonly serverId: string; readonly flavorId: string },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Confirms or reverts a cold migration or a resize in VERIFY_RESIZE. Sent once; a second request is refused.
   *
   * @throws BadRequest (one is confirmed already), Conflict (not in VERIFY_RESIZE, or being reverted) and as `liveMigrate`.
   */
  settleResize(
    request: { readonly serverId: string; readonly act: 'confirm' | 'revert' },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Enables a nova-compute service, which clears its reason, or disables it with a reason of 1 to 255 characters. Sent once.
   * Nova compares nothing: the last writer wins.
   *
   * @throws BadRequest, NotFound and as `liveMigrate`.
   */
  updateService(
    request:
      | { readonly serviceId: string; readonly status: 'enabled'; readonly disabledReason?: undefined }
      | { readonly serviceId: string; readonly status: 'disabled'; readonly disabledReason: string },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Asks Nova to abort a live migration: a running one, since 2.65 also a queued or preparing one. Sent once; the migration
   * may still win the race.
   *
   * @throws BadRequest (not in a state to be aborted), NotFound, Conflict and as `liveMigrate`.
   */
  abortMigration(
    request: { readonly serverId: string; readonly migrationId: number },
    options: ActOptions,
  ): Promise<ActionOutcome>;
}

export function createNova(session: Session, options: NovaOptions = {}): Nova {
  const { pageSize, versions, versionFor, get, byMarker, act } = createTransport(session, options);
  return {
    versions: ({ signal } = {}) => versions(signal),
    versionFor: (call, { signal } = {}) => versionFor(call, signal),

    async listAggregates({ signal } = {}) {
      return (await get('listAggregates', aggregatesSchema, 'os-aggregates', '/os-aggregates', {}, signal)).aggregates;
    },

    async listServices({ signal } = {}) {
      const query = { binary: 'nova-compute' };
      return (await get('listServices', servicesSchema, 'os-services', '/os-services', query, signal)).services;
    },

    listHypervisors: ({ signal } = {}) =>
      byMarker(
        async (marker, limit) => {
          const route = '/os-hypervisors/detail';
          const body = await get('listHypervisors', hypervisorsSchema, route, route, { limit, marker }, signal);
          return { rows: body.hypervisors, more: body.hypervisors_links };
        },
        (hypervisor) => hypervisor.id,
      ),

    async listServers(filter = {}, { signal } = {}) {
      try {
        return await listServers('listServers', filter, signal);
      } catch (error) {
        // From 2.96 on the whole list is answered 500 while one server has no request spec (nova/api/openstack/compute/views/
        // servers.py looks each one up in a table of them): a server that is being made, or an old one.
        if (!(error instanceof HttpError && error.status === 500)) throw error;
        if (!atLeast(await versionFor('listServers', signal), '2.96')) throw error;
        return listServers('listServersUnpinned', filter, signal);
      }
    },

    async listServerIds({ tagsAny }, { signal } = {}) {
      const ids = await byMarker(
        async (marker, limit) => {
          const query = { all_tenants: true, 'tags-any': tagsAny.join(','), limit, marker };
          const body = await get('listServerIds', serverIdsSchema, 'servers', '/servers', query, signal);
          return { rows: body.servers, more: body.servers_links };
        },
        (server) => server.id,
      );
      return new Set(ids.map((server) => server.id));
    },

    async listServerIdsByHost({ signal } = {}) {
      const rows = await byMarker(
        async (marker, limit) => {
          const route = '/os-hypervisors/detail';
          const query = { with_servers: true, limit, marker };
          const body = await get('listHypervisors', hypervisorServersSchema, route, route, query, signal);
          return { rows: body.hypervisors, more: body.hypervisors_links };
        },
        (hypervisor) => hypervisor.id,
      );
      const hosts = new Map<string, Set<string>>();
      for (const { host, serverIds } of rows) hosts.set(host, new Set([...(hosts.get(host) ?? []), ...serverIds]));
      return hosts;
    },

    listFlavors: ({ signal } = {}) =>
      byMarker(
        async (marker, limit) => {
          const route = '/flavors/detail';
          // Without `is_public` Nova leaves out the private ones.
          const query = { is_public: 'None', sort_key: 'flavorid', limit, marker };
          const body = await get('listFlavors', flavorsSchema, 'flavors/detail', route, query, signal);
          return { rows: body.flavors, more: body.flavors_links };
        },
        (flavor) => flavor.id,
      ),

    async getServer(serverId, { signal } = {}) {
      const path = `servers/${encodeURIComponent(serverId)}`;
      return (await get('getServer', oneServerSchema, path, '/servers/{id}', {}, signal)).server;
    },

    async listServerGroups({ signal } = {}) {
      // Nova pages groups by offset: when one is deleted meanwhile, the rest move up and one would be missed. So each page
      // begins with the last group of the page before it; if it does not, the list changed and is restarted.
      for (let restart = 0; ; restart += 1) {
        const all: ServerGroup[] = [];
        for (;;) {
          const overlap = all.length === 0 ? 0 : 1;
          const query = { all_projects: true, limit: pageSize, offset: all.length - overlap };
          const route = '/os-server-groups';
          const body = await get('listServerGroups', serverGroupsSchema, route, route, query, signal);
          const rows = body.server_groups;
          if (overlap === 1 && rows[0]?.id !== all.at(-1)?.id) break;
          for (const group of rows.slice(overlap)) all.push(group);
          if (rows.length <= overlap) return all;
        }
        if (restart >= MAX_RESTARTS) {
          const place = { service: 'nova', method: 'GET', url: '/os-server-groups' };
          throw new BadAnswer(place, `the list changed during each of ${MAX_RESTARTS + 1} readings`, 'server_groups');
        }
      }
    },

    listMigrations: (filter = {}, { signal } = {}) => listMigrations(filter, signal),

    async listUnfinishedMigrations({ signal } = {}) {
      // Ids are counted per cell: two migrations of different cells may have the same one.
      const seen = new Map<string, Migration>();
      for (const status of UNFINISHED_MIGRATION_STATUSES) {
        for (const migration of await listMigrations({ status }, signal)) seen.set(migration.uuid, migration);
      }
      return [...seen.values()].sort((a, b) => b.id - a.id);
    },

    async listServerMigrations(serverId, { signal } = {}) {
      const path = `servers/${encodeURIComponent(serverId)}/migrations`;
      const route = '/servers/{id}/migrations';
      return (await get('listServerMigrations', serverMigrationsSchema, path, route, {}, signal)).migrations;
    },

    async getServerMigration(serverId, migrationId, { signal } = {}) {
      const path = `servers/${encodeURIComponent(serverId)}/migrations/${migrationId}`;
      const route = '/servers/{id}/migrations/{migrationId}';
      return (await get('getServerMigration', oneServerMigrationSchema, path, route, {}, signal)).migration;
    },

    listInstanceActions: (serverId, { signal } = {}) =>
      byMarker(
        async (marker, limit) => {
          const path = `servers/${encodeURIComponent(serverId)}/os-instance-actions`;
          const route = '/servers/{id}/os-instance-actions';
          const body = await get('listInstanceActions', instanceActionsSchema, path, route, { limit, marker }, signal);
          return { rows: body.instanceActions, more: body.links };
        },
        (action) => action.requestId,
      ),

    async getInstanceAction(serverId, requestId, { signal } = {}) {
      const path = `servers/${encodeURIComponent(serverId)}/os-instance-actions/${encodeURIComponent(requestId)}`;
      const route = '/servers/{id}/os-instance-actions/{requestId}';
      return (await get('getInstanceAction', oneInstanceActionSchema, path, route, {}, signal)).instanceAction;
    },

    liveMigrate: ({ serverId, host, force = false }, options) =>
      act(
        force ? 'forceLiveMigrate' : 'liveMigrate',
        action(serverId, { 'os-migrateLive': { host, block_migration: 'auto', ...(force ? { force: true } : {}) } }),
        options,
      ),

    coldMigrate: ({ serverId, host }, options) => act('coldMigrate', action(serverId, { migrate: { host } }), options),

    resize: ({ serverId, flavorId }, options) =>
      act('resize', action(serverId, { resize: { flavorRef: flavorId } }), options),

    settleResize: ({ serverId, act: how }, options) =>
      how === 'confirm'
        ? act('confirmResize', { ...action(serverId, { confirmResize: null }), expect: [204] }, options)
        : act('revertResize', action(serverId, { revertResize: null }), options),

    updateService: ({ serviceId, status, disabledReason }, options) =>
      act(
        'updateService',
        {
          method: 'PUT',
          path: `os-services/${encodeURIComponent(serviceId)}`,
          route: '/os-services/{id}',
          json: { status, ...(status === 'disabled' ? { disabled_reason: disabledReason } : {}) },
          expect: [200],
        },
        options,
      ),

    abortMigration: ({ serverId, migrationId }, options) =>
      act(
        'abortMigration',
        {
          method: 'DELETE',
          path: `servers/${encodeURIComponent(serverId)}/migrations/${migrationId}`,
          route: '/servers/{id}/migrations/{migrationId}',
        },
        options,
      ),
  };

  function listServers(
    call: 'listServers' | 'listServersUnpinned',
    filter: ServerFilter,
    signal: AbortSignal | undefined,
  ): Promise<Server[]> {
    return byMarker(
      async (marker, limit) => {
        const query = {
          all_tenants: true,
          host: filter.host,
          project_id: filter.projectId,
          'changes-since': filter.changesSince,
          limit,
          marker,
        };
        const body = await get(call, serversSchema, 'servers/detail', '/servers/detail', query, signal);
        return { rows: body.servers, more: body.servers_links };
      },
      (server) => server.id,
    );
  }

  function listMigrations(filter: MigrationFilter, signal: AbortSignal | undefined): Promise<Migration[]> {
    return byMarker(
      async (marker, limit) => {
        const query = {
          status: filter.status,
          instance_uuid: filter.serverId,
          migration_type: filter.type,
          source_compute: filter.sourceCompute,
          host: filter.host,
          'changes-since': filter.changesSince,
          limit,
          marker,
        };
        const body = await get('listMigrations', migrationsSchema, 'os-migrations', '/os-migrations', query, signal);
        return { rows: body.migrations, more: body.migrations_links };
      },
      (migration) => migration.uuid,
      filter.limit,
    );
  }
}

/** The request of an action on a server. */
const action = (serverId: string, json: unknown) =>
  ({
    method: 'POST',
    path: `servers/${encodeURIComponent(serverId)}/action`,
    route: '/servers/{id}/action',
    json,
  }) as const;
