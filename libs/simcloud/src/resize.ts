/** Cold migration and resize, within a cell and across cells. Both end in VERIFY_RESIZE, and wait there to be confirmed or reverted. */
import { actionOf, beginEvent, copyEvents, endEvent, recordAction } from './actions.ts';
import { cellUnreached, NovaRefusal } from './errors.ts';
import { CONDUCTOR, NO_REPLY } from './liveMigration.ts';
import {
  conflict,
  copyRows,
  currentMove,
  endMigration,
  forgetRows,
  giveBack,
  giveUp,
  newMigration,
  setRow,
  setStatus,
} from './migrations.ts';
import type { Host, Migration, Server } from './model.ts';
import { placeCells } from './numa.ts';
import { allocate, deallocate, serverClaim } from './placement.ts';
import { chooseHost } from './scheduler.ts';
import { serverFault } from './settings.ts';
import { type Caller, type CloudState, findServer, type Pending, type StepKind } from './state.ts';

const RUNNING = 1;
const SHUTDOWN = 4;
/** Time that a cell takes to carry out a deletion. */
const DELETION_MS = 4000;
/** The interval at which a compute looks for moves that wait to be confirmed. */
const LOOK_MS = 60_000;
const NOT_STARTED = 'the guest could not be started';

/** POST /servers/{id}/action migrate. Throws NovaRefusal as Nova would. */
export function coldMigrate(s: CloudState, caller: Caller, uuid: string, requestedHost: string | null): void {
  const server = movable(s, uuid, 'migrate');
  if (requestedHost !== null) {
    if (requestedHost === server.host)
      throw new NovaRefusal(400, 'Cannot migrate to the host where the server exists.');
    const host = s.hosts.get(requestedHost);
    // Without the policy Nova looks in the server's own cell only.
    if (host === undefined || (!s.crossCell && host.cell !== s.host(server.host).cell))
      throw new NovaRefusal(400, `Compute host ${requestedHost} could not be found.`);
    if (s.unreachable.has(host.cell)) throw cellUnreached();
  }
  ask(s, server, { caller, requestedHost, forced: false, async: true });
}

/** POST /servers/{id}/action resize. Throws NovaRefusal as Nova would. */
export function resize(s: CloudState, caller: Caller, uuid: string, flavorId: string): void {
  const server = movable(s, uuid, 'resize');
  const flavor = [...s.flavors.values()].find((each) => each.id === flavorId);
  if (flavor === undefined) throw new NovaRefusal(400, `Flavor ${flavorId} could not be found.`);
  if (flavor.diskGb === 0 && server.flavor.diskGb !== 0 && server.imageId !== null)
    throw new NovaRefusal(
      400,
      'Server disk was unable to be resized because: Resize to zero disk flavor is not allowed.',
    );
  if (flavor === server.flavor) throw new NovaRefusal(400, 'When resizing, instances must change flavor!');
  ask(s, server, { caller, requestedHost: null, flavor, forced: false, async: true });
}

function movable(s: CloudState, uuid: string, action: string): Server {
  const server = findServer(s, uuid);
  if (server.vmState !== 'active' && server.vmState !== 'stopped')
    throw conflict(action, uuid, 'vm_state', server.vmState);
  if (server.taskState !== null) throw conflict(action, uuid, 'task_state', server.taskState);
  if (!s.isUp(s.host(server.host))) throw new NovaRefusal(409, 'Service is unavailable at this time.');
  return server;
}

function ask(s: CloudState, server: Server, request: Pending): void {
  server.oldVmState = server.vmState === 'stopped' ? 'stopped' : 'active';
  server.taskState = 'resize_prep';
  s.touch(server);
  recordAction(s, server, request.flavor === undefined ? 'migrate' : 'resize', { caller: request.caller });
  s.agenda.push({
    atMs: s.nowMs + s.wait(s.timing.conductorMs),
    seq: ++s.seq,
    kind: 'cold-conduct',
    migration: 0,
    server: server.uuid,
    request,
  });
}

