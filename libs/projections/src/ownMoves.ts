/** The last move of each server that Kronos completed: what moves of others are compared with. */
import { DAY_MS, type LogEventOf } from '@kronos/contracts';
import type { StateDraft, WritableFacts } from './draft.ts';
import { MAX_OWN_MOVES, type TaskFacts } from './state.ts';

type Completed = Pick<LogEventOf<'migration.completed'>['data'], 'outcome' | 'host' | 'destination' | 'nova'>;
type Failed = Pick<LogEventOf<'migration.failed'>['data'], 'nova'>;

export function ownMoved(
  draft: StateDraft,
  f: WritableFacts,
  task: TaskFacts,
  { outcome, host, destination, nova, at }: Completed & { readonly at: number },
): void {
  const { step } = task;
  // Where it has left its destination already, somebody else moved it on. Nova may choose the host of a move between cells.
  const to = outcome === 'migrated' && step.cell === undefined ? destination : host;
  if (to === step.from) return;
  const fact = { sequence: draft.sequence, atMs: at, from: step.from, to, migrationId: migrationOf(task, nova) };
  f.ownMoves = draft.putNewest(f.ownMoves, step.serverId, fact, MAX_OWN_MOVES);
}

/** Nova may complete the migration of an attempt that Kronos gave up: it is no move of others. */
export function ownGivenUp(draft: StateDraft, f: WritableFacts, task: TaskFacts, { nova }: Failed): void {
  const known = f.ownMoves.get(task.step.serverId);
  const migrationId = migrationOf(task, nova);
  if (known === undefined || migrationId === null || migrationId <= (known.migrationId ?? 0)) return;
  f.ownMoves = draft.put(f.ownMoves, task.step.serverId, { ...known, migrationId });
}

const migrationOf = ({ slot }: TaskFacts, nova: Failed['nova']): number | null =>
  nova?.migrationId ?? slot?.migrationId ?? null;

/** Nova is asked for the migrations of one day. */
export function forgetOwnMoves(draft: StateDraft, f: WritableFacts, snapshotMs: number): void {
  f.ownMoves = draft.drop(f.ownMoves, ({ atMs }) => atMs < snapshotMs - DAY_MS);
}
