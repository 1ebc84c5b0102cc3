/** Results of attempts: how each ends its attempt or its task, and what else follows from it. */
import { type LogEventOf, MAX_RETRY_WAIT_SECONDS, timeMs } from '@kronos/contracts';
import { hostFailed } from './breaker.ts';
import { moveCounted } from './calibration.ts';
import { foldDamaged } from './damaged.ts';
import type { StateDraft, WritableFacts } from './draft.ts';
import { departed } from './drains.ts';
import type { Effects } from './effects.ts';
import { ownGivenUp, ownMoved } from './ownMoves.ts';
import { moveTimed } from './pace.ts';
import { taskEnded } from './plans.ts';
import { vmFailed } from './quarantine.ts';
import { forgetRefusal, refused } from './refusals.ts';
import type { AttemptFailure, TaskEnd, TaskFacts } from './state.ts';
import { putTask } from './tasks.ts';

type Result = LogEventOf<'migration.completed' | 'migration.failed' | 'migration.skipped'>;

function ended(draft: StateDraft, event: Result): void {
  const { atMs } = draft;
  const d = event.data;
  const task = draft.of(event.aggregate)?.tasks.get(d.taskId);
  if (task === undefined || task.end !== null || d.attempt < task.attempt) return;
  // Only an executor ends a started task, except that a planner ends one that an operator closed.
  if (event.by.service === 'planner' && task.slot !== null && task.closeAsked === null) return;
  const f = draft.facts(event.aggregate);
  moveTimed(draft, f, task, event);
  if (event.type === 'migration.failed') {
    failed(draft, f, task, event);
    return;
  }
  const end: TaskEnd = { sequence: draft.sequence, atMs, host: null, warnings: [] };
  const { attempt, destination } = d;
  const over = { ...task, slot: null, attempt, destination, end };
  if (event.type === 'migration.skipped') {
    taskEnded(draft, f, { ...over, status: 'skipped' }, 'skipped');
    return;
  }
  const { host, warnings } = event.data;
  f.lastMoveEnd = { taskId: task.id, atMs };
  foldDamaged(draft, f, task, event);
  forgetRefusal(draft, task.step.serverId, host);
  ownMoved(draft, f, task, { ...event.data, at: atMs });
  if (host !== task.step.from) departed(draft, task.step.from);
  moveCounted(draft, f, task, { ...event.data, endedMs: atMs });
  taskEnded(draft, f, { ...over, status: 'completed', end: { ...end, host, warnings } }, 'completed');
}

function failed(draft: StateDraft, f: WritableFacts, task: TaskFacts, event: LogEventOf<'migration.failed'>): void {
  const { sequence, atMs } = draft;
  const { attempt, destination, errorType, reason, next, retryPending, hostAtFault, started } = event.data;
  const final = !retryPending || next === null;
  const lastFailure: AttemptFailure = { sequence, atMs, attempt, destination, errorType, reason, final };
  foldDamaged(draft, f, task, event);
  if (task.slot !== null || started) f.lastMoveEnd = { taskId: task.id, atMs };
  if (hostAtFault !== null) hostFailed(draft, f, hostAtFault);
  refused(draft, f, event.data);
  ownGivenUp(draft, f, task, event.data);
  if (!final) {
    putTask(draft, f, {
      ...task,
      status: 'retryPending',
      slot: null,
      attempt: Math.max(next.attempt, attempt + 1),
      destination: next.destination,
      notBeforeMs: Math.min(timeMs(next.notBefore), atMs + MAX_RETRY_WAIT_SECONDS * 1000),
      lastFailure,
    });
    return;
  }
  vmFailed(draft, f, task, event.data);
  const end: TaskEnd = { sequence, atMs, host: null, warnings: [] };
  taskEnded(draft, f, { ...task, slot: null, attempt, destination, end, status: 'failed', lastFailure }, 'failed');
}

export const resultEffects = {
  'migration.completed': ended,
  'migration.failed': ended,
  'migration.skipped': ended,
} satisfies Partial<Effects>;
