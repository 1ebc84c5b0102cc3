/** Tasks of released plans: the log's facts about their attempts until they end. */
import type { LogEventOf } from '@kronos/contracts';
import { asked } from './controls.ts';
import type { StateDraft, WritableFacts } from './draft.ts';
import type { Effects } from './effects.ts';
import type { PlanFacts, Slot, StepFacts, TaskFacts } from './state.ts';

/** Makes tasks of the steps of a plan that is released. From here on they count: slots, cooldowns, moves in flight. */
export function tasksReleased(draft: StateDraft, f: WritableFacts, plan: PlanFacts, steps: readonly StepFacts[]): void {
  const { atMs } = draft;
  for (const step of steps)
    putTask(draft, f, {
      id: step.taskId,
      planId: plan.id,
      step,
      status: 'waiting',
      attempt: 1,
      destination: step.to,
      notBeforeMs: atMs + step.delaySeconds * 1000,
      slot: null,
      end: null,
      lastFailure: null,
      cancelAsked: null,
      abortAsked: null,
      closeAsked: null,
    });
}

export function putTask(draft: StateDraft, f: WritableFacts, task: TaskFacts): void {
  f.tasks = draft.put(f.tasks, task.id, task);
}

const NOT_ARRIVED = { migrationUuid: null, verifying: null, verified: null, settle: null } as const;

function started(draft: StateDraft, event: LogEventOf<'migration.started'>): void {
  const { atMs } = draft;
  const d = event.data;
  const task = draft.of(event.aggregate)?.tasks.get(d.taskId);
  if (task === undefined || task.end !== null) return;
  if (d.attempt < task.attempt || (d.attempt === task.attempt && task.status === 'started')) return;
  const slot: Slot = {
    sequence: draft.sequence,
    startedAtMs: atMs,
    executor: event.by.instance,
    attempt: d.attempt,
    from: d.from,
    destination: d.destination,
    groups: d.groups,
    newestMigrationId: d.newestMigrationId,
    forced: d.forced,
    ramMb: d.ramMb,
    diskGb: d.diskGb,
    migrationId: null,
    requestId: null,
    abortRefused: null,
    suspected: null,
    ...(d.cell === undefined ? {} : { cell: { ...d.cell, ...NOT_ARRIVED } }),
  };
  const { attempt, destination } = d;
  putTask(draft, draft.facts(event.aggregate), { ...task, status: 'started', attempt, destination, slot });
}

type Attempted = {
  readonly aggregate: string;
  readonly data: { readonly taskId: string; readonly attempt: number };
};

/** The attempt that an event is about, while it holds its slot; null: it holds none. */
export function startedAttempt(draft: StateDraft, { aggregate, data }: Attempted) {
  const task = draft.of(aggregate)?.tasks.get(data.taskId);
  const slot = task?.slot ?? null;
  return task === undefined || slot === null || slot.attempt !== data.attempt ? null : { task, slot };
}

function observed(draft: StateDraft, event: LogEventOf<'migration.observed'>): void {
  const d = event.data;
  const attempt = startedAttempt(draft, event);
  if (attempt === null) return;
  const { task, slot } = attempt;
  const known = { migrationId: slot.migrationId, requestId: slot.requestId, uuid: slot.cell?.migrationUuid ?? null };
  const migrationId = known.migrationId ?? d.migrationId;
  const requestId = known.requestId ?? d.requestId;
  const uuid = known.uuid ?? d.migrationUuid ?? null;
  if (migrationId === known.migrationId && requestId === known.requestId && uuid === known.uuid) return;
  const cell = slot.cell === undefined ? {} : { cell: { ...slot.cell, migrationUuid: uuid } };
  putTask(draft, draft.facts(event.aggregate), { ...task, slot: { ...slot, migrationId, requestId, ...cell } });
}

function abortRefused(draft: StateDraft, event: LogEventOf<'migration.abortRefused'>): void {
  const { atMs } = draft;
  const { status, text } = event.data;
  const attempt = startedAttempt(draft, event);
  if (attempt === null || attempt.slot.abortRefused !== null) return;
  const { task, slot } = attempt;
  const refused = { sequence: draft.sequence, atMs, status, text };
  putTask(draft, draft.facts(event.aggregate), { ...task, slot: { ...slot, abortRefused: refused } });
}

function suspected(draft: StateDraft, event: LogEventOf<'migration.suspected'>): void {
  const { atMs } = draft;
  const { tries } = event.data;
  const attempt = startedAttempt(draft, event);
  if (attempt === null || (tries === 0 && attempt.slot.suspected === null)) return;
  const { task, slot } = attempt;
  const suspicion = tries === 0 ? null : { tries, atMs };
  putTask(draft, draft.facts(event.aggregate), { ...task, slot: { ...slot, suspected: suspicion } });
}

const ASKED = {
  'migration.cancelled': 'cancelAsked',
  'migration.aborted': 'abortAsked',
} as const;

/** A person closed a task. The first command counts, and the first with force. */
function closeAsked(draft: StateDraft, event: LogEventOf<'migration.closed'>): void {
  const force = event.data.force === true ? { force: true as const } : {};
  for (const aggregate of draft.addressed(event.aggregate)) {
    const task = draft.of(aggregate)?.tasks.get(event.data.taskId);
    if (task === undefined || task.end !== null) continue;
    if (task.closeAsked !== null && (task.closeAsked.force === true || event.data.force !== true)) continue;
    putTask(draft, draft.facts(aggregate), { ...task, closeAsked: { ...asked(draft, event), ...force } });
  }
}

/** A person asked to end a task. The first command of each kind counts. */
function endAsked(draft: StateDraft, event: LogEventOf<keyof typeof ASKED>): void {
  for (const aggregate of draft.addressed(event.aggregate)) {
    const task = draft.of(aggregate)?.tasks.get(event.data.taskId);
    if (task === undefined || task.end !== null) continue;
    const field = ASKED[event.type];
    if (task[field] !== null) continue;
    putTask(draft, draft.facts(aggregate), { ...task, [field]: asked(draft, event) });
  }
}

export const taskEffects = {
  'migration.started': started,
  'migration.observed': observed,
  'migration.abortRefused': abortRefused,
  'migration.suspected': suspected,
  'migration.cancelled': endAsked,
  'migration.aborted': endAsked,
  'migration.closed': closeAsked,
} satisfies Partial<Effects>;
