/** Plans from their proposal or release until all of their tasks have ended. */
import { type LogEventOf, type Step, timeMs } from '@kronos/contracts';
import { approvalOf } from './approvals.ts';
import { asked } from './controls.ts';
import { releaseBegan } from './cooldown.ts';
import type { StateDraft, WritableFacts } from './draft.ts';
import type { Effects } from './effects.ts';
import {
  type FinishedPlan,
  type PlanFacts,
  type PlanRelease,
  RECENT_PLANS,
  type StepFacts,
  type TaskFacts,
} from './state.ts';
import { putTask, tasksReleased } from './tasks.ts';

/** A plan of which nothing has been released yet. */
export const newPlan = (
  plan: Pick<
    PlanFacts,
    | 'id'
    | 'sequence'
    | 'decidedAtMs'
    | 'approvalTtlSeconds'
    | 'planTtlSeconds'
    | 'proposed'
    | 'loads'
    | 'cells'
    | 'capacity'
  >,
): PlanFacts => ({
  ...plan,
  state: 'proposed',
  rejected: [],
  release: null,
  dispatched: null,
  tasks: [],
  completed: 0,
  warned: 0,
  failed: 0,
  skipped: 0,
});

export function putPlan(draft: StateDraft, f: WritableFacts, plan: PlanFacts): void {
  f.plans = draft.put(f.plans, plan.id, plan);
}

/** Whether the window of a move has closed, so that nothing starts it any more. */
export const windowClosed = ({ startBefore }: Pick<Step, 'startBefore'>, nowMs: number): boolean =>
  startBefore !== undefined && nowMs >= timeMs(startBefore);

/** The steps that can still start at a time: without those whose window has closed, and without what depends on them. */
export function startable<S extends Numbered & Pick<Step, 'startBefore'>>(
  steps: readonly S[],
  atMs: number,
): readonly S[] {
  const closed = steps.filter((step) => windowClosed(step, atMs));
  if (closed.length === 0) return steps;
  const lost = new Set(
    withDependents(
      steps,
      closed.map(({ step }) => step),
    ),
  );
  return steps.filter((step) => !lost.has(step));
}

/** Seconds for which a plan waits for approval: as long as given, and at most until the last window of its steps closes. */
export function waitsSeconds(ttlSeconds: number, steps: readonly Pick<Step, 'startBefore'>[], atMs: number): number {
  const lastMs = Math.max(
    ...steps.map(({ startBefore }) => (startBefore === undefined ? Number.POSITIVE_INFINITY : timeMs(startBefore))),
  );
  return Math.min(ttlSeconds, Math.max(0, lastMs - atMs) / 1000);
}

/** Makes tasks of the given steps. The plan's other steps are dropped. */
export function releasePlan(
  draft: StateDraft,
  f: WritableFacts,
  plan: PlanFacts,
  { steps, approval }: { readonly steps: readonly StepFacts[]; readonly approval: PlanRelease['approval'] },
): void {
  const { sequence, atMs } = draft;
  tasksReleased(draft, f, plan, steps);
  releaseBegan(draft, f, plan, steps);
  if (f.waiting === plan.id) f.waiting = null;
  const tasks = steps.map((s) => s.taskId);
  putPlan(draft, f, { ...plan, state: 'released', release: { sequence, atMs, approval }, proposed: [], tasks });
}

/** Takes a plan and its tasks out of the state; people still see that it was there. */
export function closePlan(
  draft: StateDraft,
  f: WritableFacts,
  plan: PlanFacts,
  { outcome, endedAtMs }: Pick<FinishedPlan, 'outcome' | 'endedAtMs'>,
): void {
  f.plans = draft.remove(f.plans, [plan.id]);
  f.tasks = draft.remove(f.tasks, plan.tasks);
  if (f.waiting === plan.id) f.waiting = null;
  const finished: FinishedPlan = {
    id: plan.id,
    sequence: plan.sequence,
    outcome,
    decidedAtMs: plan.decidedAtMs,
    releasedAtMs: plan.release?.atMs ?? null,
    endedAtMs,
    tasks: plan.tasks.length,
    completed: plan.completed,
    warned: plan.warned,
    failed: plan.failed,
    skipped: plan.skipped,
  };
  f.recentPlans = [...f.recentPlans.slice(-(RECENT_PLANS - 1)), finished];
}

/** A plan ended without a release. */
export function refuse(
  draft: StateDraft,
  f: WritableFacts,
  plan: PlanFacts,
  { how, atMs }: { readonly how: 'rejected' | 'expired'; readonly atMs: number },
): void {
  // A plan between cells delays no other plan.
  if (plan.cells === undefined) f.lastRefusal = { planId: plan.id, atMs, how };
  closePlan(draft, f, plan, { outcome: how, endedAtMs: atMs });
}

/** Notes a task that ended. Its plan counts it, and is over with its last one. */
export function taskEnded(
  draft: StateDraft,
  f: WritableFacts,
  task: TaskFacts,
  count: 'completed' | 'failed' | 'skipped',
): void {
  putTask(draft, f, task);
  const plan = f.plans.get(task.planId);
  if (plan === undefined) return;
  const warned = plan.warned + (task.status === 'completed' && (task.end?.warnings.length ?? 0) > 0 ? 1 : 0);
  const next = { ...plan, [count]: plan[count] + 1, warned };
  putPlan(draft, f, next);
  closeIfDone(draft, f, next);
}

function closeIfDone(draft: StateDraft, f: WritableFacts, plan: PlanFacts): void {
  const done = plan.completed + plan.failed + plan.skipped >= plan.tasks.length;
  if (done && plan.dispatched !== null) closePlan(draft, f, plan, { outcome: 'done', endedAtMs: draft.atMs });
}

