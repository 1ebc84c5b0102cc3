/** The last move of each server that Kronos completed: what moves of others are compared with. */
import { DAY_MS, type LogEventOf } from '@kronos/contracts';
import type { Draft, Facts } from './draft.ts';
import { MAX_OWN_MOVES, type TaskFacts } from './state.ts';

export function ownMoved(
  draft: Draft,
  f: Facts,
  { step, slot }: TaskFacts,
  { host, nova, at }: Pick<LogEventOf<'migration.completed'>['data'], 'host' | 'nova'> & { readonly at: number },
): void {
  if (host === step.from) return;
  const migrationId = nova?.migrationId ?? slot?.migrationId ?? null;
  const fact = { sequence: draft.sequence, atMs: at, from: step.from, to: host, migrationId };
  f.ownMoves = draft.putNewest(f.ownMoves, step.serverId, fact, MAX_OWN_MOVES);
}

/** Nova is asked for the migrations of one day. */
export function forgetOwnMoves(draft: Draft, f: Facts, snapshotMs: number): void {
  f.ownMoves = draft.drop(f.ownMoves, ({ atMs }) => atMs < snapshotMs - DAY_MS);
}
