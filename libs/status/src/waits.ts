/** Why each open task, plan and drain waits, from the folded log. Pure. */
import { ALL, clause, count, iso } from '@kronos/contracts';
import {
  type AggregateState,
  approvalOf,
  type DrainFacts,
  drainLeft,
  expectedDuration,
  inFlight,
  optionsOf,
  type PlanFacts,
  type TaskFacts,
  waitingPlan,
} from '@kronos/projections';
import { drainStuck, gibOfMove } from '@kronos/rules';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** A move may take this many times the longest that former moves like it took. */
const SLOWER = 3;

/** A task, a plan or the drain of a host that has not ended. */
export type Waiting = { readonly kind: 'task' | 'plan' | 'drain'; readonly id: string };

/** `of`: the thing that is waited for, by its name. `who`: what waits. `aggregate`: where. */
type Words = { readonly of: string; readonly who: string; readonly aggregate: string };

/** The kinds of things that are waited for: how long that is usual (ms; null: as long as it takes), and what to do when it takes longer. */
const waitTable = {
  migration: row(
    4 * HOUR,
    ({ of }) => `Nova's migration ${of}`,
    ({ who }) => `Look at the migration in Nova, and stop it with \`kronos abort ${who}\`.`,
  ),
  verification: row(
    null,
    ({ of }) => `the checks of the VM on ${of}`,
    ({ who }) => `Run \`kronos cells confirm ${who}\` or \`kronos cells revert ${who}\`.`,
  ),
  due: row(
    null,
    ({ of }) => `its time, ${of}`,
    () => 'Nothing to do.',
  ),
  task: row(
    null,
    ({ of }) => `the move ${of}`,
    () => 'Look at that move: `kronos tasks`.',
  ),
  slot: row(
    null,
    ({ of }) => `a free slot, which the move ${of} holds`,
    () => 'Look at that move: `kronos tasks`.',
  ),
  executor: row(
    2 * MINUTE,
    ({ of }) => `an executor of ${of}`,
    ({ of }) => `Start an executor that serves ${of}, or look at its log.`,
  ),
  planner: row(
    MINUTE,
    ({ of }) => `a planner of ${of}`,
    ({ of }) => `Start a planner for ${of}, or look at its log.`,
  ),
  resume: row(
    HOUR,
    ({ of }) => `the end of the pause of ${of}`,
    ({ of }) => `Run \`kronos resume ${of === ALL ? '--all' : `-a ${of}`}\`.`,
  ),
  approval: row(
    10 * MINUTE,
    ({ of }) => `an answer to the plan ${of}`,
    ({ of }) => `Run \`kronos approve ${of}\` or \`kronos reject ${of}\`.`,
  ),
  decision: row(
    10 * MINUTE,
    ({ of }) => `the next decision on ${of}`,
    () => 'Look at the scorer and the planner: `kronos status`.',
  ),
  member: row(
    10 * MINUTE,
    ({ of, aggregate }) =>
      `${of} to be in ${aggregate} with its nova-compute up, where the last decision did not find it`,
    ({ of, aggregate }) =>
      `Start its nova-compute; if it has left the aggregate, run \`openstack aggregate add host ${aggregate} ${of}\`, or \`kronos undrain ${of}\` to end the drain.`,
  ),
  gate: row(
    15 * MINUTE,
    ({ of }) => `the end of the gate ${of}`,
    ({ aggregate }) => `Remove the cause of the gate: \`kronos explain cycle -a ${aggregate}\`.`,
  ),
  vm: row(
    2 * HOUR,
    ({ of }) => of,
    ({ who }) => `Look at the VM: \`kronos vms --host ${who}\`.`,
  ),
  empty: row(
    5 * MINUTE,
    ({ of }) => `Nova, which still names ${of} for a server or an unfinished migration`,
    ({ of }) =>
      `\`openstack server list --all-projects --host ${of}\` and \`openstack server migration list --host ${of}\` show what is left on it.`,
  ),
  service: row(
    2 * MINUTE,
    ({ of }) => `an executor to change the nova-compute service of ${of}`,
    () => 'Look at the log of the executor.',
  ),
  undrain: row(
    null,
    ({ of }) => `\`kronos undrain ${of}\``,
    ({ of }) => `Run \`kronos undrain ${of}\` after the maintenance.`,
  ),
} as const satisfies Record<string, Row>;

export type WaitCode = keyof typeof waitTable;

type Row = {
  readonly usualMs: number | null;
  readonly text: (words: Words) => string;
  readonly remedy: (words: Words) => string;
};
function row(usualMs: Row['usualMs'], text: Row['text'], remedy: Row['remedy']): Row {
  return { usualMs, text, remedy };
}

export type Wait = {
  readonly code: WaitCode;
  /** Name of the thing. */
  readonly of: string;
  /** ms since the epoch */
  readonly sinceMs: number;
  /** The wait is longer than expected from then on (ms since the epoch); null: never. */
  readonly lateMs: number | null;
};

