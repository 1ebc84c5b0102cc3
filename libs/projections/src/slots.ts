import type { EngineOptions, Reason } from '@kronos/contracts';
import type { ReasonOf, TaskReasonCode, WaitReasonCode } from '@kronos/facts';
import {
  type Caps,
  capReached,
  countSlots,
  pauseInForce,
  quarantineCode,
  type SlotCounts,
  type SlotUse,
} from '@kronos/rules';
import { notAfterMs } from './approvals.ts';
import type { KnownOf } from './elsewhere.ts';
import { windowClosed } from './plans.ts';
import { quarantined } from './quarantine.ts';
import type { AggregateState, PlanFacts, TaskFacts } from './state.ts';

/**
 * Started attempts without an end. A slot is an event, not a lease: it is held until a result is on the log. `total` counts those of
 * the aggregate; a VM, a host or a group may be in a move of another one, which counts there too.
 */
export type Slots = SlotCounts & {
  /** The same by kind, as each kind has concurrency limits of its own; `servers` are those of all moves. */
  readonly live: SlotCounts;
  readonly cells: SlotCounts;
  /** The tasks that hold them, oldest first. */
  readonly tasks: readonly TaskFacts[];
};

/**
 * The slots that are held.
 *
 * @param soon attempts that this process is about to start: they count as well
 */
export function slots(state: KnownOf<'tasks'>, soon: readonly AttemptToStart[] = []): Slots {
  const tasks = holders(state);
  tasks.sort((a, b) => (a.slot?.sequence ?? 0) - (b.slot?.sequence ?? 0));
  const { live, cells } = usesOf(tasks);
  for (const { taskId, destination } of soon) {
    const task = state.tasks.get(taskId);
    if (task === undefined || task.slot !== null) continue;
    (task.step.phase === 'cell' ? cells : live).push(slotOf(task, destination));
  }
  const others = usesOf(state.elsewhere.flatMap(holders));
  const all = countSlots([...live, ...cells], [...others.live, ...others.cells]);
  const { servers } = all;
  const ofLive = cells.length + others.cells.length === 0 ? all : { ...countSlots(live, others.live), servers };
  return { ...all, live: ofLive, cells: { ...countSlots(cells, others.cells), servers }, tasks };
}

const holders = ({ tasks }: Pick<AggregateState, 'tasks'>): TaskFacts[] =>
  [...tasks.values()].filter((task) => task.slot !== null);

/** The slots that tasks hold, by kind. */
function usesOf(tasks: readonly TaskFacts[]): { readonly live: SlotUse[]; readonly cells: SlotUse[] } {
  const uses: { readonly live: SlotUse[]; readonly cells: SlotUse[] } = { live: [], cells: [] };
  for (const { step, slot } of tasks) {
    if (slot === null) continue;
    const { from, destination, groups } = slot;
    uses[step.phase === 'cell' ? 'cells' : 'live'].push({ serverId: step.serverId, from, destination, groups });
  }
  return uses;
}

/** The limits of live migrations, and those of moves between cells; without these, none of them starts. */
export type AllCaps = Caps & { readonly cells?: Caps };

/** Which limit keeps the task from starting, by the limits of its kind; null when a slot is free. */
export function capOf(
  held: Slots,
  task: TaskFacts,
  destination: string,
  caps: AllCaps,
): ReasonOf<WaitReasonCode> | null {
  const move = slotOf(task, destination);
  if (task.step.phase !== 'cell') return capReached(held.live, move, caps);
  if (caps.cells === undefined) return reason('cells-off', 'no concurrency limits are set for moves between cells');
  return capReached(held.cells, move, caps.cells);
}

/**
 * The limit that a start on the log exceeds, by the starts of other aggregates that are before it on the log; null: none. A start is appended on
 * the state of its own aggregate: two that touch one VM, host or group in two aggregates may both be. Of those the later one is not sent.
 */