function dispatched(draft: StateDraft, event: LogEventOf<'plan.dispatched'>): void {
  const { atMs } = draft;
  const plan = draft.of(event.aggregate)?.plans.get(event.data.planId);
  if (plan === undefined || plan.state !== 'released' || plan.dispatched !== null) return;
  const f = draft.facts(event.aggregate);
  const next = { ...plan, dispatched: { sequence: draft.sequence, atMs, tasks: event.data.tasks } };
  putPlan(draft, f, next);
  closeIfDone(draft, f, next);
}

/** The reason of a plan that waits is gone. No cooldown follows: nobody refused it. */
function withdrawn(draft: StateDraft, event: LogEventOf<'plan.withdrawn'>): void {
  const plan = draft.of(event.aggregate)?.plans.get(event.data.planId);
  if (plan === undefined || plan.state !== 'proposed') return;
  closePlan(draft, draft.facts(event.aggregate), plan, { outcome: 'withdrawn', endedAtMs: draft.atMs });
}

function approved(draft: StateDraft, event: LogEventOf<'plan.approved'>): void {
  const { atMs } = draft;
  const { planId, steps: wanted } = event.data;
  for (const aggregate of draft.addressed(event.aggregate)) {
    const plan = draft.of(aggregate)?.plans.get(planId);
    if (plan === undefined || plan.state !== 'proposed') continue;
    if (!approvalOf(plan, atMs).open) continue;
    // Somebody turned dry_run on while the plan waited.
    if (draft.of(aggregate)?.configured?.options.dryRun !== false) continue;
    const chosen = startable(wanted === null ? plan.proposed : withDependencies(plan.proposed, wanted), atMs);
    if (chosen.length === 0) continue;
    releasePlan(draft, draft.facts(aggregate), plan, { steps: chosen, approval: asked(draft, event) });
  }
}

function rejected(draft: StateDraft, event: LogEventOf<'plan.rejected'>): void {
  const { atMs } = draft;
  const { planId, steps: unwanted } = event.data;
  for (const aggregate of draft.addressed(event.aggregate)) {
    const plan = draft.of(aggregate)?.plans.get(planId);
    if (plan === undefined || plan.state !== 'proposed') continue;
    if (!approvalOf(plan, atMs).open) continue;
    const gone = unwanted === null ? plan.proposed : withDependents(plan.proposed, unwanted);
    if (gone.length === 0) continue;
    const f = draft.facts(aggregate);
    const proposed = plan.proposed.filter((step) => !gone.includes(step));
    const numbers = [...plan.rejected, ...gone.map((s) => s.step)].sort((a, b) => a - b);
    const next = { ...plan, proposed, rejected: numbers };
    if (proposed.length === 0) refuse(draft, f, next, { how: 'rejected', atMs: draft.atMs });
    else putPlan(draft, f, next);
  }
}

type Numbered = Pick<Step, 'step' | 'taskId' | 'dependsOn'>;

/** The wanted steps and everything that they depend on, in step order. Steps that were rejected are not there to choose. */
function withDependencies<S extends Numbered>(steps: readonly S[], wanted: readonly number[]): readonly S[] {
  const byTask = new Map(steps.map((s) => [s.taskId, s]));
  return reached(steps, wanted, (step) => step.dependsOn.flatMap((id) => byTask.get(id) ?? []));
}

/** The unwanted steps and everything that depends on them. */
function withDependents<S extends Numbered>(steps: readonly S[], unwanted: readonly number[]): readonly S[] {
  const dependents = new Map<string, S[]>();
  for (const step of steps)
    for (const id of step.dependsOn) {
      const known = dependents.get(id);
      if (known === undefined) dependents.set(id, [step]);
      else known.push(step);
    }
  return reached(steps, unwanted, (step) => dependents.get(step.taskId) ?? []);
}

/** The steps of these numbers and all that follow from them, in step order; no chain is too long for it. */
function reached<S extends Numbered>(
  steps: readonly S[],
  numbers: readonly number[],
  next: (step: S) => readonly S[],
): readonly S[] {
  const first = new Set(numbers);
  const found = new Set(steps.filter((step) => first.has(step.step)));
  // The iteration of a set includes members that are added during it.
  for (const step of found) for (const other of next(step)) found.add(other);
  return steps.filter((step) => found.has(step));
}

type MayLack = 'startBefore' | 'alternateWeights' | 'hostCells' | 'cell';

/** Named one by one, which is several times faster than leaving one out; the type says when one is missing. */
export const withoutWhy = (s: Required<Omit<StepFacts, MayLack>> & Pick<StepFacts, MayLack>): StepFacts => ({
  step: s.step,
  taskId: s.taskId,
  phase: s.phase,
  parking: s.parking,
  serverId: s.serverId,
  serverName: s.serverName,
  from: s.from,
  to: s.to,
  alternates: s.alternates,
  dependsOn: s.dependsOn,
  delaySeconds: s.delaySeconds,
  ...(s.startBefore === undefined ? {} : { startBefore: s.startBefore }),
  groups: s.groups,
  resources: s.resources,
  ramMb: s.ramMb,
  diskGb: s.diskGb,
  weights: s.weights,
  ...(s.alternateWeights === undefined ? {} : { alternateWeights: s.alternateWeights }),
  ...(s.hostCells === undefined ? {} : { hostCells: s.hostCells }),
  ...(s.cell === undefined ? {} : { cell: s.cell }),
});

export const planEffects = {
  'plan.dispatched': dispatched,
  'plan.withdrawn': withdrawn,
  'plan.approved': approved,
  'plan.rejected': rejected,
} satisfies Partial<Effects>;
