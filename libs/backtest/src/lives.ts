/** Where a server was, and in which state, rebuilt backwards from what Nova has of it today. Pure. */
import type { Flavor, InstanceAction, Migration, Server } from '@kronos/openstack';

/** A part of a server's life in which nothing about it changed. */
export type Segment = {
  /** Ms since the epoch; it lasts until the next segment, or the end of the life. */
  readonly fromMs: number;
  /** Service host; null: on none, or not known (see `unknown`). */
  readonly host: string | null;
  readonly status: string;
  /** Null: Nova has lost it. */
  readonly flavor: Flavor | null;
  /** True: the host, or the flavor, is not known. */
  readonly unknown: { readonly host: boolean; readonly flavor: boolean };
};

/** A migration of any kind, while it was under way. */
export type UnderWay = {
  readonly migration: Migration;
  readonly fromMs: number;
  readonly untilMs: number;
  /** When the server was on its destination, if it got there. */
  readonly movedMs: number;
};

/** A move that people, or anything else but the backtest, made. */
export type FormerMove = {
  readonly serverId: string;
  readonly serverName: string;
  /** `live-migration`, `migration`, `resize`, `evacuation`. */
  readonly type: string;
  readonly from: string;
  readonly to: string;
  readonly startedMs: number;
  readonly endedMs: number;
  /** MiB. Null: not known. */
  readonly ramMb: number | null;
};

export type ServerLife = {
  /** As Nova shows it today, or as it was when it was deleted. */
  readonly server: Server;
  readonly bornMs: number;
  /** When it was deleted; null: it exists. */
  readonly goneMs: number | null;
  /** In the order of time; the first begins at its birth. */
  readonly segments: readonly Segment[];
  readonly underWay: readonly UnderWay[];
  readonly moves: readonly FormerMove[];
  /** Its actions could not be read: its states are those of today, and of a deleted server no move is known. */
  readonly actionsUnread: boolean;
};

/** One server with its history in Nova. */
export type ServerRecord = {
  readonly server: Server;
  /** Rows of `os-migrations`. Nova drops them with the server. */
  readonly migrations: readonly Migration[];
  /** Instance actions; those that move a server with their events. */
  readonly actions: readonly InstanceAction[];
  /** They could not be read: what they tell is missing. */
  readonly actionsUnread?: true;
  /** When Nova was read, ms since the epoch. */
  readonly readMs: number;
};

/** A flavor by its number in Nova's database. */
export type FlavorNumbers = ReadonlyMap<number, Flavor>;

const DELETED = new Set(['DELETED', 'SOFT_DELETED']);
export const isDeleted = ({ status }: Server): boolean => DELETED.has(status);
const FAILED = new Set(['failed', 'error', 'cancelled', 'reverted']);
const DONE = new Set(['completed', 'confirmed', 'finished', 'done']);
/** The status before an action that was carried out. */
const BEFORE: Readonly<Record<string, string>> = {
  stop: 'ACTIVE',
  start: 'SHUTOFF',
  pause: 'ACTIVE',
  unpause: 'PAUSED',
  suspend: 'ACTIVE',
  resume: 'SUSPENDED',
  rescue: 'ACTIVE',
  unrescue: 'RESCUE',
};
/** The status after it. */
const AFTER: Readonly<Record<string, string>> = {
  stop: 'SHUTOFF',
  start: 'ACTIVE',
  pause: 'PAUSED',
  unpause: 'ACTIVE',
  suspend: 'SUSPENDED',
  resume: 'ACTIVE',
  rescue: 'RESCUE',
  unrescue: 'ACTIVE',
};
/** The type of the migration that an action makes. */
const MOVING_ACTIONS: Readonly<Record<string, string>> = {
  'live-migration': 'live-migration',
  migrate: 'migration',
  resize: 'resize',
  evacuate: 'evacuation',
};
/** The action whose events name the hosts of a move, by the type of the migration. */
const ACTION_OF: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(MOVING_ACTIONS).map(([action, type]) => [type, action]),
);
/** The event of the destination at the end of a move. */
const ARRIVED = new Set([
  'compute_post_live_migration_at_destination',
  'compute_finish_resize',
  'compute_rebuild_instance',
]);
const LEFT = new Set([
  'compute_check_can_live_migrate_source',
  'compute_live_migration',
  'compute_resize_instance',
  'compute_prep_resize',
]);

