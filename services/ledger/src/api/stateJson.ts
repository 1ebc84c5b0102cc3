import { iso, isoOrNull } from '@kronos/contracts';
import {
  type AggregateState,
  type Asked,
  aggregateState,
  approvalOf,
  brokenHosts,
  cooldownOf,
  coolingDown,
  courseLeft,
  type DrainFacts,
  type FinishedPlan,
  hostBroken,
  inFlight,
  type LogState,
  notAfterMs,
  optionsOf,
  type PlanFacts,
  pauseInForce,
  quarantined,
  quarantineTable,
  slots,
  type TaskFacts,
  waitingPlan,
} from '@kronos/projections';
import { drainStatus, worstRatio } from '@kronos/status';
import type { ServerNameOf } from './names.ts';

/** The state as people read it: JSON, times ISO-8601 UTC, deadlines by the options on the log. Pure. */

/** The activity of an aggregate, in one word: the first of these that holds. */
export type Standing =
  | 'unplannable'
  | 'paused'
  | 'waitingForApproval'
  | 'moving'
  | 'dryRun'
  | 'coolingDown'
  | 'outOfBalance'
  | 'unmeasured'
  | 'idle'
  | 'unknown';

function standing(state: AggregateState, nowMs: number): Standing {
  if (state.unreadable !== null) return 'unplannable';
  if (pauseInForce(state) !== null) return 'paused';
  if (waitingPlan(state, nowMs)?.open === true) return 'waitingForApproval';
  if (inFlight(state).length > 0) return 'moving';
  const { decided } = state;
  // A plan that is only recorded is no rest: the hosts stay as they are until somebody ends the dry run.
  if (decided?.release === 'dryRun') return 'dryRun';
  if (cooldownOf(state, nowMs, optionsOf(state)) !== null) return 'coolingDown';
  if (decided === null) return 'unknown';
  const { policies } = decided.before;
  if (policies.some(({ detected }) => detected)) return 'outOfBalance';
  return worstRatio(policies) === null ? 'unmeasured' : 'idle';
}

const asked = (fact: Asked | null) =>
  fact === null
    ? null
    : { at: iso(fact.atMs), by: fact.by, comment: fact.comment, commandId: fact.commandId, sequence: fact.sequence };

const drainPage = (aggregate: AggregateState, drain: DrainFacts) => {
  const { host, state, text, by, sinceMs, comment } = drainStatus(aggregate, drain);
  return { host, state, text, by, since: iso(sinceMs), comment };
};

/** One line of the list of aggregates. */
export function aggregateSummary(state: AggregateState, nowMs: number) {
  const options = optionsOf(state);
  const cooldown = cooldownOf(state, nowMs, options);
  const waiting = waitingPlan(state, nowMs);
  const { decided, configured } = state;
  return {
    name: state.aggregate,
    standing: standing(state, nowMs),
    paused: { here: asked(state.paused.here), everywhere: asked(state.paused.everywhere) },
    unreadable: state.unreadable,
    ratio: worstRatio(decided?.before.policies ?? []),
    course: courseLeft(state, nowMs),
    waitingPlan:
      waiting === null || !waiting.open
        ? null
        : { planId: waiting.plan.id, expiresAt: iso(waiting.expiresAtMs), steps: waiting.plan.proposed.length },
    cooldown:
      cooldown === null
        ? null
        : {
            cause: cooldown.cause,
            planId: cooldown.planId,
            since: iso(cooldown.sinceMs),
            until: iso(cooldown.untilMs),
          },
    movesInFlight: inFlight(state).length,
    slots: slots(state).total,
    quarantined: quarantineTable(state, nowMs, options).length,
    brokenHosts: brokenHosts(state, nowMs, options).map(({ host, untilMs }) => ({ host, until: iso(untilMs) })),
    drains: [...state.drains.values()].map((drain) => drainPage(state, drain)),
    lastDecision:
      decided === null
        ? null
        : {
            snapshotId: decided.snapshotId,
            time: iso(decided.snapshotMs),
            cycle: decided.cycle,
            outcome: decided.outcome,
            release: decided.release,
            reason: decided.reason,
            combined: decided.before.combined,
            policies: decided.before.policies,
            sequence: decided.sequence,
          },
    lastRelease:
      state.lastRelease === null ? null : { planId: state.lastRelease.planId, at: iso(state.lastRelease.atMs) },
    lastMoveEnd:
      state.lastMoveEnd === null ? null : { taskId: state.lastMoveEnd.taskId, at: iso(state.lastMoveEnd.atMs) },
    planner:
      configured === null
        ? null
        : {
            version: configured.plannerVersion,
            optionsDigest: configured.optionsDigest,
            since: iso(configured.atMs),
            dryRun: options.dryRun,
            approval: options.approval,
          },
  };
}

