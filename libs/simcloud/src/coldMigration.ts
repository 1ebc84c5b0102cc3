/** Cold migration, within a cell and across cells. */
import { beginEvent, endEvent, recordAction } from './actions.ts';
import { NovaRefusal } from './errors.ts';
import { CONDUCTOR } from './liveMigration.ts';
import { conflict, currentMove, endMigration, giveBack, giveUp, newMigration, setStatus } from './migrations.ts';
import type { Migration, Server } from './model.ts';
import { allocate, release, resourcesOf } from './placement.ts';
import { chooseHost } from './scheduler.ts';
import type { Caller, CloudState, Pending, StepKind } from './state.ts';

/** POST /servers/{id}/action migrate: to another host, of another cell too. Throws NovaRefusal as Nova would. */
export function coldMigrate(s: CloudState, caller: Caller, uuid: string, requestedHost: string | null): void {
  const server = s.servers.get(uuid);
  if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
  if (server.vmState !== 'active' && server.vmState !== 'stopped')
    throw conflict('migrate', uuid, 'vm_state', server.vmState);
  if (server.taskState !== null) throw conflict('migrate', uuid, 'task_state', server.taskState);
  if (requestedHost !== null && !s.hosts.has(requestedHost))
    throw new NovaRefusal(400, `Compute host ${requestedHost} could not be found.`);
  if (requestedHost === server.host) throw new NovaRefusal(400, 'Cannot migrate to the host where the server exists.');
  server.taskState = 'resize_prep';
  s.touch(server);
  recordAction(s, server, 'migrate', caller, s.nowMs);
  s.agenda.push({
    atMs: s.nowMs + s.wait(s.timing.conductorMs),
    seq: ++s.seq,
    kind: 'cold-conduct',
    migration: 0,
    server: uuid,
    request: { caller, requestedHost, forced: false, async: true },
  });
}

/** Ends a cold migration that waits in VERIFY_RESIZE, one way or the other. Throws NovaRefusal as Nova would. */
export function finishCold(
  s: CloudState,
  caller: Caller,
  uuid: string,
  action: 'confirmResize' | 'revertResize',
): void {
  const server = s.servers.get(uuid);
  if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
  if (server.vmState !== 'resized') throw conflict(action, uuid, 'vm_state', server.vmState);
  if (server.taskState !== null) throw conflict(action, uuid, 'task_state', server.taskState);
  const migration = currentMove(s, uuid);
  if (migration === undefined) throw new NovaRefusal(400, 'Instance has not been resized.');
  recordAction(s, server, action, caller, s.nowMs);
  if (action === 'revertResize') {
    server.taskState = 'resize_reverting';
    s.touch(server);
  }
  setStatus(s, migration, action === 'confirmResize' ? 'confirming' : 'reverting');
  s.schedule(action === 'confirmResize' ? 'confirm' : 'revert', migration.id, s.wait(s.timing.coldMs));
}

export function coldConduct(s: CloudState, uuid: string, request: Pending): void {
  const server = s.servers.get(uuid);
  if (server === undefined) return;
  const migration = newMigration(s, server, request, 'migration', 'pre-migrating');
  beginEvent(s, migration, 'conductor_migrate_server', CONDUCTOR);
  beginEvent(s, migration, 'cold_migrate', CONDUCTOR);
  const held = s.allocations.get(uuid)?.resources ?? resourcesOf(server);
  release(s, uuid);
  allocate(s, migration.uuid, s.host(server.host), held);
  s.schedule('cold-schedule', migration.id, s.wait(s.timing.schedulerMs));
}

export function coldStep(s: CloudState, migration: Migration, server: Server, kind: StepKind): void {
  const { timing } = s;
  const next = (then: StepKind): void => s.schedule(then, migration.id, s.wait(timing.coldMs));
  const source = s.host(migration.source);
  switch (kind) {
    case 'cold-schedule': {
      const verdict = chooseHost(s, server, migration.requestedHost, false, true);
      if (typeof verdict === 'string') {
        endEvent(s, migration, 'cold_migrate', 'No valid host was found. No valid host found for cold migrate');
        giveUp(s, migration, server, 'No valid host was found. No valid host found for cold migrate');
        return;
      }
      allocate(s, server.uuid, verdict, resourcesOf(server));
      migration.chosen = verdict.name;
      migration.dest = verdict.name;
      migration.destNode = verdict.hypervisorHostname;
      beginEvent(s, migration, 'compute_prep_resize', verdict.name);
      next('cold-move');
      return;
    }
    case 'cold-move':
      endEvent(s, migration, 'compute_prep_resize');
      beginEvent(s, migration, 'compute_resize_instance', source.name);
      server.taskState = 'resize_migrating';
      setStatus(s, migration, 'migrating');
      s.touch(server);
      next('cold-moved');
      return;
    case 'cold-moved':
      endEvent(s, migration, 'compute_resize_instance');
      server.taskState = 'resize_migrated';
      setStatus(s, migration, 'post-migrating');
      // Within a cell the host changes here; across cells only with the last step.
      if (s.host(migration.dest ?? '').cell === source.cell) server.host = migration.dest ?? server.host;
      beginEvent(s, migration, 'compute_finish_resize', migration.dest ?? '');
      s.touch(server);
      next('cold-finish');
      return;
    case 'cold-finish':
      server.taskState = 'resize_finish';
      // Across cells each cell has its row, and Nova lists either: the source's stays at post-migrating.
      if (s.host(migration.dest ?? '').cell === source.cell || s.random.next() < 0.5)
        setStatus(s, migration, 'finished');
      s.touch(server);
      next('cold-verify');
      return;
    case 'cold-verify':
      endEvent(s, migration, 'compute_finish_resize');
      endEvent(s, migration, 'cold_migrate');
      endEvent(s, migration, 'conductor_migrate_server');
      settleOn(s, server, migration.dest ?? server.host);
      server.vmState = 'resized';
      server.taskState = null;
      s.touch(server);
      return;
    case 'confirm':
      server.vmState = 'active';
      s.touch(server);
      endMigration(s, migration, 'confirmed');
      return;
    case 'revert':
      giveBack(s, migration, server);
      settleOn(s, server, migration.source);
      endMigration(s, migration, 'reverted');
      s.later('reverted', server.uuid, s.wait(timing.coldMs));
      return;
  }
}

function settleOn(s: CloudState, server: Server, host: string): void {
  server.host = host;
  if (server.guestHost !== host) server.placements.push({ fromMs: s.nowMs, host });
  server.guestHost = host;
}