type Change =
  | { readonly kind: 'status'; readonly atMs: number; readonly before: string }
  | { readonly kind: 'shelved'; readonly atMs: number; readonly hostBefore: string | null }
  | { readonly kind: 'unshelved'; readonly atMs: number }
  | { readonly kind: 'moved'; readonly atMs: number; readonly migration: Migration };

const ms = (time: string): number => Date.parse(time);

/** Whether the actions of a server can tell something about its life since then: without them nothing about it changed. */
export const changedSince = (server: Server, sinceMs: number): boolean =>
  isDeleted(server) || server.updatedAt === null || ms(server.updatedAt) >= sinceMs;

/** The actions whose events are needed: the rows of a deleted server are gone, and no row says when a cold migration arrived. */
export const needsEvents = ({ server }: Pick<ServerRecord, 'server'>, { action, message }: InstanceAction): boolean =>
  message !== 'Error' &&
  (action in MOVING_ACTIONS ? isDeleted(server) || action !== 'live-migration' : action === 'shelve');

/** The numbers of flavors that today's servers and their last migrations reveal. */
export function flavorNumbers(records: Iterable<Pick<ServerRecord, 'server' | 'migrations'>>): FlavorNumbers {
  const found = new Map<number, Flavor>();
  for (const { server, migrations } of records) {
    const last = [...migrations].sort(byStart).findLast(({ newTypeId }) => typeof newTypeId === 'number');
    if (last === undefined || server.flavor === null) continue;
    const id = FAILED.has(last.status) ? last.oldTypeId : last.newTypeId;
    if (typeof id === 'number') found.set(id, server.flavor);
  }
  return found;
}

const byStart = (a: Migration, b: Migration): number => ms(a.createdAt) - ms(b.createdAt) || a.id - b.id;

/** The life of a server. */
export function rebuildLife(record: ServerRecord, flavors: FlavorNumbers): ServerLife {
  const { server, actions, readMs } = record;
  const bornMs = ms(server.createdAt);
  const goneMs = isDeleted(server) ? deletedMs(record) : null;
  const migrations = migrationsOf(record);
  const underWay = migrations.map((migration) => whileUnderWay(migration, actions, goneMs ?? readMs));
  const moved = migrations.flatMap((migration, i): Change[] => {
    const { movedMs = readMs } = underWay[i] ?? {};
    return endedElsewhere(migration) ? [{ kind: 'moved', atMs: movedMs, migration }] : [];
  });
  const changes = [...moved, ...statusChanges(actions)].sort((a, b) => a.atMs - b.atMs);
  const segments = segmentsOf(server, changes, { flavors, bornMs, status: lastStatus(record) });
  const moves = movesOf(server, changes, segments);
  return { server, bornMs, goneMs, segments, underWay, moves, actionsUnread: record.actionsUnread === true };
}

/** Its rows; of a deleted server, whose rows are gone, what its actions say. */
function migrationsOf({ server, migrations, actions }: ServerRecord): Migration[] {
  if (migrations.length > 0 || !isDeleted(server)) return [...migrations].sort(byStart);
  return actions
    .flatMap((action, i): Migration[] => {
      const type = MOVING_ACTIONS[action.action];
      if (type === undefined) return [];
      const source = action.events.findLast(({ event, host }) => LEFT.has(event) && host !== null)?.host ?? null;
      const arrival = action.events.find(({ event, result }) => ARRIVED.has(event) && result === 'Success');
      const end = action.events
        .map(({ finishedAt, startedAt }) => finishedAt ?? startedAt)
        .sort()
        .at(-1);
      return [
        {
          id: -1 - i,
          uuid: action.requestId,
          serverId: server.id,
          type,
          status: arrival === undefined ? 'failed' : 'completed',
          sourceCompute: source,
          destCompute: arrival?.host ?? null,
          createdAt: action.startedAt,
          updatedAt: arrival?.finishedAt ?? end ?? action.updatedAt,
        },
      ];
    })
    .sort(byStart);
}