/** POST /servers/{id}/action confirmResize or revertResize. Throws NovaRefusal as Nova would. */
export function endResize(s: CloudState, caller: Caller, uuid: string, action: 'confirmResize' | 'revertResize'): void {
  const server = findServer(s, uuid);
  if (server.vmState !== 'resized') throw conflict(action, uuid, 'vm_state', server.vmState);
  if (server.taskState !== null) throw conflict(action, uuid, 'task_state', server.taskState);
  const migration = currentMove(s, uuid);
  // A confirmation under way shows in the migration, and not in the server.
  if (migration?.status !== 'finished') throw new NovaRefusal(400, 'Instance has not been resized.');
  const confirm = action === 'confirmResize';
  if (confirm && !s.isUp(s.host(migration.source))) throw new NovaRefusal(409, 'Service is unavailable at this time.');
  migration.endRequestId = caller.requestId;
  recordAction(s, server, action, { caller });
  if (!confirm) {
    server.taskState = 'resize_reverting';
    s.touch(server);
  }
  migration.status = confirm ? 'confirming' : 'reverting';
  setRow(s, migration, home(s, migration), migration.status);
  s.schedule(confirm ? 'confirm' : 'revert', migration.id, s.wait(s.timing.coldMs));
}

/** A server that was deleted while it changed cells: the new one does not know yet. */
export function survivor(s: CloudState, migration: Migration): Server | undefined {
  return migration.orphanedMs !== null ? s.deleted.get(migration.serverUuid) : undefined;
}

/** The result of a deletion in the middle of a move. */
export function deleteMoving(s: CloudState, migration: Migration, server: Server): 'gone' | 'stays' | 'other' {
  if (migration.type === 'live-migration') return 'other';
  if (migration.status === 'finished') {
    if (migration.orphanedMs !== null) {
      fail(s, migration, server, `Instance ${server.uuid} could not be found.`);
      return 'stays';
    }
    // Nova confirms the move first.
    endMigration(s, migration, 'confirmed');
    return 'gone';
  }
  if (!crosses(s, migration)) return 'other';
  if (server.taskState === 'resize_prep') {
    giveBack(s, migration, server);
    endMigration(s, migration, 'error');
  } else migration.orphanedMs = s.nowMs;
  return 'gone';
}

/** Whether its destination, once chosen, is in another cell. */
function crosses(s: CloudState, migration: Migration): boolean {
  return migration.chosen !== null && s.host(migration.chosen).cell !== s.host(migration.source).cell;
}

/** The cell whose database decides about a server in VERIFY_RESIZE. */
const home = (s: CloudState, migration: Migration): string => s.host(migration.dest ?? migration.source).cell;

export function conductResize(s: CloudState, uuid: string, request: Pending): void {
  const server = s.servers.get(uuid);
  if (server === undefined) return;
  const type = request.flavor === undefined ? 'migration' : 'resize';
  const migration = newMigration(s, server, request, { type, status: 'pre-migrating' });
  beginEvent(s, migration, 'conductor_migrate_server', { host: CONDUCTOR });
  beginEvent(s, migration, 'cold_migrate', { host: CONDUCTOR });
  const held = s.allocations.get(uuid)?.resources ?? serverClaim(server);
  deallocate(s, uuid);
  allocate(s, migration.uuid, s.host(server.host), held);
  s.schedule('cold-schedule', migration.id, s.wait(s.timing.schedulerMs));
}

