import {
  type CompleteEngineOptions,
  type Decision,
  type EndedMigration,
  iso,
  type Snapshot,
  timeMs,
} from '@kronos/contracts';
import type { Memory, OwnMove } from './memory.ts';

/** Moves that a decision names. */
const NAMED = 10;

type ForeignInput = {
  readonly snapshot: Pick<Snapshot, 'endedMigrations' | 'servers'>;
  readonly memory: Pick<Memory, 'ownMoves' | 'inFlight'>;
  readonly options: Pick<CompleteEngineOptions, 'foreignMoves' | 'foreignWaitSeconds'>;
  /** Ms since the epoch. */
  readonly now: number;
};

type ForeignMove = { readonly ended: EndedMigration; readonly undoes: boolean };

/**
 * The migrations of the last `foreign_wait` that Kronos did not start and that undo or repeat its last move of the same server, the newest
 * first.
 */
function found({ snapshot, memory, options, now }: ForeignInput): ForeignMove[] {
  const sinceMs = now - options.foreignWaitSeconds * 1000;
  const flying = new Set(memory.inFlight.map(({ serverId }) => serverId));
  return (snapshot.endedMigrations ?? [])
    .filter(({ serverId, at }) => timeMs(at) > sinceMs && !flying.has(serverId))
    .flatMap((ended) => {
      const own = memory.ownMoves?.[ended.serverId];
      const undoes = own === undefined ? null : relation(ended, own);
      return undoes === null ? [] : [{ ended, undoes }];
    })
    .sort((a, b) => timeMs(b.ended.at) - timeMs(a.ended.at) || b.ended.id - a.ended.id);
}

/**
 * Server -> until when only an evacuation moves it, because others moved it after Kronos: ms since the epoch. The latest first. Pure.
 */
export function foreignHolds(input: ForeignInput): ReadonlyMap<string, number> {
  const holds = new Map<string, number>();
  const { foreignMoves: rule, foreignWaitSeconds } = input.options;
  if (rule !== 'wait') return holds;
  for (const { ended } of found(input))
    if (!holds.has(ended.serverId)) holds.set(ended.serverId, timeMs(ended.at) + foreignWaitSeconds * 1000);
  return holds;
}

/**
 * Moves of others that a decision respects. One server that they moved stays where it is; nothing is balanced where they moved several.
 * Null: none. Pure.
 */
export function foreignMoves(input: ForeignInput): NonNullable<Decision['foreign']> | null {
  const moves = found(input);
  if (moves.length === 0) return null;
  const names = new Map(input.snapshot.servers.map(({ id, name }) => [id, name]));
  const [last, several] = foreignHolds(input).values();
  return {
    count: moves.length,
    undone: moves.filter(({ undoes }) => undoes).length,
    moves: moves.slice(0, NAMED).map(({ ended: { serverId, from, to, at }, undoes }) => ({
      serverId,
      serverName: names.get(serverId) ?? serverId,
      from,
      to,
      at,
      undoes,
    })),
    ...(several === undefined ? {} : { waitUntil: iso(several) }),
    ...(last === undefined || several !== undefined ? {} : { stayUntil: iso(last) }),
  };
}

/** True: the migration undoes the move of Kronos. False: it repeats it. Null: neither, or it is that move or an earlier one. */
function relation({ id, from, to, at }: EndedMigration, own: OwnMove): boolean | null {
  const later = own.migrationId === null ? timeMs(at) > own.atMs : id > own.migrationId;
  if (!later) return null;
  if (from === own.to) return true;
  return to === own.to ? false : null;
}