function deletedMs({ server, actions, readMs }: ServerRecord): number {
  const deletion = actions.filter(({ action }) => action === 'delete').map(({ startedAt }) => ms(startedAt));
  if (deletion.length > 0) return Math.max(...deletion);
  return server.updatedAt === null ? readMs : ms(server.updatedAt);
}

/** A row of Nova that is not over stays under way; a cold migration counts on both hosts until it is confirmed. */
function whileUnderWay(migration: Migration, actions: readonly InstanceAction[], endMs: number): UnderWay {
  const fromMs = ms(migration.createdAt);
  const cold = isCold(migration);
  const unconfirmed = cold && migration.status === 'finished';
  const over = (FAILED.has(migration.status) || DONE.has(migration.status)) && !unconfirmed;
  const rowMs = migration.updatedAt === null ? fromMs : ms(migration.updatedAt);
  // The action knows better than a row that was touched again later.
  const away = ({ startedAt }: InstanceAction): number => Math.abs(ms(startedAt) - fromMs);
  const action = actions
    .filter((one) => one.action === ACTION_OF[migration.type] && away(one) < ACTION_AND_ROW_MS)
    .sort((a, b) => away(a) - away(b))[0];
  const arrival = action?.events.find(({ event, result }) => ARRIVED.has(event) && result === 'Success');
  const arrivedMs = cold && arrival !== undefined && arrival.finishedAt !== null ? ms(arrival.finishedAt) : rowMs;
  return { migration, fromMs, untilMs: over ? rowMs : endMs, movedMs: Math.max(fromMs, arrivedMs) };
}

/** Whether it stops the server, and ends only when somebody confirms it. */
export const isCold = ({ type }: Migration): boolean => type === 'migration' || type === 'resize';

/** A row is made at most this long after the request. */
const ACTION_AND_ROW_MS = 120_000;

/** Whether the migration changed the server's host or flavor. One with an error may have: only the hosts tell. */
const endedElsewhere = ({ status, type, sourceCompute, destCompute }: Migration): boolean =>
  destCompute !== null &&
  (status === 'error' || DONE.has(status)) &&
  (destCompute !== sourceCompute || (type === 'resize' && status !== 'error'));

function statusChanges(actions: readonly InstanceAction[]): Change[] {
  return actions.flatMap(({ action, message, startedAt, events }): Change[] => {
    if (message === 'Error') return [];
    const atMs = ms(startedAt);
    const before = BEFORE[action];
    if (before !== undefined) return [{ kind: 'status', atMs, before }];
    if (action === 'unshelve') return [{ kind: 'unshelved', atMs }];
    if (action === 'shelve')
      return [{ kind: 'shelved', atMs, hostBefore: events.find(({ host }) => host !== null)?.host ?? null }];
    return [];
  });
}

type Now = { host: string | null; status: string; flavor: Flavor | null; hostUnknown: boolean; flavorUnknown: boolean };

const VERIFYING = new Set(['VERIFY_RESIZE', 'RESIZE', 'REVERT_RESIZE', 'MIGRATING']);

/** The status today, or before the deletion; while a move is under way, the one that it had before. */
function lastStatus({ server, actions }: ServerRecord): string {
  if (!isDeleted(server) && !VERIFYING.has(server.status)) return server.status;
  const last = actions
    .filter(({ action, message }) => action in AFTER && message !== 'Error')
    .sort((a, b) => ms(a.startedAt) - ms(b.startedAt))
    .at(-1);
  return AFTER[last?.action ?? ''] ?? 'ACTIVE';
}

