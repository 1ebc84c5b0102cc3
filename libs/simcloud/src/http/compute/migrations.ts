import type { Cloud } from '../../cloud.ts';
import { NovaRefusal } from '../../errors.ts';
import { shownRow } from '../../migrations.ts';
import { IN_PROGRESS, type Migration } from '../../model.ts';
import { findServer } from '../../state.ts';
import { bodyJson, object, type Reply } from '../exchange.ts';
import { migrationView, progressView } from '../views.ts';
import { caller, empty, ID, nextPage, novaReply, pageSize, type Route, route, type Scope, truthy } from './nova.ts';

const MIGRATION_QUERY = ['hidden', 'host', 'instance_uuid', 'source_compute', 'status', 'migration_type'];

/** os-migrations, and the migrations in progress of one server. */
export function migrationRoutes(cloud: Cloud): readonly Route[] {
  return [
    route(
      `GET /servers/${ID}/migrations`,
      'servers:migrations:index',
      (scope, [uuid = '']) => {
        findServer(cloud, uuid);
        const list = (cloud.migrationsByServer.get(uuid) ?? []).filter(
          (each) => each.type === 'live-migration' && IN_PROGRESS.has(each.status),
        );
        return novaReply(scope, 200, { migrations: list.map((each) => progressView(cloud, each, scope.minor)) });
      },
      { since: 23 },
    ),
    route(
      `GET /servers/${ID}/migrations/${ID}`,
      'servers:migrations:show',
      (scope, [uuid = '', mid = '']) => {
        findServer(cloud, uuid);
        const migration = cloud.migrationsByServer.get(uuid)?.find((each) => String(each.rows[0]?.id) === mid);
        if (migration === undefined)
          throw new NovaRefusal(404, `In-progress live migration ${mid} is not found for server ${uuid}.`);
        if (migration.type !== 'live-migration')
          throw new NovaRefusal(404, `Migration ${mid} for server ${uuid} is not live-migration.`);
        if (!IN_PROGRESS.has(migration.status))
          throw new NovaRefusal(404, `Live migration ${mid} for server ${uuid} is not in progress.`);
        return novaReply(scope, 200, { migration: progressView(cloud, migration, scope.minor) });
      },
      { since: 23 },
    ),
    route(
      `DELETE /servers/${ID}/migrations/${ID}`,
      'servers:migrations:delete',
      (scope, [server = '', migration = '']) => {
        cloud.abort(scope.call.nowMs, caller(scope), { server, migration }, { queuedToo: scope.minor >= 65 });
        return empty(scope, 202);
      },
      { since: 24 },
    ),
    route(
      `POST /servers/${ID}/migrations/${ID}/action`,
      'servers:migrations:force_complete',
      (scope, [server = '', migration = '']) => {
        const body = object(bodyJson(scope.call.body));
        if (body === undefined || !('force_complete' in body)) throw new NovaRefusal(400, 'Malformed request body');
        cloud.forceComplete(scope.call.nowMs, caller(scope), { server, migration });
        return empty(scope, 202);
      },
      { since: 22 },
    ),
    route('GET /os-migrations', 'os-migrations:index', (scope) => listMigrations(cloud, scope)),
  ];
}

function listMigrations(cloud: Cloud, scope: Scope): Reply {
  const { call, minor } = scope;
  const { query } = call;
  if (minor >= 59) checkMigrationQuery(query, minor);
  const keep = migrationFilter(cloud, scope);
  const uuid = query.get('instance_uuid');
  const pool =
    uuid === null ? cloud.migrations.filter((each) => !each.lost) : (cloud.migrationsByServer.get(uuid) ?? []);
  if (minor < 59)
    return novaReply(scope, 200, {
      migrations: pool.filter(keep).map((each) => migrationView(each, minor, call.base)),
    });
  const limit = pageSize(cloud, query) ?? cloud.scenario.maxLimit;
  const below = idOfMarker(cloud, query.get('marker'));
  const page: Migration[] = [];
  for (let i = pool.length - 1; i >= 0 && page.length < limit; i--) {
    const migration = pool[i];
    if (migration !== undefined && migration.id < below && keep(migration)) page.push(migration);
  }
  const links = nextPage(cloud, call, 'os-migrations', { count: page.length, last: page.at(-1)?.uuid });
  return novaReply(scope, 200, {
    migrations: page.map((each) => migrationView(each, minor, call.base)),
    ...(links === null ? {} : { migrations_links: links }),
  });
}

function checkMigrationQuery(query: URLSearchParams, minor: number): void {
  const known = [...MIGRATION_QUERY, 'limit', 'marker', 'changes-since'];
  if (minor >= 66) known.push('changes-before');
  if (minor >= 80) known.push('user_id', 'project_id');
  for (const key of query.keys())
    if (!known.includes(key))
      throw new NovaRefusal(400, `Additional properties are not allowed ('${key}' was unexpected)`);
}

/** A page holds the migrations with smaller ids than its marker's. */
function idOfMarker(cloud: Cloud, marker: string | null): number {
  if (marker === null) return Number.POSITIVE_INFINITY;
  const found = cloud.migrations.find((each) => each.uuid === marker);
  if (found === undefined || !cloud.servers.has(found.serverUuid) || !isReached(cloud, found))
    throw new NovaRefusal(400, `Marker ${marker} could not be found.`);
  return found.id;
}

const isReached = ({ unreachable }: Cloud, { rows }: Migration): boolean =>
  rows.some(({ cell }) => !unreachable.has(cell));

function migrationFilter(cloud: Cloud, { call: { query }, minor }: Scope): (migration: Migration) => boolean {
  const tests: ((migration: Migration) => boolean)[] = [];
  const test = (key: string, check: (migration: Migration, value: string) => boolean): void => {
    const value = query.get(key);
    if (value !== null) tests.push((migration) => check(migration, value));
  };
  test('instance_uuid', (migration, value) => migration.serverUuid === value);
  test('source_compute', (migration, value) => migration.source === value);
  test('host', (migration, value) => migration.source === value || migration.dest === value);
  test('status', (migration, value) => shownRow(migration).status === value);
  test('migration_type', (migration, value) => migration.type === value);
  test('hidden', (_migration, value) => !truthy(value));
  if (minor >= 59)
    test('changes-since', (migration, value) =>
      (shownRow(migration).updatedMs ?? migration.createdMs) >= Date.parse(value));
  if (minor >= 66)
    test('changes-before', (migration, value) =>
      (shownRow(migration).updatedMs ?? migration.createdMs) <= Date.parse(value));
  if (minor >= 80) {
    test('user_id', (migration, value) => migration.userId === value);
    test('project_id', (migration, value) => migration.projectId === value);
  }
  tests.push((migration) => isReached(cloud, migration));
  // The rows of a deleted server are gone with it.
  tests.push((migration) => cloud.servers.has(migration.serverUuid));
  return (migration) => tests.every((check) => check(migration));
}
