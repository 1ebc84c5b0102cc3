/** Live migration: the requests, and what Nova does step by step. */
import { actionOf, beginEvent, conductorEvent, endEvent, recordAction } from './actions.ts';
import { abandoned, arriveUntaken } from './crash.ts';
import { NovaRefusal } from './errors.ts';
import { admit, conflict, currentMove, endMigration, giveBack, giveUp, newMigration, setStatus } from './migrations.ts';
import type { Host, Migration, MigrationStatus, Server } from './model.ts';
import { NO_FIT, placeCells } from './numa.ts';
import { allocate, deallocate, serverClaim } from './placement.ts';
import { chooseHost, groupViolated, NO_HOST, refuses } from './scheduler.ts';
import { hostFault, serverFault } from './settings.ts';
import {
  type Caller,
  type CloudState,
  findServer,
  type LiveMigrationRequest,
  type Pending,
  type StepKind,
} from './state.ts';

/** The conductor's host in events. */
export const CONDUCTOR = 'controller';
/** Nova's message when a compute does not answer. */
export const NO_REPLY = 'Timed out waiting for a reply to message ID';

/** Nova's names in error texts (nova/compute/power_state.py STATE_MAP). */
const POWER_STATES: Readonly<Record<number, string>> = {
  0: 'pending',
  4: 'shutdown',
  6: 'crashed',
  7: 'suspended',
};

/** POST /servers/{id}/action os-migrateLive. Throws NovaRefusal as Nova would. */
export function liveMigrate(s: CloudState, caller: Caller, uuid: string, request: LiveMigrationRequest): void {
  const server = findServer(s, uuid);
  const specs = server.flavor.extraSpecs;
  if (tiedByTpm(s, specs))
    throw new NovaRefusal(400, `Operation 'live-migration' not supported for vTPM-enabled instance (${uuid}).`);
  if (specs['hw:mem_encryption'] === 'true')
    throw new NovaRefusal(400, `Operation 'live-migration' not supported for SEV-enabled instance (${uuid}).`);
  if (server.vmState !== 'active' && server.vmState !== 'paused')
    throw conflict('os-migrateLive', uuid, 'vm_state', server.vmState);
  if (server.taskState !== null) throw conflict('os-migrateLive', uuid, 'task_state', server.taskState);
  if (request.host !== null) {
    const host = s.hosts.get(request.host);
    // Nova looks in the server's own cell: a host of another cell is as unknown as one that does not exist.
    if (host === undefined || host.cell !== s.host(server.host).cell)
      throw new NovaRefusal(400, `Compute host ${request.host} could not be found.`);
  }
  server.taskState = 'migrating';
  s.touch(server);
  recordAction(s, server, 'live-migration', { caller });
  const pending = { caller, requestedHost: request.host, forced: request.force, async: request.async };
  const fault = serverFault(s, uuid, 'lost', 'conductor-delay');
  if (fault?.kind === 'lost') return;
  if (!request.async) {
    conductAtOnce(s, server, pending);
    return;
  }
  const extra = fault?.kind === 'conductor-delay' ? (fault.seconds * 1000) / s.speed : 0;
  s.agenda.push({
    atMs: s.nowMs + s.wait(s.timing.conductorMs) + extra,
    seq: ++s.seq,
    kind: 'conduct',
    migration: 0,
    server: uuid,
    request: pending,
  });
}

/** Nova 33 (2.103) moves a vTPM if its flavor lets the hosts keep the secret. */
const tiedByTpm = (s: CloudState, specs: Readonly<Record<string, string>>): boolean =>
  specs['hw:tpm_version'] !== undefined &&
  !(Number(s.scenario.compute.split('.')[1]) >= 103 && specs['hw:tpm_secret_security'] === 'host');

/** Before 2.34 the API waits for the conductor, and its refusal is the answer. */
function conductAtOnce(s: CloudState, server: Server, pending: Pending): void {
  conduct(s, server.uuid, pending);
  const migration = currentMove(s, server.uuid);
  for (const kind of ['schedule', 'check'] as const) {
    const seq = migration === undefined ? undefined : s.next.get(migration.id);
    if (migration === undefined || seq === undefined) break;
    liveStep(kind, { s, migration, server });
  }
  const last = s.migrationsByServer.get(server.uuid)?.at(-1);
  if (last?.status !== 'error') return;
  if (server.vmState === 'error')
    throw new NovaRefusal(
      500,
      'Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if ' +
        "possible.\n<class 'nova.exception_Remote.MigrationError_Remote'>",
    );
  const event = actionOf(s, last)?.events.find((each) => each.event === conductorEvent(last));
  throw new NovaRefusal(400, event?.details ?? NO_HOST);
}