export function resizeStep(s: CloudState, migration: Migration, server: Server, kind: StepKind): void {
  if (kind === 'cold-schedule') {
    if (!s.holds(kind, migration.id)) schedule(s, migration, server);
    return;
  }
  if (kind === 'confirm-window') {
    confirmByItself(s, migration, server);
    return;
  }
  const across = crosses(s, migration);
  const works = worker(s, migration, kind, across);
  if (works !== null && !works.up) {
    // The compute that was to carry the step out is dead, or it will do so once it is up.
    if (!works.crashed) s.schedule(kind, migration.id, s.wait(s.timing.coldMs));
    else if (kind.startsWith('cold'))
      abandon(s, migration, server, { vmState: across ? 'error' : server.oldVmState, why: NO_REPLY });
    else fail(s, migration, server, NO_REPLY);
    return;
  }
  const step = (across ? ACROSS : WITHIN)[kind];
  step?.({
    s,
    migration,
    server,
    source: s.host(migration.source),
    dest: s.host(migration.chosen ?? migration.source),
    ending: endingOf(migration),
    next: (then) => s.schedule(then, migration.id, s.wait(s.timing.coldMs)),
  });
}

/** The host whose nova-compute carries a step out; null: the conductor does. */
function worker(s: CloudState, migration: Migration, kind: StepKind, across: boolean): Host | null {
  switch (kind) {
    case 'cold-claim':
    case 'cold-finish':
    case 'cold-verify':
    case 'revert':
      return s.host(migration.chosen ?? migration.source);
    case 'cold-move':
    case 'cold-moved':
    case 'confirm-source':
    case 'revert-source':
      return s.host(migration.source);
    case 'revert-end':
      return across ? s.host(migration.source) : null;
    default:
      return null;
  }
}

function schedule(s: CloudState, migration: Migration, server: Server): void {
  const verdict = chooseHost(
    s,
    server,
    { requested: migration.requestedHost, forced: false },
    {
      flavor: migration.newFlavor,
      crossCell: s.crossCell,
    },
  );
  // Without NUMATopologyFilter the destination's compute refuses what does not fit.
  const cells = typeof verdict === 'string' ? null : placeCells(s, verdict, migration.newFlavor);
  if (typeof verdict === 'string' || cells === null) {
    const what = migration.type === 'resize' ? 'resize' : 'cold migrate';
    const why = `No valid host was found. No valid host found for ${what}`;
    endEvent(s, migration, 'cold_migrate', { error: why });
    giveUp(s, migration, server, why);
    return;
  }
  allocate(s, server.uuid, verdict, { ...serverClaim(server, migration.newFlavor), cells });
  migration.chosen = verdict.name;
  if (crosses(s, migration)) {
    copyRows(s, server, verdict.cell);
    copyEvents(s, migration, s.host(migration.source).cell, verdict.cell);
  }
  s.schedule('cold-claim', migration.id, s.wait(s.timing.coldMs));
}

function claim(s: CloudState, migration: Migration): void {
  const dest = s.host(migration.chosen ?? migration.source);
  migration.dest = dest.name;
  migration.destNode = dest.hypervisorHostname;
}

/** A step of a cold migration or resize. */
type ColdStep = {
  readonly s: CloudState;
  readonly migration: Migration;
  readonly server: Server;
  readonly source: Host;
  readonly dest: Host;
  /** The action of its confirmation or reversal. */
  readonly ending: ReturnType<typeof endingOf>;
  /** Schedules the next step. */
  readonly next: (kind: StepKind) => void;
};

type ColdSteps = Partial<Record<StepKind, (step: ColdStep) => void>>;

const endingOf = ({ serverUuid, endRequestId }: Migration) => ({ serverUuid, requestId: endRequestId ?? '' });

