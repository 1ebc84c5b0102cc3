import { HttpError } from './errors.ts';
import { atLeastMicroversion } from './microversion.ts';
import type { CallOptions, NovaTransport } from './novaTransport.ts';
import type { Server, ServerTopology } from './novaTypes.ts';
import {
  hypervisorServersSchema,
  oneServerSchema,
  serverIdsSchema,
  serversSchema,
  serverTopologySchema,
} from './novaWire.ts';

interface ServerFilter {
  /** Service host. */
  readonly host?: string;
  /** Only servers changed since this time (ISO-8601), those deleted since then too (status DELETED). */
  readonly changesSince?: string;
  /** Only the servers of one project; default all. */
  readonly projectId?: string;
}

/** Which servers there are, and where. */
export interface NovaServers {
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
  /** @throws NotFound, Forbidden, MicroversionUnsupported (before 2.78) */
  getServerTopology(serverId: string, options?: CallOptions): Promise<ServerTopology>;
}

export function novaServers({ versionFor, get, byMarker }: NovaTransport): NovaServers {
  return {
    async listServers(filter = {}, { signal } = {}) {
      try {
        return await listServers('listServers', filter, signal);
      } catch (error) {
        // From 2.96 on the whole list is answered 500 while one server has no request spec (nova/api/openstack/compute/views/
        // servers.py looks each one up in a table of them): a server that is being made, or an old one.
        if (!(error instanceof HttpError && error.status === 500)) throw error;
        if (!atLeastMicroversion(await versionFor('listServers', signal), '2.96')) throw error;
        return listServers('listServersUnpinned', filter, signal);
      }
    },

    async listServerIds({ tagsAny }, { signal } = {}) {
      const ids = await byMarker(
        '/servers',
        async (marker, limit) => {
          const query = { all_tenants: true, 'tags-any': tagsAny.join(','), limit, marker };
          const body = await get('listServerIds', serverIdsSchema, { route: '/servers', query, signal });
          return { rows: body.servers, more: body.servers_links };
        },
        (server) => server.id,
      );
      return new Set(ids.map((server) => server.id));
    },

    async listServerIdsByHost({ signal } = {}) {
      const rows = await byMarker(
        '/os-hypervisors/detail',
        async (marker, limit) => {
          const route = '/os-hypervisors/detail';
          const query = { with_servers: true, limit, marker };
          const body = await get('listHypervisors', hypervisorServersSchema, { route, query, signal });
          return { rows: body.hypervisors, more: body.hypervisors_links };
        },
        (hypervisor) => hypervisor.id,
      );
      const hosts = new Map<string, Set<string>>();
      for (const { host, serverIds } of rows) hosts.set(host, new Set([...(hosts.get(host) ?? []), ...serverIds]));
      return hosts;
    },

    async getServer(serverId, { signal } = {}) {
      const path = `servers/${encodeURIComponent(serverId)}`;
      return (await get('getServer', oneServerSchema, { route: '/servers/{id}', path, signal })).server;
    },

    async getServerTopology(serverId, { signal } = {}) {
      const path = `servers/${encodeURIComponent(serverId)}/topology`;
      return get('getServerTopology', serverTopologySchema, { route: '/servers/{id}/topology', path, signal });
    },
  };

  function listServers(
    call: 'listServers' | 'listServersUnpinned',
    filter: ServerFilter,
    signal: AbortSignal | undefined,
  ): Promise<Server[]> {
    return byMarker(
      '/servers/detail',
      async (marker, limit) => {
        const query = {
          all_tenants: true,
          host: filter.host,
          project_id: filter.projectId,
          'changes-since': filter.changesSince,
          limit,
          marker,
        };
        const body = await get(call, serversSchema, { route: '/servers/detail', query, signal });
        return { rows: body.servers, more: body.servers_links };
      },
      (server) => server.id,
    );
  }
}