export function exceeded(state: KnownOf<'tasks'>, taskId: string, caps: AllCaps): ReasonOf<WaitReasonCode> | null {
  const task = state.tasks.get(taskId);
  const slot = task?.slot ?? null;
  if (task === undefined || slot === null) return null;
  const before = ({ tasks }: Pick<AggregateState, 'tasks'>): ReadonlyMap<string, TaskFacts> =>
    new Map([...tasks].filter(([, one]) => one.slot !== null && one.slot.sequence < slot.sequence));
  const elsewhere = state.elsewhere.map((other) => ({ ...other, tasks: before(other) }));
  if (elsewhere.every(({ tasks }) => tasks.size === 0)) return null;
  // That of the aggregate is held by the append.
  const withoutTotal = <C extends Caps>(of: C): C => ({ ...of, maxConcurrentMigrations: Number.POSITIVE_INFINITY });
  const { cells, ...live } = caps;
  const shared = { ...withoutTotal(live), ...(cells === undefined ? {} : { cells: withoutTotal(cells) }) };
  return capOf(slots({ tasks: before(state), elsewhere }), task, slot.destination, shared);
}

/** The slot that a task needs for its next attempt. */
const slotOf = ({ step }: TaskFacts, destination: string): SlotUse => ({
  serverId: step.serverId,
  from: step.from,
  destination,
  groups: step.groups.map(({ id }) => id),
});

/** The attempt that an executor has leased: the part of `migration.requested` that the rule needs. */
export type AttemptToStart = {
  readonly taskId: string;
  readonly attempt: number;
  readonly destination: string;
};

/** May this attempt start now? Everything but `start` says why not. */
export type StartVerdict =
  | { readonly verdict: 'start' }
  /** Not yet: come again. `untilMs`: not before then; null: after the next change of the log. */
  | { readonly verdict: 'wait'; readonly reason: ReasonOf<WaitReasonCode>; readonly untilMs: number | null }
  /** Never: to be recorded as the task's final result. */
  | { readonly verdict: 'end'; readonly errorType: 'Cancelled'; readonly reason: ReasonOf<TaskReasonCode> }
  /** This attempt is started on the log, by the named executor: a successor follows it and starts nothing. */
  | { readonly verdict: 'started'; readonly task: TaskFacts }
  /**
   * This attempt or its task has ended, or was never released: nothing is started. Where the task waits for its next
   * attempt (`retryPending`), that attempt's message may be missing still.
   */
  | { readonly verdict: 'over'; readonly task: TaskFacts | null; readonly reason: Reason };

/** The limits of moves at one time, and the attempts that count towards them before the log has them. */
export type Places = {
  readonly caps: AllCaps;
  /** Attempts that this process is about to start: they hold slots as well. */
  readonly soon?: readonly AttemptToStart[];
};

/**
 * The start rule of an attempt: due, dependencies completed, not expired, its window open, not paused, not cancelled, not quarantined
 * since, caps free. Quarantine lasts as the options on the log say.
 */
export function mayStart(
  state: AggregateState,
  attempt: AttemptToStart,
  nowMs: number,
  { caps, soon = [] }: Places,
): StartVerdict {
  const task = state.tasks.get(attempt.taskId);
  const plan = task === undefined ? undefined : state.plans.get(task.planId);
  if (task === undefined || plan === undefined)
    return over(null, 'unknown-task', 'no released, unfinished plan on the log has this task');
  const ended = notCurrent(task, attempt) ?? neverStarts(state, task, plan, nowMs) ?? notYet(state, task, nowMs);
  if (ended !== null) return ended;
  const reached = capOf(slots(state, soon), task, attempt.destination, caps);
  return reached === null ? { verdict: 'start' } : { verdict: 'wait', reason: reached, untilMs: null };
}