/** Everything about one aggregate. */
export function aggregatePage(state: AggregateState, nowMs: number) {
  const used = slots(state);
  return {
    ...aggregateSummary(state, nowMs),
    options: state.configured?.options ?? null,
    sustained: state.sustained,
    slotsBy: {
      source: Object.fromEntries(used.bySource),
      destination: Object.fromEntries(used.byDestination),
      group: Object.fromEntries(used.byGroup),
    },
    moves: inFlight(state).map(taskPage),
    plans: planList(state, Number.POSITIVE_INFINITY),
    quarantine: quarantinePage(state, nowMs),
  };
}

/** The plan that waits, those under way, and the last ones that are over; newest first. */
export function planList(state: AggregateState, limit: number) {
  const open = [...state.plans.values()].map((plan) => planPage(state.aggregate, plan));
  const over = state.recentPlans.map((plan) => finishedPage(state.aggregate, plan));
  return [...open, ...over].sort((a, b) => b.sequence - a.sequence).slice(0, limit);
}

export function planPage(aggregate: string, plan: PlanFacts) {
  return {
    id: plan.id,
    aggregate,
    state: plan.state as PlanFacts['state'] | FinishedPlan['outcome'],
    sequence: plan.sequence,
    decidedAt: iso(plan.decidedAtMs),
    expiresAt: plan.state === 'proposed' ? iso(approvalOf(plan, plan.decidedAtMs).expiresAtMs) : null,
    releasedAt: isoOrNull(plan.release?.atMs),
    approvedBy: plan.release?.approval?.by ?? null,
    startBefore: isoOrNull(notAfterMs(plan)),
    dispatchedAt: isoOrNull(plan.dispatched?.atMs),
    endedAt: null as string | null,
    rejectedSteps: plan.rejected,
    steps: plan.state === 'proposed' ? plan.proposed.length : plan.tasks.length,
    completed: plan.completed,
    warned: plan.warned,
    failed: plan.failed,
    skipped: plan.skipped,
  };
}

function finishedPage(aggregate: string, plan: FinishedPlan): ReturnType<typeof planPage> {
  return {
    id: plan.id,
    aggregate,
    state: plan.outcome,
    sequence: plan.sequence,
    decidedAt: iso(plan.decidedAtMs),
    expiresAt: null,
    releasedAt: isoOrNull(plan.releasedAtMs),
    approvedBy: null,
    startBefore: null,
    dispatchedAt: null,
    endedAt: iso(plan.endedAtMs),
    rejectedSteps: [],
    steps: plan.tasks,
    completed: plan.completed,
    warned: plan.warned,
    failed: plan.failed,
    skipped: plan.skipped,
  };
}

/** Where a server that was moved between cells waits to be confirmed. */
function verifyingPage({ cell }: NonNullable<TaskFacts['slot']>) {
  const verifying = cell?.verifying ?? null;
  return verifying === null ? null : { at: iso(verifying.atMs), host: verifying.host };
}

export function taskPage(task: TaskFacts) {
  const { step, slot, lastFailure } = task;
  return {
    id: task.id,
    planId: task.planId,
    status: task.status,
    phase: step.phase,
    serverId: step.serverId,
    serverName: step.serverName,
    from: step.from,
    destination: task.destination,
    planned: step.to,
    alternates: step.alternates,
    dependsOn: step.dependsOn,
    ramMb: step.ramMb,
    attempt: task.attempt,
    notBefore: iso(task.notBeforeMs),
    started:
      slot === null
        ? null
        : {
            at: iso(slot.startedAtMs),
            by: slot.executor,
            migrationId: slot.migrationId,
            requestId: slot.requestId,
            forced: slot.forced,
            verifying: verifyingPage(slot),
            abortRefused:
              slot.abortRefused === null
                ? null
                : {
                    at: iso(slot.abortRefused.atMs),
                    status: slot.abortRefused.status,
                    text: slot.abortRefused.text,
                  },
          },
    ended: task.end === null ? null : { at: iso(task.end.atMs), host: task.end.host, warnings: task.end.warnings },
    lastFailure:
      lastFailure === null
        ? null
        : {
            at: iso(lastFailure.atMs),
            attempt: lastFailure.attempt,
            destination: lastFailure.destination,
            errorType: lastFailure.errorType,
            reason: lastFailure.reason,
            final: lastFailure.final,
          },
    cancelAsked: asked(task.cancelAsked),
    abortAsked: asked(task.abortAsked),
    closeAsked: asked(task.closeAsked),
  };
}

export function quarantinePage(state: AggregateState, nowMs: number) {
  return quarantineTable(state, nowMs, optionsOf(state)).map((q) => ({
    aggregate: state.aggregate,
    serverId: q.serverId,
    serverName: plannedName(state, q.serverId),
    cause: q.cause,
    since: iso(q.sinceMs),
    until: isoOrNull(q.untilMs),
    by: q.by,
    text: q.text,
  }));
}

