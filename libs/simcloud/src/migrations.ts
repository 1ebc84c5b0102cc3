/** The table of migrations: rows, their statuses and ends, and Nova's queue per source. */
import { actionOf, conductorEvent, endEvent } from './actions.ts';
import { NovaRefusal } from './errors.ts';
import { ENDED, type Migration, type MigrationStatus, type Server } from './model.ts';
import { allocate, deallocate } from './placement.ts';
import type { CloudState, Pending } from './state.ts';

/** The migration of this server that is under way. */
export function currentMove(s: CloudState, uuid: string): Migration | undefined {
  const last = s.migrationsByServer.get(uuid)?.at(-1);
  return last !== undefined && !ENDED.has(last.status) ? last : undefined;
}

export function newMigration(
  s: CloudState,
  server: Server,
  request: Pending,
  { type, status }: Pick<Migration, 'type' | 'status'>,
): Migration {
  const source = s.host(server.host);
  const id = ++s.ids.migration;
  const migration: Migration = {
    id,
    uuid: s.random.uuid(),
    serverUuid: server.uuid,
    type,
    rows: [{ cell: source.cell, id: nextRowId(s, source.cell), status, updatedMs: null }],
    oldFlavor: server.flavor,
    newFlavor: request.flavor ?? server.flavor,
    source: source.name,
    sourceNode: source.hypervisorHostname,
    dest: request.forced ? request.requestedHost : null,
    destNode: null,
    chosen: null,
    status,
    requestedHost: request.requestedHost,
    forced: request.forced,
    synchronous: !request.async,
    requestId: request.caller.requestId,
    userId: request.caller.userId,
    projectId: request.caller.projectId,
    createdMs: s.nowMs,
    history: [{ status, atMs: s.nowMs }],
    copyFromMs: null,
    copyMs: 0,
    lost: false,
    abortRequested: false,
    switched: false,
    endRequestId: null,
    orphanedMs: null,
  };
  s.migrations.push(migration);
  const list = s.migrationsByServer.get(server.uuid);
  if (list === undefined) s.migrationsByServer.set(server.uuid, [migration]);
  else list.push(migration);
  return migration;
}

/** The next id that the database of a cell gives to a migration. */
function nextRowId(s: CloudState, cell: string): number {
  const id = (s.rowIds.get(cell) ?? 0) + 1;
  s.rowIds.set(cell, id);
  return id;
}

/** The status, in the row of every cell that has one. */
export function setStatus(s: CloudState, migration: Migration, status: MigrationStatus): void {
  migration.status = status;
  migration.history.push({ status, atMs: s.nowMs });
  for (const row of migration.rows) setRow(s, migration, row.cell, status);
}

/** Sets one cell's row; the migration itself may be further. */
export function setRow(s: CloudState, migration: Migration, cell: string, status: MigrationStatus): void {
  for (const row of migration.rows)
    if (row.cell === cell) {
      row.status = status;
      row.updatedMs = s.nowMs;
    }
}

/** Before a server may enter another cell, that cell gets a row of each of its migrations, with an id of its own. */
export function copyRows(s: CloudState, server: Server, cell: string): void {
  for (const migration of s.migrationsByServer.get(server.uuid) ?? []) {
    const [row] = migration.rows;
    if (row === undefined || migration.rows.some((each) => each.cell === cell)) continue;
    migration.rows.push({ ...row, cell, id: nextRowId(s, cell), updatedMs: row.updatedMs });
  }
}

/** A cell that no longer has the server forgets the rows of its migrations. */
export function forgetRows(s: CloudState, server: Server, cell: string): void {
  for (const migration of s.migrationsByServer.get(server.uuid) ?? [])
    if (migration.rows.length > 1) migration.rows = migration.rows.filter((row) => row.cell !== cell);
}

/** Of the rows that the cells have of a migration Nova shows the newest, to the second. */
export function shownRow(migration: Migration): Migration['rows'][number] {
  const at = (row: Migration['rows'][number]): number => Math.floor((row.updatedMs ?? migration.createdMs) / 1000);
  const [first, ...others] = migration.rows;
  if (first === undefined) throw new Error(`migration ${migration.uuid} has no row`);
  return others.reduce((best, row) => {
    if (at(row) !== at(best)) return at(row) > at(best) ? row : best;
    return row.id < best.id ? row : best;
  }, first);
}

export function endMigration(s: CloudState, migration: Migration, status: MigrationStatus): void {
  deallocate(s, migration.uuid);
  s.next.delete(migration.id);
  setStatus(s, migration, status);
  const host = s.host(migration.source);
  host.running.delete(migration.id);
  const place = host.waiting.indexOf(migration.id);
  if (place >= 0) host.waiting.splice(place, 1);
  admit(s, migration.source);
}

/** Starts the next of a source's waiting migrations if there is room. */
export function admit(s: CloudState, source: string): void {
  const host = s.host(source);
  while (host.running.size < s.scenario.maxConcurrentLiveMigrations) {
    const id = host.waiting.shift();
    if (id === undefined) return;
    host.running.add(id);
    s.schedule('prepare', id, s.wait(s.timing.preparingMs));
  }
}

/** The destination's claim goes, and the source is held by the server itself again. */
export function giveBack(s: CloudState, migration: Migration, server: Server): void {
  const held = s.allocations.get(migration.uuid);
  if (held === undefined) return;
  deallocate(s, migration.uuid);
  deallocate(s, server.uuid);
  allocate(s, server.uuid, s.host(migration.source), held.resources);
}

/** The conductor gives up: the server is free again and stays, the migration ends in `error`. */
export function giveUp(s: CloudState, migration: Migration, server: Server, details: string): void {
  giveBack(s, migration, server);
  server.taskState = null;
  s.touch(server);
  endEvent(s, migration, conductorEvent(migration), { error: details });
  const action = actionOf(s, migration);
  if (action !== undefined) action.message = 'Error';
  endMigration(s, migration, 'error');
}

/** Bytes of the guest's memory: all, copied, left; null before the copying began. */
export function progress(
  s: CloudState,
  migration: Migration,
): { total: number; processed: number; remaining: number } | null {
  if (migration.copyFromMs === null) return null;
  const server = s.servers.get(migration.serverUuid) ?? s.deleted.get(migration.serverUuid);
  const total = (server?.flavor.memoryMb ?? 0) * 1024 * 1024;
  const hangs = migration.copyMs === Number.POSITIVE_INFINITY;
  const share = hangs ? 0.5 : Math.min(1, Math.max(0, (s.nowMs - migration.copyFromMs) / migration.copyMs));
  const processed = Math.round(total * share);
  return { total, processed, remaining: total - processed };
}

export function conflict(action: string, uuid: string, attribute: string, state: string): NovaRefusal {
  return new NovaRefusal(409, `Cannot '${action}' instance ${uuid} while it is in ${attribute} ${state}`);
}
