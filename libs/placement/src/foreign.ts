import {
  type CompleteEngineOptions,
  type Decision,
  type EndedMigration,
  iso,
  type Snapshot,
  timeMs,
} from '@kronos/contracts';
import type { Memory, OwnMove } from './snapshot/memory.ts';

/** Moves that a decision names. */
const NAMED = 10;

type ForeignInput = {
  readonly snapshot: Pick<Snapshot, 'endedMigrations' | 'servers'>;
  readonly memory: Pick<Memory, 'ownMoves' | 'inFlight'>;
  readonly options: Pick<CompleteEngineOptions, 'foreignMoves' | 'foreignWaitSeconds'>;
  /** Ms since the epoch. */
  readonly now: number;
};

/**
 * The migrations of the last `foreign_wait` that Kronos did not start and that undo or repeat its last move of the same server. Null:
 * none. Pure.
 */
export function foreignMoves({
  snapshot,
  memory,
  options,
  now,
}: ForeignInput): NonNullable<Decision['foreign']> | null {
  const sinceMs = now - options.foreignWaitSeconds * 1000;
  const flying = new Set(memory.inFlight.map(({ serverId }) => serverId));
  const names = new Map(snapshot.servers.map(({ id, name }) => [id, name]));
  const found = (snapshot.endedMigrations ?? [])
    .filter(({ serverId, at }) => timeMs(at) > sinceMs && !flying.has(serverId))
    .flatMap((ended) => {
      const own = memory.ownMoves?.[ended.serverId];
      const undoes = own === undefined ? null : relation(ended, own);
      return undoes === null ? [] : [{ ended, undoes }];
    })
    .sort((a, b) => timeMs(b.ended.at) - timeMs(a.ended.at) || b.ended.id - a.ended.id);
  const [newest] = found;
  if (newest === undefined) return null;
  const until = iso(timeMs(newest.ended.at) + options.foreignWaitSeconds * 1000);
  return {
    count: found.length,
    undone: found.filter(({ undoes }) => undoes).length,
    moves: found.slice(0, NAMED).map(({ ended: { serverId, from, to, at }, undoes }) => ({
      serverId,
      serverName: names.get(serverId) ?? serverId,
      from,
      to,
      at,
      undoes,
    })),
    ...(options.foreignMoves === 'wait' ? { waitUntil: until } : {}),
  };
}

/** True: the migration undoes the move of Kronos. False: it repeats it. Null: neither, or it is that move or an earlier one. */
function relation({ id, from, to, at }: EndedMigration, own: OwnMove): boolean | null {
  const later = own.migrationId === null ? timeMs(at) > timeMs(own.at) : id > own.migrationId;
  if (!later) return null;
  if (from === own.to) return true;
  return to === own.to ? false : null;
}
