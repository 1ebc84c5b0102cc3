import { iso, type StoredEvent, sentence } from '@kronos/contracts';
import type { CellStory } from '@kronos/replay';
import type { ServerNameOf } from './names.ts';
import type { ApiAnswer } from './schemas.ts';

/** An event for people: what happened in one sentence, and the ids to look further with. */
export type HistoryEntry = {
  readonly sequence: number;
  readonly time: string | null;
  readonly aggregate: string;
  readonly type: string;
  /** `planner planner-1`, `operator ada`. */
  readonly by: string | null;
  readonly text: string;
  readonly planId: string | null;
  readonly taskId: string | null;
  readonly serverId: string | null;
};

/** The plan, task and server of an event. */
export type Ids = Pick<HistoryEntry, 'planId' | 'taskId' | 'serverId'>;

export function idsOf(event: StoredEvent['event']): Ids {
  if (event.type === 'unreadable') return { planId: null, taskId: null, serverId: null };
  const { data } = event;
  return {
    planId: 'planId' in data ? data.planId : 'plan' in data ? (data.plan?.id ?? null) : null,
    taskId: 'taskId' in data ? data.taskId : null,
    serverId: 'serverId' in data ? data.serverId : null,
  };
}

/** @param nameOf name of a VM by its uuid; null: it is not known */
export function historyEntry({ sequence, event }: StoredEvent, nameOf: ServerNameOf): HistoryEntry {
  if (event.type === 'unreadable')
    return {
      sequence,
      time: null,
      aggregate: event.aggregate,
      type: event.claimedType,
      by: null,
      text: `cannot be read by this version: ${event.problem}`,
      ...idsOf(event),
    };
  return {
    sequence,
    time: event.time,
    aggregate: event.aggregate,
    type: event.type,
    by: `${event.by.service} ${event.by.instance}`,
    text: sentence(event, (serverId) => nameOf(serverId) ?? serverId),
    ...idsOf(event),
  };
}

/** A plan between cells as it concerns one VM. */
export function cellPlan(story: CellStory, nameOf: ServerNameOf): ApiAnswer<'vm'>['cells'][number] {
  const { aggregate, planId, to, sequence, proposedAtMs, expiresAtMs, state, step, reason, events } = story;
  return {
    aggregate,
    planId,
    to,
    sequence,
    proposedAt: iso(proposedAtMs),
    approvalUntil: iso(expiresAtMs),
    state,
    step:
      step?.cell === undefined
        ? null
        : {
            taskId: step.taskId,
            from: step.from,
            to: step.to,
            method: step.cell.method,
            oldFlavor: step.cell.oldFlavor,
            newFlavor: step.cell.newFlavor,
          },
    reason,
    events: events.map((stored) => historyEntry(stored, nameOf)),
  };
}
