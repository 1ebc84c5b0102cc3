import { moveEnd, type StoredEvent, timeMs } from '@kronos/contracts';
import { namedBy } from './names.ts';
import type { ApiAnswer } from './schemas.ts';

export type MoveLine = ApiAnswer<'moves'>['moves'][number];
type Ended = Pick<MoveLine, 'endedAt' | 'outcome' | 'text'>;

/**
 * Attempts to move VMs, the newest first: who, from where to where, when, and how each ended. Pure.
 *
 * @param events newest first
 */
export function movesOf(
  events: Iterable<StoredEvent>,
  wanted: (aggregate: string, serverId: string) => boolean,
  limit: number,
): MoveLine[] {
  const ends = new Map<string, Ended>();
  const names = new Map<string, string>();
  const found: MoveLine[] = [];
  for (const stored of events) {
    const { event } = stored;
    for (const [serverId, serverName] of namedBy(stored)) names.set(serverId, serverName);
    if (found.length === limit) continue;
    switch (event.type) {
      case 'migration.completed':
      case 'migration.failed':
      case 'migration.skipped': {
        const { data } = event;
        if (!wanted(event.aggregate, data.serverId)) break;
        const end = { endedAt: event.time, ...ending(event) };
        const neverStarted =
          event.type === 'migration.skipped' || (event.type === 'migration.failed' && !event.data.started);
        // Whatever was on its destination already may have been found there before its start.
        if (neverStarted) found.push({ ...lineOf(event.aggregate, data), startedAt: null, ...end, durationMs: null });
        else ends.set(attempt(data), end);
        break;
      }
      case 'migration.started': {
        const { data } = event;
        if (!wanted(event.aggregate, data.serverId)) break;
        const end = ends.get(attempt(data)) ?? { endedAt: null, outcome: 'underWay', text: null };
        const durationMs = end.endedAt === null ? null : Math.max(0, timeMs(end.endedAt) - timeMs(event.time));
        found.push({ ...lineOf(event.aggregate, data), startedAt: event.time, ...end, durationMs });
        break;
      }
      default:
    }
  }
  return found.map((line) => ({ ...line, serverName: names.get(line.serverId) ?? null }));
}

const attempt = ({ taskId, attempt: number }: { readonly taskId: string; readonly attempt: number }): string =>
  `${taskId} ${number}`;

function lineOf(
  aggregate: string,
  data: Pick<MoveLine, 'taskId' | 'planId' | 'serverId' | 'attempt' | 'from'> & { readonly destination: string },
) {
  const { taskId, planId, serverId, from, destination } = data;
  return { aggregate, taskId, planId, serverId, serverName: null, attempt: data.attempt, from, to: destination };
}

function ending(
  event: Extract<StoredEvent['event'], { type: 'migration.completed' | 'migration.failed' | 'migration.skipped' }>,
): Pick<Ended, 'outcome' | 'text'> {
  if (event.type === 'migration.skipped') return { outcome: 'skipped', text: event.data.reason.text };
  if (event.type === 'migration.failed') {
    const { retryPending, errorType, reason } = event.data;
    return { outcome: retryPending ? 'retried' : 'failed', text: `${errorType}: ${reason.text}` };
  }
  const end = moveEnd(event);
  const text = event.data.warnings.map((warning) => warning.text).join('; ');
  return { outcome: end === 'plain' ? 'completed' : end, text: text === '' ? null : text };
}

/** The hosts where a VM ran, oldest first, by its moves that completed; `moves` are the newest first. Pure. */
export function hostsOf(moves: readonly MoveLine[]): ApiAnswer<'vm'>['ran'] {
  const ran: { host: string; since: string | null; until: string | null }[] = [];
  for (const { outcome, from, to, endedAt } of moves.toReversed()) {
    if (outcome !== 'completed' && outcome !== 'warned' && outcome !== 'damaged') continue;
    const last = ran.at(-1);
    // Somebody else moved it in between.
    if (last !== undefined && last.host === from) last.until = endedAt;
    else ran.push({ host: from, since: null, until: endedAt });
    ran.push({ host: to, since: endedAt, until: null });
  }
  return ran;
}