const WITHIN: ColdSteps = {
  'cold-claim': ({ s, migration, dest, next }) => {
    beginEvent(s, migration, 'compute_prep_resize', { host: dest.name });
    claim(s, migration);
    endEvent(s, migration, 'compute_prep_resize');
    next('cold-move');
  },
  'cold-move': ({ s, migration, server, next }) => {
    beginEvent(s, migration, 'compute_resize_instance', { host: migration.source });
    server.taskState = 'resize_migrating';
    setStatus(s, migration, 'migrating');
    s.touch(server);
    next('cold-moved');
  },
  'cold-moved': ({ s, migration, server, dest, next }) => {
    endEvent(s, migration, 'compute_resize_instance');
    server.taskState = 'resize_migrated';
    setStatus(s, migration, 'post-migrating');
    server.host = dest.name;
    beginEvent(s, migration, 'compute_finish_resize', { host: dest.name });
    s.touch(server);
    next('cold-finish');
  },
  'cold-finish': ({ s, migration, server, next }) => {
    server.taskState = 'resize_finish';
    server.flavor = migration.newFlavor;
    for (const row of migration.rows) setRow(s, migration, row.cell, 'finished');
    s.touch(server);
    next('cold-verify');
  },
  'cold-verify': ({ s, migration, server }) => {
    endEvent(s, migration, 'compute_finish_resize');
    endEvent(s, migration, 'cold_migrate');
    endEvent(s, migration, 'conductor_migrate_server');
    arrive(s, migration, server);
  },
  confirm: ({ next }) => {
    next('confirm-source');
  },
  'confirm-source': ({ s, migration, next }) => {
    for (const row of migration.rows) setRow(s, migration, row.cell, 'confirmed');
    next('confirm-end');
  },
  'confirm-end': ({ s, migration, server }) => {
    endMigration(s, migration, 'confirmed');
    restore(s, server);
  },
  revert: ({ s, migration, next }) => {
    for (const row of migration.rows) setRow(s, migration, row.cell, 'reverted');
    next('revert-source');
  },
  'revert-source': ({ s, migration, server, next }) => {
    settleOn(s, server, migration.source);
    server.flavor = migration.oldFlavor;
    s.touch(server);
    next('revert-allocation');
  },
  'revert-allocation': ({ s, migration, server, next }) => {
    giveBack(s, migration, server);
    next('revert-end');
  },
  'revert-end': ({ s, migration, server }) => {
    endMigration(s, migration, 'reverted');
    restore(s, server);
  },
};

/**
 * Between cells each has its own record of the server and of the migration; users see the source's until the guest
 * runs in the other cell, and again when a revert has removed it there.
 */
