/** Computes that die and start again, and rows that Nova loses. */
import { endMigration, giveBack } from './migrations.ts';
import { ENDED, type Host, type Migration, type Server } from './model.ts';
import type { CloudState } from './state.ts';

const leaving = (s: CloudState, host: string): Migration[] =>
  s.migrations.filter((each) => each.type === 'live-migration' && each.source === host && !ENDED.has(each.status));

/** Its nova-compute stops reporting. */
export function goDown(s: CloudState, host: Host): void {
  if (!host.up) return;
  host.up = false;
  host.lastSeenMs = s.nowMs;
  host.outages.push({ fromMs: s.nowMs, untilMs: null });
}

/** Its nova-compute reports again. */
export function comeUp(s: CloudState, host: Host): void {
  if (host.up) return;
  host.up = true;
  host.lastSeenMs = s.nowMs;
  const last = host.outages.at(-1);
  if (last !== undefined) last.untilMs = s.nowMs;
}

/** Its nova-compute dies. What it did stops where it is; Nova calls it down. */
export function killHost(s: CloudState, name: string): void {
  const host = s.host(name);
  if (host.crashed) return;
  host.crashed = true;
  goDown(s, host);
  // Only the compute of the source works on a migration that it has been given.
  for (const migration of leaving(s, name)) if (migration.status !== 'accepted') s.next.delete(migration.id);
}

/**
 * A new nova-compute begins. It sets every server of its own that was migrating free, and a `running` migration to `error`, without a
 * reason; it forgets those that were queued or prepared, whose rows stay as they are (`_reset_live_migration` in Nova). What the
 * conductor still works on goes on.
 */
export function startHost(s: CloudState, name: string): void {
  const host = s.host(name);
  if (!host.crashed) return;
  host.crashed = false;
  comeUp(s, host);
  host.waiting.length = 0;
  host.running.clear();
  for (const migration of leaving(s, name)) {
    const server = s.servers.get(migration.serverUuid);
    if (migration.status !== 'running' || server?.host !== name) continue;
    giveBack(s, migration, server);
    endMigration(s, migration, 'error');
  }
  for (const server of s.servers.values()) {
    if (server.host !== name || server.taskState !== 'migrating') continue;
    server.taskState = null;
    s.touch(server);
  }
}

/** Whether Nova shows a live migration that no compute works on any more: only a person ends it. */
export function abandoned(s: CloudState, migration: Migration): boolean {
  const { running, waiting, crashed } = s.host(migration.source);
  if (migration.type !== 'live-migration' || ENDED.has(migration.status)) return false;
  // A new compute on the source ends the migrations of its own servers. One that has arrived is not its own any more.
  if (crashed) return s.servers.get(migration.serverUuid)?.host === migration.dest;
  if (migration.status === 'accepted') return !s.next.has(migration.id);
  return !running.has(migration.id) && !waiting.includes(migration.id);
}

/**
 * The guest arrives and its destination does not take it over: nobody is left there, or the server was set free meanwhile. Nova
 * names the destination and calls the server broken.
 */
export function arriveUntaken(s: CloudState, migration: Migration, server: Server, message: string): void {
  server.host = server.guestHost;
  server.taskState = null;
  server.vmState = 'error';
  server.fault = { code: 500, message, createdMs: s.nowMs };
  s.touch(server);
  endMigration(s, migration, 'error');
}

/** The rows of a server's migrations are gone, as after a restore of an older database; nobody works on them any more. */
export function loseMigrations(s: CloudState, server: Server): void {
  for (const migration of s.migrationsByServer.get(server.uuid) ?? []) {
    if (!ENDED.has(migration.status)) {
      giveBack(s, migration, server);
      endMigration(s, migration, 'cancelled');
    }
    migration.lost = true;
  }
  s.migrationsByServer.delete(server.uuid);
  server.taskState = null;
  s.touch(server);
}
