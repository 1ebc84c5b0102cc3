import {
  attemptIn,
  type Course,
  type CycleDecided,
  isCancelled,
  type LogEvent,
  makesRoom,
  moveEnd,
  type PlanLoads,
  type PlanProposed,
  planOfTask,
  type Step,
  type StoredEvent,
  timeOf,
  took,
} from '@kronos/contracts';
import {
  createFolder,
  type FinishedPlan,
  type LogState,
  type PlanFacts,
  pacesOfAll,
  planTime,
  startable,
  type TaskFacts,
} from '@kronos/projections';
import type { Estimate } from '@kronos/rules';
import { decisionIn, proposalIn, type Range } from './history.ts';

/** The state of a step. */
type StepState =
  | 'dryRun'
  /** The window was closed when the plan was recorded, or had closed when the plan was released. */
  | 'outsideWindow'
  | 'proposed'
  | 'rejected'
  /** The plan ended without it: other steps were approved, or none. */
  | 'letGo'
  | 'waiting'
  | 'migrating'
  | 'retrying'
  | 'completed'
  /** Completed, and something is not as it should be. */
  | 'warned'
  /** Completed or failed, and its server is in ERROR. */
  | 'damaged'
  /** Ended because a person or the course of things took its reason away: nothing went wrong. */
  | 'cancelled'
  | 'failed'
  | 'skipped';

export type StepRecord = Step & {
  readonly state: StepState;
  /** A note from its last event beyond the state. */
  readonly note: string;
  /** When it completed, failed or was skipped; null: it has not ended. */
  readonly endedAtMs: number | null;
  /** The last event of its task; null: it has not ended. */
  readonly ended: 'completed' | 'failed' | 'skipped' | null;
  /** The number and the destination of its last attempt; null: it had none. */
  readonly attempt: number | null;
  readonly destination: string | null;
};

const NOT_BEGUN = { note: '', endedAtMs: null, ended: null, attempt: null, destination: null } as const;

/** Values of hosts in the order of the policies; null: there is none. */
type HostsBefore = {
  readonly policies: readonly string[];
  readonly hosts: readonly { readonly host: string; readonly values: readonly (number | null)[] }[];
};

/** A plan and its outcome, by the log. */
export type PlanRecord = {
  readonly id: string;
  readonly aggregate: string;
  /** Of its decision on the log. */
  readonly sequence: number;
  readonly decidedAtMs: number;
  /** `cells`: a plan between cells. `capacity`: one that makes room for new VMs. */
  readonly kind: 'cycle' | 'cells' | 'capacity';
  readonly outcome: 'dryRun' | 'outsideWindow' | 'waiting' | 'running' | FinishedPlan['outcome'];
  readonly releasedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly steps: readonly StepRecord[];
  /** How long the moves take that are not over, by the newest paces; null: none is to come. */
  readonly time: Estimate | null;
  readonly planner: string;
  readonly plannerVersion: string;
  readonly combinedBefore: number | null;
  readonly combinedAfter: number | null;
  readonly lowerBound: number | null;
  readonly shareOfPossible: number | null;
  /** The course when it was made, its own steps included; null: the budget reaches the targets, or no course was found. */
  readonly course: Course | null;
  /** The loads of the hosts when it was made; null: it does not say. */
  readonly loads: PlanLoads | null;
  /** The loads of its hosts before it; null: the log does not say. */
  readonly hostsBefore: HostsBefore | null;
};

type Tracked = {
  readonly sequence: number;
  readonly atMs: number;
  readonly event: CycleDecided | PlanProposed;
  /** Until it is over. */
  open: boolean;
  facts: PlanFacts | null;
  finished: FinishedPlan | null;
  /** The last event about each task. */
  readonly last: Map<string, LogEvent>;
  /** When each task ended. */
  readonly endsMs: Map<string, number>;
};

const TOUCHES: ReadonlySet<string> = new Set([
  'cycle.decided',
  'plan.proposed',
  'plan.approved',
  'plan.rejected',
  'plan.dispatched',
  'migration.completed',
  'migration.failed',
  'migration.skipped',
]);

const OVER: ReadonlySet<string> = new Set(['migration.completed', 'migration.failed', 'migration.skipped']);

/** The plans of a range and their outcomes, oldest first; read from the log's first event. */
export async function plansOf(
  events: AsyncIterable<StoredEvent>,
  range: Range,
  wanted: (planId: string) => boolean = () => true,
): Promise<PlanRecord[]> {
  const tracked = new Map<string, Tracked>();
  const open = new Set<string>();
  const folder = createFolder();
  for await (const stored of events) {
    folder.apply(stored);
    const { event, sequence } = stored;
    if (event.type === 'unreadable') continue;
    const made = planIn(range, stored);
    if (made !== null && wanted(made.id) && !tracked.has(made.id)) {
      const { release } = made.event.data;
      const released = release === 'released' || release === 'proposed';
      tracked.set(made.id, {
        sequence,
        atMs: timeOf(stored),
        event: made.event,
        open: released,
        facts: null,
        finished: null,
        last: new Map(),
        endsMs: new Map(),
      });
      if (released) open.add(made.id);
    }
    if ('taskId' in event.data) note(tracked, stored, event.data.taskId);
    if (open.size > 0 && TOUCHES.has(event.type)) follow(tracked, open, folder.snapshot());
  }
  const end = folder.snapshot();
  return [...tracked.values()].map((plan) => recordOf(plan, end));
}