const ACROSS: ColdSteps = {
  'cold-claim': ({ s, migration, dest, next }) => {
    beginEvent(s, migration, 'compute_prep_snapshot_based_resize_at_dest', { host: dest.name, cell: dest.cell });
    claim(s, migration);
    endEvent(s, migration, 'compute_prep_snapshot_based_resize_at_dest', { cell: dest.cell });
    next('cold-move');
  },
  'cold-move': ({ s, migration, server, source, next }) => {
    beginEvent(s, migration, 'compute_prep_snapshot_based_resize_at_source', { host: source.name, cell: source.cell });
    server.taskState = 'resize_migrating';
    setRow(s, migration, source.cell, 'migrating');
    s.touch(server);
    next('cold-moved');
  },
  'cold-moved': ({ s, migration, server, source, next }) => {
    server.powerState = SHUTDOWN;
    const broken = serverFault(s, server.uuid, 'snapshot') !== undefined;
    const error = broken ? 'the image could not be uploaded' : undefined;
    endEvent(s, migration, 'compute_prep_snapshot_based_resize_at_source', { error, cell: source.cell });
    if (error !== undefined) {
      abandon(s, migration, server, { vmState: server.oldVmState, why: error });
      return;
    }
    server.taskState = 'resize_migrated';
    migration.status = 'post-migrating';
    setRow(s, migration, source.cell, 'post-migrating');
    s.touch(server);
    next('cold-finish');
  },
  'cold-finish': ({ s, migration, server, dest }) => {
    beginEvent(s, migration, 'compute_finish_snapshot_based_resize_at_dest', { host: dest.name });
    if (serverFault(s, server.uuid, 'spawn') !== undefined) {
      endEvent(s, migration, 'compute_finish_snapshot_based_resize_at_dest', { error: NOT_STARTED });
      abandon(s, migration, server, { vmState: 'error', why: NOT_STARTED });
      return;
    }
    const slow = serverFault(s, server.uuid, 'slow');
    s.schedule('cold-verify', migration.id, s.wait(s.timing.coldMs) + ((slow?.seconds ?? 0) * 1000) / s.speed);
  },
  'cold-verify': ({ s, migration, server, source, dest }) => {
    if (migration.orphanedMs !== null) {
      // Once its old cell has carried the deletion out, the new one cannot take over. Until then it does.
      if (s.nowMs - migration.orphanedMs > (DELETION_MS * (1 + s.timing.jitter)) / s.speed) {
        endMigration(s, migration, 'error');
        return;
      }
      comeBack(s, server);
    }
    endEvent(s, migration, 'compute_finish_snapshot_based_resize_at_dest');
    endEvent(s, migration, 'cold_migrate', { cell: source.cell });
    endEvent(s, migration, 'conductor_migrate_server', { cell: source.cell });
    setRow(s, migration, dest.cell, 'finished');
    server.flavor = migration.newFlavor;
    server.powerState = server.oldVmState === 'active' ? RUNNING : SHUTDOWN;
    arrive(s, migration, server);
  },
  confirm: ({ s, migration, server, source, ending, next }) => {
    beginEvent(s, ending, 'conductor_confirm_snapshot_based_resize', { host: CONDUCTOR });
    if (migration.orphanedMs !== null) {
      fail(s, migration, server, `Instance ${server.uuid} could not be found.`);
      return;
    }
    beginEvent(s, ending, 'compute_confirm_snapshot_based_resize_at_source', { host: source.name });
    next('confirm-source');
  },
  'confirm-source': ({ s, migration, server, source, ending, next }) => {
    if (serverFault(s, server.uuid, 'confirm') !== undefined) {
      deallocate(s, migration.uuid);
      const error = 'the guest could not be removed';
      endEvent(s, ending, 'compute_confirm_snapshot_based_resize_at_source', { error });
      fail(s, migration, server, error);
      return;
    }
    endEvent(s, ending, 'compute_confirm_snapshot_based_resize_at_source');
    setRow(s, migration, source.cell, 'confirmed');
    deallocate(s, migration.uuid);
    next('confirm-end');
  },
  'confirm-end': ({ s, migration, server, source, ending }) => {
    endEvent(s, ending, 'conductor_confirm_snapshot_based_resize');
    forgetRows(s, server, source.cell);
    endMigration(s, migration, 'confirmed');
    restore(s, server);
  },
  revert: ({ s, migration, dest, ending, next }) => {
    beginEvent(s, ending, 'conductor_revert_snapshot_based_resize', { host: CONDUCTOR });
    beginEvent(s, ending, 'compute_revert_snapshot_based_resize_at_dest', { host: dest.name });
    endEvent(s, ending, 'compute_revert_snapshot_based_resize_at_dest');
    setRow(s, migration, dest.cell, 'reverted');
    next('revert-source');
  },
  'revert-source': ({ s, migration, server, source, dest, ending, next }) => {
    setRow(s, migration, source.cell, 'reverting');
    server.vmState = server.oldVmState;
    server.powerState = SHUTDOWN;
    server.flavor = migration.oldFlavor;
    settleOn(s, server, source.name);
    forgetRows(s, server, dest.cell);
    beginEvent(s, ending, 'compute_finish_revert_snapshot_based_resize_at_source', { host: source.name });
    s.touch(server);
    next('revert-allocation');
  },
  'revert-allocation': ({ s, migration, server, next }) => {
    giveBack(s, migration, server);
    next('revert-end');
  },
  'revert-end': ({ s, migration, server, ending }) => {
    if (serverFault(s, server.uuid, 'revert') !== undefined) {
      endEvent(s, ending, 'compute_finish_revert_snapshot_based_resize_at_source', { error: NOT_STARTED });
      fail(s, migration, server, NOT_STARTED);
      return;
    }
    endEvent(s, ending, 'compute_finish_revert_snapshot_based_resize_at_source');
    endEvent(s, ending, 'conductor_revert_snapshot_based_resize');
    endMigration(s, migration, 'reverted');
    server.powerState = server.oldVmState === 'active' ? RUNNING : SHUTDOWN;
    restore(s, server);
  },
};