/** Every task, plan and drain has one of these states, or has ended. */
export type WaitState = { readonly about: Waiting } & (
  | { readonly state: 'waits'; readonly wait: Wait }
  /** Only a person can help. */
  | { readonly state: 'stuck'; readonly reasons: readonly { readonly code: string; readonly text: string }[] }
);

/** A wait in words, with what to do about it. */
export function waitWords(aggregate: string, about: Waiting, { code, of }: Wait): { text: string; remedy: string } {
  const words = { of, who: about.id, aggregate };
  const { text, remedy } = waitTable[code];
  return { text: text(words), remedy: remedy(words) };
}

/** The states of all tasks, plans and drains that have not ended. */
export function waitStates(state: AggregateState, nowMs: number): WaitState[] {
  return [
    ...[...state.plans.values()].flatMap((plan) => planWaits(state, plan, nowMs)),
    ...inFlight(state).map((task) => taskWaits(state, task, nowMs)),
    ...[...state.drains.values()].map((drain) => drainWaits(state, drain, nowMs)),
  ];
}

/** The states that wait for longer than expected. */
export const lateWaits = (state: AggregateState, nowMs: number): { readonly about: Waiting; readonly wait: Wait }[] =>
  waitStates(state, nowMs).flatMap((one) =>
    one.state === 'waits' && one.wait.lateMs !== null && nowMs > one.wait.lateMs
      ? [{ about: one.about, wait: one.wait }]
      : [],
  );

/** @returns makes the states of one thing that waits; `usualMs` where it differs from the kind's own */
const waitOf =
  (about: Waiting) =>
  (code: WaitCode, of: string, sinceMs: number, usualMs: number | null = waitTable[code].usualMs): WaitState => ({
    about,
    state: 'waits',
    wait: { code, of, sinceMs, lateMs: usualMs === null ? null : sinceMs + usualMs },
  });

/** Of the tasks of a released plan, each has a state of its own. */
function planWaits(state: AggregateState, plan: PlanFacts, nowMs: number): WaitState[] {
  const about = { kind: 'plan', id: plan.id } as const;
  const wait = waitOf(about);
  if (plan.release === null) {
    const { open, expiresAtMs } = approvalOf(plan, nowMs);
    // Its expiry ends it, and the next decision says so.
    return [open ? wait('approval', plan.id, plan.decidedAtMs, null) : wait('decision', state.aggregate, expiresAtMs)];
  }
  return plan.dispatched === null ? [wait('planner', state.aggregate, plan.release.atMs)] : [];
}

function pauseOf({ paused, aggregate }: AggregateState): { readonly of: string; readonly atMs: number } | null {
  if (paused.here !== null) return { of: aggregate, atMs: paused.here.atMs };
  return paused.everywhere === null ? null : { of: ALL, atMs: paused.everywhere.atMs };
}

function taskWaits(state: AggregateState, task: TaskFacts, nowMs: number): WaitState {
  const about = { kind: 'task', id: task.id } as const;
  const wait = waitOf(about);
  const { slot, step, notBeforeMs } = task;
  if (slot !== null) {
    const verifying = slot.cell?.verifying ?? null;
    if (verifying !== null) return wait('verification', verifying.host, verifying.atMs);
    const usual = expectedDuration(state, { ...slot, gib: gibOfMove(slot) }, [])?.interval?.highMs ?? null;
    const usualMs = usual === null ? waitTable.migration.usualMs : Math.max(10 * MINUTE, SLOWER * usual);
    return wait(
      'migration',
      slot.migrationId === null ? '(not seen yet)' : String(slot.migrationId),
      slot.startedAtMs,
      usualMs,
    );
  }
  const pause = pauseOf(state);
  if (pause !== null) return wait('resume', pause.of, Math.max(pause.atMs, notBeforeMs));
  if (notBeforeMs > nowMs) return wait('due', iso(notBeforeMs), nowMs);
  const before = step.dependsOn.find((id) => state.tasks.get(id)?.end === null);
  if (before !== undefined) return wait('task', before, notBeforeMs);
  const holder = [...state.tasks.values()].find((other) => other.slot !== null && other.end === null);
  if (holder !== undefined) return wait('slot', holder.id, notBeforeMs);
  return wait('executor', state.aggregate, Math.max(notBeforeMs, lastEndMs(state, task)));
}

/** The last time at which something happened that may have let the task start. */
function lastEndMs({ tasks, lastMoveEnd }: AggregateState, { step }: TaskFacts): number {
  const ends = step.dependsOn.map((id) => tasks.get(id)?.end?.atMs ?? Number.NEGATIVE_INFINITY);
  return Math.max(lastMoveEnd?.atMs ?? Number.NEGATIVE_INFINITY, ...ends);
}