/** The name of a server, as the plan of a move of it has it; null: none has. */
export const plannedName = ({ tasks }: AggregateState, serverId: string): string | null =>
  tasks.values().find(({ step }) => step.serverId === serverId)?.step.serverName ?? null;

/** The cooldowns and quarantines of one aggregate. */
export function cooldownPage(state: AggregateState, nowMs: number, nameOf: ServerNameOf) {
  const options = optionsOf(state);
  const { aggregate } = state;
  const cooldown = cooldownOf(state, nowMs, options);
  return {
    aggregate:
      cooldown === null
        ? null
        : { aggregate, cause: cooldown.cause, since: iso(cooldown.sinceMs), until: iso(cooldown.untilMs) },
    hosts: brokenHosts(state, nowMs, options).map(({ host, untilMs }) => ({ aggregate, host, until: iso(untilMs) })),
    vms: [...state.vmReleases.keys()].flatMap((serverId) => {
      const untilMs = coolingDown(state, serverId, nowMs, options);
      return untilMs === null
        ? []
        : [{ aggregate, serverId, serverName: plannedName(state, serverId) ?? nameOf(serverId), until: iso(untilMs) }];
    }),
  };
}

/** The facts of the log about a VM in one aggregate; null: none. A quarantine holds in all, and is shown where it began. */
export function vmPage(state: AggregateState, serverId: string, nowMs: number) {
  const options = optionsOf(state);
  const releases = state.vmReleases.get(serverId) ?? [];
  const moves = [...state.tasks.values()].filter((task) => task.step.serverId === serverId);
  const failure = state.vmFailures.get(serverId);
  const quarantine = quarantined(state, serverId, nowMs, options);
  const asked = quarantine !== null && state.operatorQuarantines.has(serverId);
  if (releases.length === 0 && moves.length === 0 && failure === undefined && !asked) return null;
  return {
    aggregate: state.aggregate,
    coolingDownUntil: isoOrNull(coolingDown(state, serverId, nowMs, options)),
    quarantine:
      quarantine === null
        ? null
        : {
            cause: quarantine.cause,
            since: iso(quarantine.sinceMs),
            until: isoOrNull(quarantine.untilMs),
            by: quarantine.by,
            text: quarantine.text,
          },
    releases: releases.map(iso),
    lastFailure:
      failure === undefined
        ? null
        : { at: iso(failure.atMs), errorType: failure.errorType, text: failure.text, taskId: failure.taskId },
    moves: moves.map(taskPage),
  };
}

/** The facts of the log about a host in one aggregate; null: none. */
export function hostPage(state: AggregateState, host: string, nowMs: number) {
  const failures = state.hostFailures.get(host) ?? [];
  const moves = inFlight(state).filter((task) => task.step.from === host || task.destination === host);
  const drain = state.drains.get(host);
  if (failures.length === 0 && moves.length === 0 && drain === undefined) return null;
  const used = slots(state);
  return {
    aggregate: state.aggregate,
    drain: drain === undefined ? null : drainPage(state, drain),
    brokenUntil: isoOrNull(hostBroken(state, host, nowMs, optionsOf(state))),
    failures: failures.map(iso),
    slots: { leaving: used.bySource.get(host) ?? 0, arriving: used.byDestination.get(host) ?? 0 },
    moves: moves.map(taskPage),
  };
}

/** The aggregates of the configuration and those that the log knows besides. */
export const aggregateNames = (scope: readonly string[], state: LogState): string[] => [
  ...new Set([...scope, ...[...state.aggregates.keys()].sort()]),
];

/** Where a task or a plan is; ids are unique over all aggregates. */
export function findTask(state: LogState, id: string): { aggregate: string; task: TaskFacts } | null {
  for (const [aggregate, { tasks }] of state.aggregates) {
    const task = tasks.get(id);
    if (task !== undefined) return { aggregate, task };
  }
  return null;
}

export function findPlan(state: LogState, id: string) {
  for (const [aggregate, facts] of state.aggregates) {
    const plan = facts.plans.get(id);
    if (plan !== undefined) {
      const tasks = plan.tasks.flatMap((task) => facts.tasks.get(task) ?? []);
      return { page: planPage(aggregate, plan), tasks: tasks.map(taskPage) };
    }
    const over = facts.recentPlans.findLast((finished) => finished.id === id);
    if (over !== undefined) return { page: finishedPage(aggregate, over), tasks: [] };
  }
  return null;
}

/** Each aggregate's state, merged with what holds for all. */
export const statesOf = (scope: readonly string[], state: LogState): AggregateState[] =>
  aggregateNames(scope, state).map((name) => aggregateState(state, name));