/** VERIFY_RESIZE on the destination. */
function arrive(s: CloudState, migration: Migration, server: Server): void {
  migration.status = 'finished';
  settleOn(s, server, migration.dest ?? server.host);
  server.vmState = 'resized';
  server.taskState = null;
  s.touch(server);
  const { resizeConfirmWindow: seconds } = s.scenario;
  // Between cells the compute would need a way to the API.
  if (seconds > 0 && !crosses(s, migration)) s.schedule('confirm-window', migration.id, (seconds * 1000) / s.speed);
}

/**
 * The destination confirms a move that nobody has confirmed. If the server is in another state, the row becomes `error`; while a
 * compute is down, the destination tries again.
 */
function confirmByItself(s: CloudState, migration: Migration, server: Server): void {
  const { vmState, taskState } = server;
  if (vmState !== 'resized' || taskState !== null) setStatus(s, migration, 'error');
  else if ([server.host, migration.source].every((host) => s.isUp(s.host(host)))) {
    const { id, projectId } = s.admin;
    endResize(s, { userId: id, projectId, requestId: `req-${s.random.uuid()}` }, server.uuid, 'confirmResize');
  } else s.schedule('confirm-window', migration.id, LOOK_MS / s.speed);
}

/** The move is over: the server is in the state of before the move. */
function restore(s: CloudState, server: Server): void {
  server.vmState = server.oldVmState;
  server.taskState = null;
  s.touch(server);
}

/** A move that broke before VERIFY_RESIZE: the server stays on its source, in this state. */
function abandon(
  s: CloudState,
  migration: Migration,
  server: Server,
  { vmState, why }: { readonly vmState: 'active' | 'stopped' | 'error'; readonly why: string },
): void {
  const dest = s.host(migration.chosen ?? migration.source);
  const source = s.host(migration.source);
  server.host = migration.source;
  server.flavor = migration.oldFlavor;
  server.vmState = vmState;
  if (vmState === 'error') server.fault = { code: 500, message: why, createdMs: s.nowMs };
  for (const cell of [null, source.cell]) endEvent(s, migration, 'cold_migrate', { error: why, cell });
  endEvent(s, migration, 'conductor_migrate_server', { error: why, cell: source.cell });
  giveUp(s, migration, server, why);
  if (dest.cell !== source.cell) forgetRows(s, server, dest.cell);
}

/** Neither confirmed nor reverted: Nova gives up, and the server is in ERROR where it is. */
function fail(s: CloudState, migration: Migration, server: Server, why: string): void {
  const ending = endingOf(migration);
  const action = actionOf(s, ending);
  if (action !== undefined) action.message = 'Error';
  endEvent(s, ending, 'conductor_confirm_snapshot_based_resize', { error: why });
  const held = migration.orphanedMs !== null ? s.allocations.get(migration.uuid) : undefined;
  endMigration(s, migration, 'error');
  if (held !== undefined) allocate(s, migration.uuid, s.host(held.host), held.resources);
  server.vmState = 'error';
  server.taskState = null;
  server.fault = { code: 500, message: why, createdMs: s.nowMs };
  s.touch(server);
}

/** The deletion is not in the record of the new cell; the server's own allocation went with it. */
function comeBack(s: CloudState, server: Server): void {
  s.deleted.delete(server.uuid);
  server.deletedMs = null;
  s.servers.set(server.uuid, server);
  s.order = null;
}

function settleOn(s: CloudState, server: Server, host: string): void {
  server.host = host;
  if (server.guestHost !== host) server.placements.push({ fromMs: s.nowMs, host });
  server.guestHost = host;
}