function drainWaits(state: AggregateState, drain: DrainFacts, nowMs: number): WaitState {
  const { host, asked, undrainAsked, disabled, drained } = drain;
  const about = { kind: 'drain', id: host } as const;
  const wait = waitOf(about);
  if (undrainAsked !== null) return wait('service', host, undrainAsked.atMs);
  if (drained !== null) return wait('undrain', host, drained.atMs);
  const pause = pauseOf(state);
  if (disabled === null)
    return pause === null
      ? wait('service', host, asked.atMs)
      : wait('resume', pause.of, Math.max(pause.atMs, asked.atMs));
  const moving = inFlight(state).find(({ step, destination }) => step.from === host || destination === host);
  if (moving !== undefined) return wait('task', moving.id, moving.slot?.startedAtMs ?? moving.notBeforeMs);
  const left = drainLeft(drain);
  if (drain.progress !== null && left === 0)
    return wait('empty', host, drain.progress.departures.at(-1) ?? drain.progress.sinceMs);
  if (pause !== null) return wait('resume', pause.of, Math.max(pause.atMs, disabled.atMs));
  const answer = waitingPlan(state, nowMs);
  if (answer?.open === true) return wait('approval', answer.plan.id, answer.plan.decidedAtMs);
  return leaving(state, drain, about);
}

/** When a decision last said how far a drain is, or may have done so first. */
const toldMs = ({ progress, disabled }: DrainFacts): number =>
  progress?.atMs ?? disabled?.atMs ?? Number.POSITIVE_INFINITY;

/** Whether a later decision does not name it: a decision names every disabled host of the aggregate that is up. */
const untold = ({ decided }: AggregateState, drain: DrainFacts): boolean =>
  decided !== null && decided.outcome !== 'gated' && decided.snapshotMs > toldMs(drain);

/** A drain of a disabled host from which nothing moves now. */
function leaving(state: AggregateState, drain: DrainFacts, about: Waiting): WaitState {
  const { decided, aggregate } = state;
  const { progress, disabled, host } = drain;
  const wait = waitOf(about);
  if (untold(state, drain)) return wait('member', host, toldMs(drain));
  const gated = decided?.outcome === 'gated' ? decided.reason.code : null;
  if (progress === null) {
    const sinceMs = disabled?.atMs ?? 0;
    return gated === null ? wait('decision', aggregate, sinceMs) : wait('gate', gated, sinceMs);
  }
  const { atMs, sinceMs, stuck, waits } = progress;
  if (drainStuck(progress)) return { about, state: 'stuck', reasons: stuck.map(({ reason }) => reason) };
  if (gated !== null) return wait('gate', gated, atMs);
  const [first] = progress.state === 'running' ? waits : [];
  if (first === undefined) return wait('decision', aggregate, atMs);
  const more = first.count > 1 ? ` and ${count(first.count - 1, 'more VM')}` : '';
  const of = `${first.serverName}${more}: ${clause(first.text)}`;
  return wait('vm', of, sinceMs, vmUsualMs(state, first.code));
}

/** How long a VM may usually be held for a reason that ends by itself. */
function vmUsualMs(state: AggregateState, code: string): number | null {
  const { instanceCooldownSeconds, breakerDurationSeconds } = optionsOf(state);
  switch (code) {
    // It grows with the moves of a VM up to a day.
    case 'vm-cooling-down':
      return 2 * instanceCooldownSeconds * SECOND + MINUTE;
    case 'host-broken':
      return 2 * breakerDurationSeconds * SECOND + MINUTE;
    case 'vm-outside-window':
      return null;
    case 'vm-busy':
      return 15 * MINUTE;
    default:
      return waitTable.vm.usualMs;
  }
}

/** Whether the thing that is waited for exists: a wait for nothing never ends. */
export const waitExists = (state: AggregateState, { code, of }: Wait, nowMs: number): boolean =>
  existence[code]?.(state, of, nowMs) ?? of !== '';

type Exists = (state: AggregateState, of: string, nowMs: number) => boolean;
const isDrained: Exists = ({ drains }, of) => drains.has(of);

/** Kinds whose things the log knows. */
const existence: Partial<Record<WaitCode, Exists>> = {
  task: ({ tasks }, of) => tasks.get(of)?.end === null,
  slot: ({ tasks }, of) => (tasks.get(of)?.slot ?? null) !== null,
  approval({ plans }, of, nowMs) {
    const plan = plans.get(of);
    return plan !== undefined && plan.release === null && approvalOf(plan, nowMs).open;
  },
  resume: ({ paused }, of) => (of === ALL ? paused.everywhere : paused.here) !== null,
  gate: ({ decided }, of) => decided?.outcome === 'gated' && decided.reason.code === of,
  member(state, of) {
    const drain = state.drains.get(of);
    return drain !== undefined && untold(state, drain);
  },
  empty: isDrained,
  service: isDrained,
  undrain: isDrained,
};