/** The plan that an event makes about a snapshot of the range; null where it makes none. */
function planIn(range: Range, stored: StoredEvent): { id: string; event: CycleDecided | PlanProposed } | null {
  const { event } = stored;
  if (event.type === 'plan.proposed')
    return event.data.steps.length > 0 && proposalIn(range, stored) !== null ? { id: event.data.planId, event } : null;
  if (event.type !== 'cycle.decided' || event.data.plan === null) return null;
  return decisionIn(range, stored) === null ? null : { id: event.data.plan.id, event };
}

function note(tracked: ReadonlyMap<string, Tracked>, stored: StoredEvent, taskId: string): void {
  const { event } = stored;
  if (event.type === 'unreadable') return;
  const plan = tracked.get('planId' in event.data ? event.data.planId : planOfTask(taskId));
  plan?.last.set(taskId, event);
  if (OVER.has(event.type)) plan?.endsMs.set(taskId, timeOf(stored));
}

/** Keeps the last facts of plans that are open, and how those ended that are not. */
function follow(tracked: ReadonlyMap<string, Tracked>, open: Set<string>, state: LogState): void {
  for (const id of open) {
    const plan = tracked.get(id);
    const facts = plan === undefined ? undefined : state.aggregates.get(plan.event.aggregate);
    if (plan === undefined || facts === undefined) continue;
    plan.facts = facts.plans.get(id) ?? plan.facts;
    plan.finished = facts.plans.has(id) ? null : (facts.recentPlans.findLast((p) => p.id === id) ?? null);
    if (plan.finished !== null) open.delete(id);
  }
}

const loadsOf = ({ data }: CycleDecided | PlanProposed): PlanLoads | null =>
  ('plan' in data ? data.plan?.loads : undefined) ?? null;

const courseOf = ({ data }: CycleDecided | PlanProposed): Course | null =>
  ('plan' in data ? data.course : undefined) ?? null;

/** Values of hosts: by the plan where its steps have alternates, else by its decision. */
function hostsBefore({ data }: CycleDecided | PlanProposed): HostsBefore | null {
  if (!('plan' in data) || data.plan === null) return null;
  const { plan, before, loads } = data;
  if (plan.loads !== undefined)
    return { policies: plan.loads.policies.map(({ policy }) => policy), hosts: plan.loads.hosts };
  if (loads === undefined) return null;
  const policies = before.policies.map(({ policy }) => policy).filter((p) => loads.some(({ values }) => p in values));
  const hosts = loads.map(({ host, values }) => ({ host, values: policies.map((p) => values[p] ?? null) }));
  return { policies, hosts };
}

/** The outcome of a plan of these steps. */
function outcomeOf({ atMs, event, facts, finished }: Tracked, steps: readonly Step[]): PlanRecord['outcome'] {
  const ended = unreleased(event.data.release) ?? finished?.outcome;
  if (ended !== undefined) return ended;
  if (facts === null && startable(steps, atMs).length === 0) return 'outsideWindow';
  return facts?.state === 'proposed' ? 'waiting' : 'running';
}

function recordOf(tracked: Tracked, end: LogState): PlanRecord {
  const { sequence, atMs, event, facts, finished } = tracked;
  const { data } = event;
  const made = madeBy(event);
  const outcome = outcomeOf(tracked, made.steps);
  const tasks = end.aggregates.get(event.aggregate)?.tasks;
  const released = new Set(facts?.tasks);
  const releasedAtMs = finished?.releasedAtMs ?? facts?.release?.atMs ?? null;
  const late = new Set(made.steps).difference(new Set(startable(made.steps, releasedAtMs ?? atMs)));
  const steps = made.steps.map((step) =>
    stepRecord(step, tracked, { outcome, released, late }, tasks?.get(step.taskId)),
  );
  return {
    id: made.id,
    kind: made.kind,
    aggregate: event.aggregate,
    sequence,
    decidedAtMs: atMs,
    outcome,
    releasedAtMs,
    endedAtMs: finished?.endedAtMs ?? null,
    steps,
    time: timeOfRest(event, steps, end),
    planner: made.planner,
    plannerVersion: data.plannerVersion,
    combinedBefore: made.combinedBefore,
    combinedAfter: made.combinedAfter,
    lowerBound: made.lowerBound,
    shareOfPossible: made.shareOfPossible,
    course: courseOf(event),
    loads: loadsOf(event),
    hostsBefore: hostsBefore(event),
  };
}

type Made = Pick<
  PlanRecord,
  'id' | 'kind' | 'planner' | 'combinedBefore' | 'combinedAfter' | 'lowerBound' | 'shareOfPossible'
