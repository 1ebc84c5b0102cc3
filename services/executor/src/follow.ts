/** What the executor reads of Nova while an attempt is under way. */
import { actionReason, NotFound, type Nova } from '@kronos/openstack';
import type { ProgressFacts } from './deadline.ts';
import type { Story } from './failure.ts';
import { NEWEST, serverOrGone } from './preflight.ts';
import { FINAL, type Look, type ServerFacts } from './task.ts';

/**
 * One look: the server's newest live migrations, then what they make worth reading: the server itself unless its migration
 * is in progress, byte counts while it is.
 */
export async function look(
  nova: Nova,
  serverId: string,
  migrationId: number | null,
  signal: AbortSignal,
): Promise<Look> {
  const migrations = await nova.listMigrations({ serverId, type: 'live-migration', limit: NEWEST }, { signal });
  const row = migrations.find((m) => m.id === migrationId);
  const inProgress = row !== undefined && !FINAL.has(row.status);
  if (!inProgress) return { migrations, server: await readServer(nova, serverId, signal), progress: null };
  const progress = row.status.startsWith('running') ? await readProgress(nova, serverId, row.id, signal) : null;
  return { migrations, server: null, progress };
}

async function readServer(nova: Nova, serverId: string, signal: AbortSignal): Promise<ServerFacts | 'gone' | null> {
  const server = await serverOrGone(nova, serverId, signal);
  if (server === 'gone') return server;
  if (server.cellDown) return null;
  const { host, status, vmState, taskState } = server;
  return { host, status, vmState, taskState };
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

/** Nova's own reason for a failed live migration: of the request if it is known, else of the newest live migration. */
export async function explain(
  nova: Nova,
  serverId: string,
  requestId: string | null,
  signal: AbortSignal,
): Promise<Story | null> {
  try {
    const key = requestId ?? (await newestAction(nova, serverId, signal));
    if (key === null) return null;
    const found = actionReason(await nova.getInstanceAction(serverId, key, { signal }));
    if (found === undefined) return null;
    return { text: found.text, event: found.event ?? null, host: found.host ?? null };
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
}

async function newestAction(nova: Nova, serverId: string, signal: AbortSignal): Promise<string | null> {
  const actions = await nova.listInstanceActions(serverId, { signal });
  const moves = actions.filter((action) => action.action === 'live-migration');
  moves.sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
  return moves[0]?.requestId ?? null;
}