/** A migration of a server, as paths name it: by uuid, and by the id of the first row. */
export type NamedMigration = { readonly server: string; readonly migration: string };

/** DELETE /servers/{id}/migrations/{mid}. `queuedToo`: from 2.65 on. Throws NovaRefusal as Nova would. */
export function abortMigration(
  s: CloudState,
  caller: Caller,
  { server: uuid, migration: migrationId }: NamedMigration,
  { queuedToo }: { readonly queuedToo: boolean },
): void {
  const server = findServer(s, uuid);
  if (server.taskState === null)
    throw new NovaRefusal(409, `Instance ${uuid} is in an invalid state for 'abort live migration'`);
  if (server.taskState !== 'migrating') throw conflict('abort live migration', uuid, 'task_state', server.taskState);
  const migration = s.migrationsByServer.get(uuid)?.find((each) => String(each.rows[0]?.id) === migrationId);
  if (migration === undefined) throw new NovaRefusal(404, `Migration ${migrationId} not found for instance ${uuid}`);
  const allowed = queuedToo ? ['running', 'queued', 'preparing'] : ['running'];
  if (!allowed.includes(migration.status))
    throw new NovaRefusal(
      400,
      `Migration ${migrationId} state of instance ${uuid} is ${migration.status}. ` +
        'Cannot abort live migration while the migration is in this state.',
    );
  recordAction(s, server, 'live_migration_cancel', { caller });
  if (serverFault(s, uuid, 'abort-ignored') !== undefined) return;
  s.schedule('abort', migration.id, s.wait(s.timing.abortMs));
}

/** POST /servers/{id}/migrations/{mid}/action force_complete: the copying ends at once. */
export function forceComplete(
  s: CloudState,
  caller: Caller,
  { server: uuid, migration: migrationId }: NamedMigration,
): void {
  const server = findServer(s, uuid);
  if (server.taskState === null)
    throw new NovaRefusal(409, `Instance ${uuid} is in an invalid state for 'force_complete'`);
  const migration = s.migrationsByServer.get(uuid)?.find((each) => String(each.rows[0]?.id) === migrationId);
  if (migration === undefined) throw new NovaRefusal(400, `Migration ${migrationId} not found for instance ${uuid}`);
  if (migration.status !== 'running')
    throw new NovaRefusal(
      400,
      `Migration ${migrationId} state of instance ${uuid} is ${migration.status}. ` +
        'Cannot force complete while the migration is in this state.',
    );
  recordAction(s, server, 'live_migration_force_complete', { caller });
  if (!migration.switched) s.schedule('switchover', migration.id, 100 / s.speed);
}

export function conduct(s: CloudState, uuid: string, request: Pending): void {
  const server = s.servers.get(uuid);
  if (server === undefined) return;
  const source = s.host(server.host);
  const another = currentMove(s, uuid);
  const migration = newMigration(s, server, request, { type: 'live-migration', status: 'accepted' });
  beginEvent(s, migration, conductorEvent(migration), { host: CONDUCTOR });
  if (server.powerState !== 1 && server.powerState !== 3) {
    const state = POWER_STATES[server.powerState] ?? String(server.powerState);
    const why = 'Cannot live migrate while the instance is in this state.';
    giveUp(s, migration, server, `Instance ${uuid} in power_state ${state}. ${why}`);
    return;
  }
  if (another !== undefined && !abandoned(s, another)) {
    giveUp(s, migration, server, `Unable to replace instance claim on source for instance ${uuid}`);
    return;
  }
  if (!s.isUp(source)) {
    giveUp(s, migration, server, `Compute service of ${source.name} is unavailable at this time.`);
    return;
  }
  // From here on the source's share is held by the migration, and the server's own name is free for the destination.
  const held = s.allocations.get(uuid)?.resources ?? serverClaim(server);
  deallocate(s, uuid);
  allocate(s, migration.uuid, source, held);
  s.schedule('schedule', migration.id, s.wait(s.timing.schedulerMs));
}

/** A step of a live migration that is under way. */
type LiveStep = {
  readonly s: CloudState;
  readonly migration: Migration;
  readonly server: Server;
  /** How a roll-back ends. */
  readonly status?: MigrationStatus | undefined;
};