> & { readonly steps: readonly Step[] };

const UNMEASURED = { planner: '', combinedAfter: null, lowerBound: null, shareOfPossible: null } as const;

/** The plan of an event. A plan that people asked for is measured by no policy. */
function madeBy(event: CycleDecided | PlanProposed): Made {
  if (event.type === 'plan.proposed') {
    const { planId: id, steps } = event.data;
    return { ...UNMEASURED, id, kind: makesRoom(event) ? 'capacity' : 'cells', steps, combinedBefore: null };
  }
  const { plan, before, snapshotId } = event.data;
  const common = { kind: 'cycle', combinedBefore: before.combined } as const;
  if (plan === null) return { ...UNMEASURED, ...common, id: snapshotId, steps: [] };
  const { id, steps, planner, after, lowerBound, shareOfPossible } = plan;
  return { ...common, id, steps, planner, combinedAfter: after.combined, lowerBound, shareOfPossible };
}

/** The outcome of a plan, and the tasks that were made of its steps. */
type Released = {
  readonly outcome: PlanRecord['outcome'];
  readonly released: ReadonlySet<string>;
  /** The steps whose window closed before the release. */
  readonly late: ReadonlySet<Step>;
};

function stepRecord(
  step: Step,
  { facts, last, endsMs }: Tracked,
  plan: Released,
  task: TaskFacts | undefined,
): StepRecord {
  const event = last.get(step.taskId);
  const unstarted = neverStarted(step, facts, plan);
  if (unstarted !== null) return { ...step, ...NOT_BEGUN, state: unstarted };
  const { attempt = null, destination = null } = (event && attemptIn(event)) ?? {};
  const common = { ...step, note: noteOf(event), attempt, destination };
  if (task !== undefined && task.end === null) {
    const waits = task.status === 'retryPending' ? 'retrying' : 'waiting';
    const state = task.slot !== null ? 'migrating' : waits;
    return { ...common, state, endedAtMs: null, ended: null };
  }
  const endedAtMs = endsMs.get(step.taskId) ?? null;
  return { ...common, state: endOf(event), endedAtMs, ended: endedIn(event) };
}

/** The state of a step of which no task was made; null: one was. */
function neverStarted(step: Step, facts: PlanFacts | null, { outcome, released, late }: Released): StepState | null {
  if (outcome === 'dryRun' || outcome === 'outsideWindow') return outcome;
  if (facts?.rejected.includes(step.step)) return 'rejected';
  if (released.has(step.taskId)) return null;
  if (late.has(step)) return 'outsideWindow';
  return outcome === 'waiting' ? 'proposed' : outcome === 'rejected' ? 'rejected' : 'letGo';
}

function endedIn(event: LogEvent | undefined): StepRecord['ended'] {
  switch (event?.type) {
    case 'migration.completed':
      return 'completed';
    case 'migration.failed':
      return 'failed';
    case 'migration.skipped':
      return 'skipped';
    default:
      return null;
  }
}

/** How well a task ended, by its last event. */
function endOf(event: LogEvent | undefined): StepState {
  switch (event?.type) {
    case 'migration.completed':
    case 'migration.failed': {
      const end = moveEnd(event);
      if (end !== 'plain') return end;
      if (event.type === 'migration.completed') return 'completed';
      return isCancelled(event) ? 'cancelled' : 'failed';
    }
    case 'migration.skipped':
      return 'skipped';
    default:
      return 'waiting';
  }
}

const REST: ReadonlySet<StepState> = new Set([
  'dryRun',
  'outsideWindow',
  'proposed',
  'waiting',
  'migrating',
  'retrying',
]);

/** Of live migrations: moves between cells are another kind, and their paces are not measured. */
function timeOfRest(event: CycleDecided | PlanProposed, steps: readonly StepRecord[], end: LogState): Estimate | null {
  const state = end.aggregates.get(event.aggregate);
  if (state === undefined || (event.type === 'plan.proposed' && !makesRoom(event))) return null;
  return planTime(
    state,
    steps.filter(({ state: of }) => REST.has(of)),
    pacesOfAll(end),
  );
}

/** The outcome of a plan that its decision neither released nor proposed; null for others. */
const unreleased = (release: CycleDecided['data']['release']): 'dryRun' | 'outsideWindow' | null =>
  release === 'dryRun' ? 'dryRun' : release === 'none' ? 'outsideWindow' : null;

function noteOf(event: LogEvent | undefined): string {
  switch (event?.type) {
    case 'migration.started':
      return `attempt ${event.data.attempt} to ${event.data.destination}`;
    case 'migration.completed': {
      const warnings = event.data.warnings.map(({ text }) => `; ${text}`).join('');
      return `on ${event.data.host}${took(event.data.nova?.totalMs)}${warnings}`;
    }
    case 'migration.failed':
      return isCancelled(event) ? event.data.reason.text : `${event.data.errorType}: ${event.data.reason.text}`;
    case 'migration.skipped':
      return event.data.reason.text;
    default:
      return '';
  }
}
