/** Servers that a move left in ERROR. */
import { type LogEventOf, moveEnd } from '@kronos/contracts';
import type { StateDraft, WritableFacts } from './draft.ts';
import { RECENT_DAMAGED, type TaskFacts } from './state.ts';

/** Keeps the server of a move that left it damaged, until a later move of the server completes. */
export function foldDamaged(
  draft: StateDraft,
  f: WritableFacts,
  task: TaskFacts,
  event: LogEventOf<'migration.completed' | 'migration.failed'>,
): void {
  const { atMs } = draft;
  const { serverId, serverName, from } = task.step;
  if (moveEnd(event) !== 'damaged') {
    if (event.type === 'migration.completed') f.damaged = draft.remove(f.damaged, [serverId]);
    return;
  }
  const { planId, destination } = event.data;
  const completed = event.type === 'migration.completed';
  const damaged = {
    sequence: draft.sequence,
    atMs,
    planId,
    taskId: task.id,
    serverId,
    serverName,
    from,
    destination,
    host: completed ? event.data.host : null,
    reasons: completed ? event.data.warnings : [event.data.reason],
  };
  f.damaged = draft.putNewest(f.damaged, serverId, damaged, RECENT_DAMAGED);
}
