/** What an operator of the simulated cloud decides by looking at Nova. */
import type { Cloud } from '@kronos/simcloud';

const OVER = new Set(['completed', 'failed', 'error', 'cancelled', 'confirmed', 'reverted', 'done']);
export const isOver = (status: string): boolean => OVER.has(status);

/** An operator waits this long before a request counts as lost: nova-conductor can take minutes to begin an accepted one. */
export const STUCK_MS = 1_800_000;

/** Whether Nova calls a server migrating, its last action began at least `STUCK_MS` ago, and nobody in Nova works on it. */
export function isStuck(cloud: Cloud, uuid: string, nowMs: number): boolean {
  if (cloud.servers.get(uuid)?.taskState !== 'migrating') return false;
  const begunMs = cloud.actions.get(uuid)?.at(-1)?.startMs ?? 0;
  if (nowMs - begunMs < STUCK_MS) return false;
  return cloud.migrationsByServer.get(uuid)?.some((one) => !isOver(one.status) && !cloud.abandoned(one)) !== true;
}