/** An attempt that is not the one to start by the log; null: it is. */
function notCurrent(task: TaskFacts, { attempt }: AttemptToStart): StartVerdict | null {
  if (task.end !== null) return over(task, 'task-ended', `the task is ${task.status}`);
  if (attempt < task.attempt) return over(task, 'attempt-ended', `attempt ${task.attempt} is the current one`);
  if (attempt > task.attempt)
    return over(task, 'attempt-unknown', `attempt ${task.attempt} is the current one and has not ended`);
  return task.status === 'started' ? { verdict: 'started', task } : null;
}

/** Why a task ends without a start; null: nothing ends it. */
function neverStarts(state: AggregateState, task: TaskFacts, plan: PlanFacts, nowMs: number): StartVerdict | null {
  const asked = task.cancelAsked ?? task.abortAsked ?? task.closeAsked;
  if (asked !== null) return end('cancelled', `cancelled by ${asked.by}`, { commandId: asked.commandId });
  const expiresMs = notAfterMs(plan);
  if (expiresMs === null)
    return end('no-options', 'the log names no options for this plan: how long it holds is unknown');
  if (nowMs > expiresMs) return end('expired', 'the plan is too old to start this move', { notAfterMs: expiresMs });
  const { startBefore = null } = task.step;
  if (windowClosed(task.step, nowMs))
    return end('window-closed', `its window closed at ${startBefore}`, { startBefore });
  const unmet = neverMet(state, task);
  if (unmet !== null) return unmet;
  const quarantine = quarantined(state, task.step.serverId, nowMs, state.configured?.options ?? UNTIL_RELEASED);
  if (quarantine === null) return null;
  return end(quarantineCode(quarantine), `the VM is in quarantine: ${quarantine.text}`);
}

/** A step before it that will not complete any more; null: there is none. */
function neverMet(state: AggregateState, { step }: TaskFacts): StartVerdict | null {
  for (const id of step.dependsOn) {
    const before = state.tasks.get(id);
    if (before?.status === 'failed') return end('dependency-failed', `${id} failed`, { taskId: id });
    if (before?.status === 'skipped') return end('dependency-skipped', `${id} was skipped`, { taskId: id });
    if (before === undefined) return end('dependency-unknown', `${id} was not released`, { taskId: id });
  }
  return null;
}

/** Why a task waits, apart from a free slot; null: it may start. */
function notYet(state: AggregateState, task: TaskFacts, nowMs: number): StartVerdict | null {
  const paused = pauseInForce(state);
  if (paused !== null) return wait('paused', `paused by ${paused.by}`);
  if (nowMs < task.notBeforeMs) return wait('not-due', 'not due yet', task.notBeforeMs);
  for (const id of task.step.dependsOn)
    if (state.tasks.get(id)?.status !== 'completed') return wait('dependency', `waits for ${id}`, null, { taskId: id });
  return null;
}

const UNTIL_RELEASED: Pick<EngineOptions, 'instanceQuarantineSeconds'> = { instanceQuarantineSeconds: -1 };

/** An attempt that is over starts nothing, and its reason is recorded nowhere. */
type OverCode = 'unknown-task' | 'task-ended' | 'attempt-ended' | 'attempt-unknown';

const wait = (
  code: WaitReasonCode,
  text: string,
  untilMs: number | null = null,
  detail?: Reason['detail'],
): StartVerdict => ({
  verdict: 'wait',
  reason: reason(code, text, detail),
  untilMs,
});
const end = (code: TaskReasonCode, text: string, detail?: Reason['detail']): StartVerdict => ({
  verdict: 'end',
  errorType: 'Cancelled',
  reason: reason(code, text, detail),
});
const over = (task: TaskFacts | null, code: OverCode, text: string): StartVerdict => ({
  verdict: 'over',
  task,
  reason: reason(code, text),
});
const reason = <C extends WaitReasonCode | TaskReasonCode | OverCode>(
  code: C,
  text: string,
  detail?: Reason['detail'],
): ReasonOf<C> => (detail === undefined ? { code, text } : { code, text, detail });