/** Nova's work in each step. */
const STEPS: Partial<Record<StepKind, (step: LiveStep) => void>> = {
  schedule: ({ s, migration, server }) => {
    if (s.holds('schedule', migration.id)) return;
    const verdict = chooseHost(s, server, { requested: migration.requestedHost, forced: migration.forced });
    if (typeof verdict === 'string') {
      giveUp(s, migration, server, verdict);
      return;
    }
    allocate(s, server.uuid, verdict, serverClaim(server));
    migration.chosen = verdict.name;
    const sign = beginEvent(s, migration, 'compute_check_can_live_migrate_destination', { host: verdict.name });
    if (sign !== undefined)
      beginEvent(s, migration, 'compute_check_can_live_migrate_source', { host: migration.source });
    s.schedule('check', migration.id, s.wait(s.timing.checkMs));
  },
  check: ({ s, migration, server }) => {
    const dest = s.host(migration.chosen ?? migration.source);
    const violated = groupViolated(s, server, dest);
    if (violated !== null) {
      explode(s, migration, server, `${violated} instance group policy was violated`);
      return;
    }
    const refusal = refusalOf(s, migration, server, dest);
    endEvent(s, migration, 'compute_check_can_live_migrate_source');
    if (refusal !== null) {
      endEvent(s, migration, 'compute_check_can_live_migrate_destination', { error: refusal.event });
      giveUp(s, migration, server, refusal.text);
      return;
    }
    endEvent(s, migration, 'compute_check_can_live_migrate_destination');
    migration.dest = dest.name;
    migration.destNode = dest.hypervisorHostname;
    for (const row of migration.rows) row.updatedMs = s.nowMs;
    endEvent(s, migration, conductorEvent(migration));
    beginEvent(s, migration, 'compute_live_migration', { host: migration.source });
    s.schedule('queue', migration.id, s.wait(s.timing.queuedMs));
  },
  queue: ({ s, migration }) => {
    // No compute service takes the cast: the row stays as it is.
    if (s.host(migration.source).crashed) {
      s.next.delete(migration.id);
      return;
    }
    setStatus(s, migration, 'queued');
    endEvent(s, migration, 'compute_live_migration');
    s.host(migration.source).waiting.push(migration.id);
    admit(s, migration.source);
  },
  prepare: ({ s, migration }) => {
    setStatus(s, migration, 'preparing');
    beginEvent(s, migration, 'compute_pre_live_migration', { host: migration.dest ?? '' });
    s.schedule('run', migration.id, s.wait(s.timing.preLiveMigrationMs));
  },
  run: ({ s, migration, server }) => {
    const dest = s.host(migration.dest ?? migration.source);
    if (dest.crashed) {
      // The source waits for an answer that never comes, and rolls back without a word of it in the action.
      rollBack(s, migration, 'failed');
      return;
    }
    if (!s.isUp(dest)) {
      endEvent(s, migration, 'compute_pre_live_migration', { error: NO_REPLY });
      rollBack(s, migration, 'error');
      return;
    }
    endEvent(s, migration, 'compute_pre_live_migration');
    if (migration.abortRequested) {
      rollBack(s, migration, 'cancelled');
      return;
    }
    setStatus(s, migration, 'running');
    copy(s, migration, server, dest);
  },
  break: ({ s, migration, status }) => {
    rollBack(s, migration, status ?? 'failed');
  },
  switchover: ({ s, migration, server }) => {
    migration.switched = true;
    server.guestHost = migration.dest ?? server.host;
    server.placements.push({ fromMs: s.nowMs, host: server.guestHost });
    beginEvent(s, migration, 'compute_post_live_migration_at_destination', { host: server.guestHost });
    s.schedule('arrive', migration.id, s.wait(s.timing.postMs));
  },
  arrive: ({ s, migration, server }) => {
    if (s.host(server.guestHost).crashed) {
      arriveUntaken(s, migration, server, NO_REPLY);
      return;
    }
    if (server.taskState !== 'migrating') {
      const message =
        `Conflict updating instance ${server.uuid}. Expected: {'task_state': ['migrating']}. ` +
        "Actual: {'task_state': None}";
      endEvent(s, migration, 'compute_post_live_migration_at_destination', { error: message });
      arriveUntaken(s, migration, server, message);
      return;
    }
    const fault = serverFault(s, server.uuid, 'error-after-switchover');
    server.host = server.guestHost;
    server.taskState = null;
    if (fault !== undefined) {
      endEvent(s, migration, 'compute_post_live_migration_at_destination', {
        error: 'Unexpected error after switch-over',
      });
      s.touch(server);
      endMigration(s, migration, 'error');
      if (fault.vmError) s.later('trip', server.uuid, s.wait(s.timing.failedMs));
      return;
    }
    s.touch(server);
    endEvent(s, migration, 'compute_post_live_migration_at_destination');
    s.schedule('complete', migration.id, s.wait(s.timing.completedMs));
  },
  complete: ({ s, migration }) => {
    endMigration(s, migration, 'completed');
  },
  rollback: ({ s, migration, server, status }) => {
    giveBack(s, migration, server);
    server.taskState = null;
    s.touch(server);
    s.schedule('settle', migration.id, s.wait(s.timing.failedMs), status ?? 'failed');
  },
  settle: ({ s, migration, status }) => {
    endMigration(s, migration, status ?? 'failed');
  },
};

