/** The executor's reads of Nova while an attempt is under way. */
import { isUp, serviceOf } from '@kronos/facts';
import { actionReason, type InstanceAction, MicroversionUnsupported, NotFound, type Nova } from '@kronos/openstack';
import type { ProgressFacts } from './deadline.ts';
import type { Account, Liveness } from './failure.ts';
import { NEWEST } from './preflight.ts';
import { serverOrGone } from './serverOrGone.ts';
import type { NovaLook, ServerFacts } from './taskFacts.ts';

/**
 * One look: the server's newest live migrations, byte counts while its migration runs, and the server itself. It is read also
 * while the migration is in progress: a server that is idle then shows that Nova has abandoned the row. While no migration is
 * known and the server is idle, its newest action tells whether Nova still has to begin one.
 */
export async function look(
  nova: Nova,
  serverId: string,
  migrationId: number | null,
  signal: AbortSignal,
): Promise<NovaLook> {
  const list = () => nova.listMigrations({ serverId, type: 'live-migration', limit: NEWEST }, { signal });
  const migrations = await list();
  const row = migrations.find((m) => m.id === migrationId);
  const progress = row?.status.startsWith('running') ? await readProgress(nova, serverId, row.id, signal) : null;
  const server = await readServer(nova, serverId, signal);
  const seen = { migrations, server, progress, accepted: false };
  if (migrationId !== null || server === null || server === 'gone' || server.taskState !== null) return seen;
  if (await isAccepted(nova, serverId, signal)) return { ...seen, accepted: true };
  // The conductor may have begun one since they were read.
  return { ...seen, migrations: await list() };
}

/**
 * Whether nova-conductor still has the newest live migration that Nova has accepted, or has not begun it: its action has no
 * event that is over. Once one is over, the migration is listed.
 */
async function isAccepted(nova: Nova, serverId: string, signal: AbortSignal): Promise<boolean> {
  try {
    const action = await actionOf(nova, serverId, null, signal);
    if (action?.action !== 'live-migration' || action.message !== null) return false;
    return action.events.every(({ finishedAt }) => finishedAt === null);
  } catch (error) {
    // Before 2.58 Nova cannot tell.
    if (error instanceof MicroversionUnsupported) return false;
    throw error;
  }
}

/** Null when its cell is down. */
async function readServer(nova: Nova, serverId: string, signal: AbortSignal): Promise<ServerFacts | 'gone' | null> {
  const server = await serverOrGone(nova, serverId, signal);
  return server !== 'gone' && server.cellDown ? null : server;
}

/** Null when the migration is not in progress any more, or its bytes are not counted. */
async function readProgress(
  nova: Nova,
  serverId: string,
  migrationId: number,
  signal: AbortSignal,
): Promise<ProgressFacts | null> {
  try {
    return await nova.getServerMigration(serverId, migrationId, { signal });
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
}

/**
 * Nova's account of a migration: by its request if that is known, else by the newest action that moves the server; by its
 * services. Null: nova-conductor has not ended the action, so its reason may still come. Nova sets a migration to `error` first
 * and writes the reason afterwards.
 */
export async function readAccount(
  nova: Pick<Nova, 'getInstanceAction' | 'listInstanceActions' | 'listServices'>,
  move: { readonly serverId: string; readonly from: string; readonly destination: string },
  requestId: string | null,
  signal: AbortSignal,
): Promise<Account | null> {
  const action = await actionOf(nova, move.serverId, requestId, signal);
  const found = action === null ? undefined : actionReason(action);
  if (found === undefined && action?.events.some(isConducted)) return null;
  const services = await nova.listServices({ signal });
  const liveness = (host: string): Liveness => {
    const service = serviceOf(services, host);
    if (service === null) return 'unknown';
    return isUp(service) ? 'up' : 'down';
  };
  return {
    story: found === undefined ? null : { text: found.text, event: found.event ?? null, host: found.host ?? null },
    asked: action !== null,
    hosts: { source: liveness(move.from), destination: liveness(move.destination) },
  };
}

/** Whether the event is nova-conductor's, and not over. */
const isConducted = ({ event, finishedAt }: InstanceAction['events'][number]): boolean =>
  finishedAt === null && (event.startsWith('conductor_') || event === 'cold_migrate');

async function actionOf(
  nova: Pick<Nova, 'getInstanceAction' | 'listInstanceActions'>,
  serverId: string,
  requestId: string | null,
  signal: AbortSignal,
): Promise<InstanceAction | null> {
  try {
    const key = requestId ?? (await newestAction(nova, serverId, signal));
    return key === null ? null : await nova.getInstanceAction(serverId, key, { signal });
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
}

async function newestAction(
  nova: Pick<Nova, 'listInstanceActions'>,
  serverId: string,
  signal: AbortSignal,
): Promise<string | null> {
  const actions = await nova.listInstanceActions(serverId, { signal });
  const moves = actions.filter(({ action }) => MOVES.has(action));
  moves.sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
  return moves[0]?.requestId ?? null;
}

/** Actions that move a server, as Nova names them. */
const MOVES: ReadonlySet<string> = new Set(['live-migration', 'migrate', 'resize', 'confirmResize', 'revertResize']);
