import type { CallOptions, NovaTransport } from './novaTransport.ts';
import {
  type InstanceAction,
  type Migration,
  type ServerMigration,
  UNFINISHED_MIGRATION_STATUSES,
} from './novaTypes.ts';
import {
  instanceActionsSchema,
  migrationsSchema,
  oneInstanceActionSchema,
  oneServerMigrationSchema,
} from './novaWire.ts';

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

/** Migrations, and what else was done to servers. */
export interface NovaMigrations {
  /** Newest first. */
  listMigrations(filter?: MigrationFilter, options?: CallOptions): Promise<Migration[]>;
  /**
   * Migrations of any kind that are not over, as one list per status in the order of a migration's life, so that one that
   * moves on between two calls is not missed. Each once, with the status seen last.
   */
  listUnfinishedMigrations(options?: CallOptions): Promise<Migration[]>;
  /** @throws NotFound when it is not in progress (accepted ones and finished ones are not). */
  getServerMigration(serverId: string, migrationId: number, options?: CallOptions): Promise<ServerMigration>;
  listInstanceActions(serverId: string, options?: CallOptions): Promise<InstanceAction[]>;
  /** By the request id of the call that began it, with its events. @throws NotFound */
  getInstanceAction(serverId: string, requestId: string, options?: CallOptions): Promise<InstanceAction>;
}

export function novaMigrations({ get, byMarker }: NovaTransport): NovaMigrations {
  return {
    listMigrations: (filter = {}, { signal } = {}) => listMigrations(filter, signal),

    async listUnfinishedMigrations({ signal } = {}) {
      // Ids are counted per cell: two migrations of different cells may have the same one.
      const seen = new Map<string, Migration>();
      for (const status of UNFINISHED_MIGRATION_STATUSES) {
        for (const migration of await listMigrations({ status }, signal)) seen.set(migration.uuid, migration);
      }
      return [...seen.values()].sort((a, b) => b.id - a.id);
    },

    async getServerMigration(serverId, migrationId, { signal } = {}) {
      const path = `servers/${encodeURIComponent(serverId)}/migrations/${migrationId}`;
      const route = '/servers/{id}/migrations/{migrationId}';
      return (await get('getServerMigration', oneServerMigrationSchema, { route, path, signal })).migration;
    },

    listInstanceActions: (serverId, { signal } = {}) =>
      byMarker(
        '/servers/{id}/os-instance-actions',
        async (marker, limit) => {
          const path = `servers/${encodeURIComponent(serverId)}/os-instance-actions`;
          const route = '/servers/{id}/os-instance-actions';
          const query = { limit, marker };
          const body = await get('listInstanceActions', instanceActionsSchema, { route, path, query, signal });
          return { rows: body.instanceActions, more: body.links };
        },
        (action) => action.requestId,
      ),

    async getInstanceAction(serverId, requestId, { signal } = {}) {
      const path = `servers/${encodeURIComponent(serverId)}/os-instance-actions/${encodeURIComponent(requestId)}`;
      const route = '/servers/{id}/os-instance-actions/{requestId}';
      return (await get('getInstanceAction', oneInstanceActionSchema, { route, path, signal })).instanceAction;
    },
  };

  function listMigrations(filter: MigrationFilter, signal: AbortSignal | undefined): Promise<Migration[]> {
    return byMarker(
      '/os-migrations',
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
        const body = await get('listMigrations', migrationsSchema, { route: '/os-migrations', query, signal });
        return { rows: body.migrations, more: body.migrations_links };
      },
      (migration) => migration.uuid,
      filter.limit,
    );
  }
}