export function liveStep(kind: StepKind, step: LiveStep): void {
  STEPS[kind]?.(step);
}

/** The destination's compute checks the move, and claims NUMA cells; null: it agrees. */
function refusalOf(
  s: CloudState,
  migration: Migration,
  server: Server,
  dest: Host,
): { readonly event: string; readonly text: string } | null {
  if (refuses(s, server, dest)) return { event: 'Migration pre-check error', text: NO_HOST };
  const cells = placeCells(s, dest, server.flavor);
  if (cells === null) {
    const event = `Migration pre-check error: ${NO_FIT}`;
    // The conductor looks for another host, unless one was asked for.
    return { event, text: migration.requestedHost === null ? NO_HOST : event };
  }
  if (cells.length > 0) allocate(s, server.uuid, dest, { ...serverClaim(server), cells });
  return null;
}

/** The end of a copy that fails; null: it does not fail. */
function breakOf(
  fault: { readonly kind: string } | undefined,
  inbound: { readonly kind: string } | undefined,
): 'error' | 'failed' | null {
  if (fault?.kind === 'error') return 'error';
  return fault?.kind === 'fail' || inbound?.kind === 'fail-inbound' ? 'failed' : null;
}

function copy(s: CloudState, migration: Migration, server: Server, dest: Host): void {
  const { timing } = s;
  const fault = serverFault(s, server.uuid, 'fail', 'error', 'hang', 'slow');
  const inbound = hostFault(s, dest.name, 'fail-inbound', 'slow-inbound', 'hook');
  if (inbound?.kind === 'hook') {
    s.schedule('break', migration.id, s.wait(timing.checkMs), 'failed');
    return;
  }
  const copied = Math.max(timing.copyFloorMs, (server.flavor.memoryMb / timing.copyMbPerSecond) * 1000);
  let afterMs = fault?.kind === 'slow' ? (fault.seconds * 1000) / s.speed : s.wait(copied);
  if (inbound?.kind === 'slow-inbound') afterMs *= inbound.factor;
  migration.copyFromMs = s.nowMs;
  migration.copyMs = fault?.kind === 'hang' ? Number.POSITIVE_INFINITY : afterMs;
  if (fault?.kind === 'hang') {
    s.next.delete(migration.id);
    return;
  }
  const breaks = breakOf(fault, inbound);
  if (breaks !== null) {
    s.schedule('break', migration.id, afterMs / 2, breaks);
    return;
  }
  s.schedule('switchover', migration.id, afterMs);
}

/** Copying that hangs, and that its source's compute still works on, comes to its end. */
export function goOn(s: CloudState, uuid: string): void {
  const migration = currentMove(s, uuid);
  if (migration?.status !== 'running' || migration.copyMs !== Number.POSITIVE_INFINITY) return;
  if (s.next.has(migration.id) || s.host(migration.source).crashed) return;
  migration.copyMs = s.nowMs - (migration.copyFromMs ?? s.nowMs);
  s.schedule('switchover', migration.id, 0);
}

export function carryOutAbort(s: CloudState, migration: Migration): void {
  const server = s.servers.get(migration.serverUuid);
  // No compute service took the cast of the abort.
  if (s.host(migration.source).crashed) return;
  // Too late: the guest already runs on the destination, or a roll-back is under way.
  if (server === undefined || migration.switched || migration.abortRequested) return;
  if (migration.status === 'queued') {
    const host = s.host(migration.source);
    const place = host.waiting.indexOf(migration.id);
    if (place >= 0) {
      host.waiting.splice(place, 1);
      giveBack(s, migration, server);
      server.taskState = null;
      s.touch(server);
      endMigration(s, migration, 'cancelled');
      return;
    }
  }
  migration.abortRequested = true;
  if (migration.status === 'running') rollBack(s, migration, 'cancelled');
}

function rollBack(s: CloudState, migration: Migration, status: MigrationStatus): void {
  migration.abortRequested = true;
  s.schedule('rollback', migration.id, s.wait(s.timing.rollbackMs), status);
}

/** An error that the conductor does not expect: the server itself goes to ERROR, though its guest runs on (a bug of Nova). */
function explode(s: CloudState, migration: Migration, server: Server, details: string): void {
  endEvent(s, migration, 'compute_check_can_live_migrate_destination', { error: details });
  giveUp(s, migration, server, `Migration error: ${details}`);
  server.vmState = 'error';
  server.fault = { code: 500, message: details, createdMs: s.nowMs };
  s.touch(server);
}