/** Walks from today back to the birth. */
function segmentsOf(
  server: Server,
  changes: readonly Change[],
  { flavors, bornMs, status }: { readonly flavors: FlavorNumbers; readonly bornMs: number; readonly status: string },
): Segment[] {
  const now: Now = {
    host: server.host,
    status,
    flavor: server.flavor,
    hostUnknown: server.host === null && !server.status.startsWith('SHELVED'),
    flavorUnknown: false,
  };
  const segments: Segment[] = [];
  const begin = (fromMs: number): void => {
    const { host, status, flavor, hostUnknown, flavorUnknown } = now;
    const unknown = { host: hostUnknown, flavor: flavorUnknown };
    segments.unshift({ fromMs, host: hostUnknown ? null : host, status, flavor, unknown });
  };
  for (const change of changes.toReversed()) {
    if (change.kind === 'moved') beforeMove(now, change.migration, flavors, () => begin(change.atMs));
    else {
      begin(change.atMs);
      if (change.kind === 'status') now.status = change.before;
      else if (change.kind === 'unshelved')
        Object.assign(now, { host: null, hostUnknown: false, status: 'SHELVED_OFFLOADED' });
      else Object.assign(now, { host: change.hostBefore, hostUnknown: change.hostBefore === null, status: 'ACTIVE' });
    }
  }
  begin(bornMs);
  return segments.filter((one, i) => i === 0 || (segments[i + 1]?.fromMs ?? Number.POSITIVE_INFINITY) > one.fromMs);
}

/** Steps back over a migration. `begin` begins the segment that followed it. */
function beforeMove(now: Now, migration: Migration, flavors: FlavorNumbers, begin: () => void): void {
  const { status, sourceCompute, destCompute, oldTypeId, newTypeId } = migration;
  // It failed before it took the server away.
  if (status === 'error' && now.host !== destCompute) return;
  // Something moved it between this arrival and what is known of later: where it was meanwhile nobody knows.
  if (now.host !== destCompute) now.hostUnknown = true;
  begin();
  now.host = sourceCompute;
  now.hostUnknown = sourceCompute === null;
  if (typeof oldTypeId === 'number' && oldTypeId !== newTypeId) {
    const flavor = flavors.get(oldTypeId);
    now.flavorUnknown = flavor === undefined;
    now.flavor = flavor ?? now.flavor;
  } else if (migration.type === 'resize' && typeof oldTypeId !== 'number') now.flavorUnknown = true;
}

function movesOf(server: Server, changes: readonly Change[], segments: readonly Segment[]): FormerMove[] {
  return changes.flatMap((change): FormerMove[] => {
    if (change.kind !== 'moved') return [];
    const { migration, atMs } = change;
    const { sourceCompute: from, destCompute: to } = migration;
    // One that ended with an error may have left it where it was.
    if (from === null || to === null || from === to || !segments.some(({ fromMs }) => fromMs === atMs)) return [];
    const before = segments.findLast(({ fromMs }) => fromMs < atMs);
    const ramMb = before === undefined || before.unknown.flavor ? null : (before.flavor?.ramMb ?? null);
    const { id: serverId, name } = server;
    const startedMs = ms(migration.createdAt);
    return [
      { serverId, serverName: name ?? serverId, type: migration.type, from, to, startedMs, endedMs: atMs, ramMb },
    ];
  });
}

/** The segment at a time; null: it does not exist then. */
export function segmentAt({ bornMs, goneMs, segments }: ServerLife, atMs: number): Segment | null {
  if (atMs < bornMs || (goneMs !== null && atMs >= goneMs)) return null;
  return segments.findLast(({ fromMs }) => fromMs <= atMs) ?? null;
}
