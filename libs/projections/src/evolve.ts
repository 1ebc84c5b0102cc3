import {
  ALL,
  type Control,
  eventTimeMs,
  type LogEvent,
  type LogEventOf,
  MAX_RETRY_WAIT_SECONDS,
  MAX_TIME_DIFFERENCE_MS,
  moveEnd,
  type StoredEvent,
  timeMs,
} from '@kronos/contracts';
import { quarantines } from '@kronos/rules';
import { approvalOf } from './approvals.ts';
import {
  type AggregateFacts,
  type AllFacts,
  type Asked,
  type ControlFacts,
  type FinishedPlan,
  FORGET_ABSENT_MS,
  FORGET_EARLIER_RELEASE_MS,
  FORGET_HOST_FAILURE_MS,
  FORGET_QUARANTINE_MS,
  FORGET_RELEASE_MS,
  initialAggregateFacts,
  initialLogState,
  type LogState,
  type PlanFacts,
  type PlanRelease,
  RECENT_COMMANDS,
  RECENT_DAMAGED,
  RECENT_HOST_FAILURES,
  RECENT_PLANS,
  RECENT_RELEASES,
  type Slot,
  type StepFacts,
  type TaskEnd,
  type TaskFacts,
  UNREADABLE_KEPT,
  type UnreadableFact,
} from './state.ts';
import { upcast } from './upcast.ts';

/**
 * A fold of the log that goes on. `apply` is fast because it writes in place what it owns; `snapshot` gives an immutable
 * state for the price of copying, on the next event, the tables which that event touches.
 */
export type Folder = {
  /** Stream sequence of the last event folded. */
  readonly sequence: number;
  /** Folds one event. Events come in the order of their sequences; one that was folded already changes nothing. */
  apply(stored: StoredEvent): Folder;
  /** The state now. It never changes afterwards. */
  snapshot(): LogState;
};

/** The state after one more event: the pure form of {@link createFolder}, for tests and for single events. */
export const evolve = (state: LogState, stored: StoredEvent): LogState => createFolder(state).apply(stored).snapshot();

/** The state after all of these events. */
export function fold(events: Iterable<StoredEvent>, from: LogState = initialLogState()): LogState {
  const folder = createFolder(from);
  for (const stored of events) folder.apply(stored);
  return folder.snapshot();
}

/** The fold as `EventLog.view` takes it. */
export const folding = (from?: LogState) => ({
  initial: createFolder(from),
  evolve: (folder: Folder, stored: StoredEvent): Folder => folder.apply(stored),
  snapshot: (folder: Folder): LogState => folder.snapshot(),
});

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Facts = Writable<AggregateFacts>;
type Controls = Writable<ControlFacts>;

export function createFolder(from: LogState = initialLogState()): Folder {
  let sequence = from.sequence;
  let all: AllFacts = from.all;
  let aggregates: ReadonlyMap<string, AggregateFacts> = from.aggregates;
  let last: LogState = from;
  /** Records and tables made since the last snapshot: nobody else has seen them, so they are written in place. */
  let owned = new Set<object>();

  /** The facts of an aggregate, to be written. */
  function facts(aggregate: string): Facts {
    const current = aggregates.get(aggregate);
    if (current !== undefined && owned.has(current)) return current as Facts;
    const copy: Facts = { ...(current ?? initialAggregateFacts) };
    owned.add(copy);
    if (!owned.has(aggregates)) {
      aggregates = new Map(aggregates);
      owned.add(aggregates);
    }
    (aggregates as Map<string, AggregateFacts>).set(aggregate, copy);
    return copy;
  }

  function allFacts(): Writable<AllFacts> {
    if (!owned.has(all)) {
      all = { ...all };
      owned.add(all);
    }
    return all as Writable<AllFacts>;
  }

  /** A table to be written: itself when it is owned, else a copy, which the caller puts in its place. */
  function table<K, V>(current: ReadonlyMap<K, V>): Map<K, V> {
    if (owned.has(current)) return current as Map<K, V>;
    const copy = new Map(current);
    owned.add(copy);
    return copy;
  }

  /** True when the act is new; remembers it. */
  function firstTime(controls: Controls, id: string): boolean {
    if (controls.seen.has(id)) return false;
    let seen = controls.seen as Set<string>;
    if (!owned.has(seen)) {
      seen = new Set(seen);
      owned.add(seen);
      controls.seen = seen;
    }
    seen.add(id);
    if (seen.size > RECENT_COMMANDS) {
      const [oldest] = seen;
      if (oldest !== undefined) seen.delete(oldest);
    }
    return true;
  }

  const putPlan = (f: Facts, plan: PlanFacts): void => {
    const plans = table(f.plans);
    plans.set(plan.id, plan);
    f.plans = plans;
  };

  const putTask = (f: Facts, task: TaskFacts): void => {
    const tasks = table(f.tasks);
    tasks.set(task.id, task);
    f.tasks = tasks;
  };

  /** Takes a plan and its tasks out of the state; people still see that it was there. */
  function close(f: Facts, plan: PlanFacts, outcome: FinishedPlan['outcome'], endedAtMs: number): void {
    const plans = table(f.plans);
    plans.delete(plan.id);
    f.plans = plans;
    if (f.waiting === plan.id) f.waiting = null;
    if (plan.tasks.length > 0) {
      const tasks = table(f.tasks);
      for (const id of plan.tasks) tasks.delete(id);
      f.tasks = tasks;
    }
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

  /** Makes tasks of the given steps. From here on they count: slots, cooldowns, moves in flight. */
  function release(f: Facts, plan: PlanFacts, steps: readonly StepFacts[], by: PlanRelease): void {
    const tasks = table(f.tasks);
    const vmReleases = table(f.vmReleases);
    for (const step of steps) {
      tasks.set(step.taskId, {
        id: step.taskId,
        planId: plan.id,
        step,
        status: 'waiting',
        attempt: 1,
        destination: step.to,
        notBeforeMs: by.atMs + step.delaySeconds * 1000,
        slot: null,
        end: null,
        lastFailure: null,
        cancelAsked: null,
        abortAsked: null,
        closeAsked: null,
      });
      const times = vmReleases.get(step.serverId);
      vmReleases.set(step.serverId, append(times, by.atMs, RECENT_RELEASES));
    }
    f.tasks = tasks;
    f.vmReleases = vmReleases;
    f.lastRelease = { planId: plan.id, atMs: by.atMs };
    if (f.waiting === plan.id) f.waiting = null;
    putPlan(f, { ...plan, state: 'released', release: by, proposed: [], tasks: steps.map((s) => s.taskId) });
  }

  function refuse(f: Facts, plan: PlanFacts, how: 'rejected' | 'expired', atMs: number): void {
    f.lastRefusal = { planId: plan.id, atMs, how };
    close(f, plan, how, atMs);
  }

  /** Why a decision may not begin its plan as it says; null where it may. Nothing passes by dry_run or approval. */
  function wrongRelease(event: LogEventOf<'cycle.decided'>): string | null {
    const { release } = event.data;
    if (release !== 'released' && release !== 'proposed') return null;
    const options = aggregates.get(event.aggregate)?.configured?.options;
    // Without options nothing of the plan can start: the log does not say until when it may.
    if (options === undefined) return null;
    if (options.dryRun) return `the plan is ${release}, and the options on the log say dry_run`;
    return release === 'released' && options.approval === 'manual'
      ? 'the plan is released, and the options on the log demand approval'
      : null;
  }

  function decided(event: LogEventOf<'cycle.decided'>, at: number, storedAt: number): void {
    const d = event.data;
    // A snapshot is older than its decision; a year that was made up must not keep later snapshots from being decided.
    const snapshotMs = Math.min(timeMs(d.snapshotTime), storedAt + MAX_TIME_DIFFERENCE_MS);
    const before = aggregates.get(event.aggregate)?.decided ?? null;
    // Only a later snapshot is ever decided: anything else is a second event for the same act.
    if (before !== null && (snapshotMs <= before.snapshotMs || before.recent.includes(d.snapshotId))) return;
    const problem = wrongRelease(event);
    if (problem !== null) {
      unreadable({
        sequence,
        aggregate: event.aggregate,
        claimedType: event.type,
        claimedVersion: event.version,
        problem,
        remedy: 'skip',
      });
      return;
    }
    const f = facts(event.aggregate);
    const waiting = f.waiting === null ? undefined : f.plans.get(f.waiting);
    if (waiting !== undefined) {
      const { open, expiresAtMs } = approvalOf(waiting, snapshotMs);
      if (!open) refuse(f, waiting, 'expired', expiresAtMs);
      else if (d.plan !== null) close(f, waiting, 'superseded', at);
    }
    if (d.absence !== undefined) note(f, d.absence, snapshotMs);
    if (before !== null && hour(snapshotMs) > hour(before.snapshotMs)) forget(f, snapshotMs, d.outcome !== 'gated');
    f.decided = {
      sequence,
      snapshotId: d.snapshotId,
      recent: [...(before?.recent ?? []), d.snapshotId].slice(-DECIDED_KEPT),
      snapshotMs,
      cycle: d.cycle,
      outcome: d.outcome,
      release: d.release,
      reason: d.reason,
      before: d.before,
    };
    const sustained: Record<string, number> = {};
    for (const p of d.before.policies) if (p.sustainedCycles > 0) sustained[p.policy] = p.sustainedCycles;
    f.sustained = sustained;
    if (d.plan === null || (d.release !== 'released' && d.release !== 'proposed')) return;
    const steps = d.plan.steps.map(withoutWhy);
    const plan: PlanFacts = {
      id: d.plan.id,
      sequence,
      decidedAtMs: at,
      state: 'proposed',
      approvalTtlSeconds: f.configured?.options.approvalTtlSeconds ?? null,
      planTtlSeconds: f.configured?.options.planTtlSeconds ?? null,
      proposed: steps,
      rejected: [],
      release: null,
      dispatched: null,
      tasks: [],
      completed: 0,
      warned: 0,
      failed: 0,
      skipped: 0,
    };
    if (d.release === 'proposed') {
      f.waiting = plan.id;
      putPlan(f, plan);
    } else release(f, plan, steps, { sequence, atMs: at, approval: null });
  }

  /** Which VMs with a failed move are absent. */
  function note(f: Facts, { gone, back }: { gone: string[]; back: string[] }, snapshotMs: number): void {
    const set = (serverId: string, absentSinceMs: number | null): void => {
      const failure = f.vmFailures.get(serverId);
      if (failure === undefined || (failure.absentSinceMs === null) === (absentSinceMs === null)) return;
      const vmFailures = table(f.vmFailures);
      vmFailures.set(serverId, { ...failure, absentSinceMs });
      f.vmFailures = vmFailures;
    };
    for (const serverId of gone) set(serverId, snapshotMs);
    for (const serverId of back) set(serverId, null);
  }

  /**
   * Drops what can matter no more, by constants, once an hour of decided snapshots: every reader of the log drops the same
   * at the same event.
   *
   * @param looked the decision looked at the servers of its snapshot, so it says which are back
   */
  function forget(f: Facts, snapshotMs: number, looked: boolean): void {
    const newest = (times: readonly number[]): number => Math.max(...times);
    f.vmReleases = without(f.vmReleases, (times) => newest(times) < snapshotMs - FORGET_RELEASE_MS);
    for (const [serverId, times] of f.vmReleases) {
      const limitMs = newest(times) - FORGET_EARLIER_RELEASE_MS;
      if (!times.some((at) => at < limitMs)) continue;
      const vmReleases = table(f.vmReleases);
      vmReleases.set(
        serverId,
        times.filter((at) => at >= limitMs),
      );
      f.vmReleases = vmReleases;
    }
    f.hostFailures = without(f.hostFailures, (times) => newest(times) < snapshotMs - FORGET_HOST_FAILURE_MS);
    if (looked)
      f.vmFailures = without(
        f.vmFailures,
        ({ absentSinceMs }) => absentSinceMs !== null && absentSinceMs <= snapshotMs - FORGET_ABSENT_MS,
      );
    const ended = (q: { readonly atMs: number; readonly seconds: number }): boolean =>
      q.seconds >= 0 && q.atMs + q.seconds * 1000 < snapshotMs - FORGET_QUARANTINE_MS;
    f.operatorQuarantines = without(f.operatorQuarantines, ended);
    if ([...all.operatorQuarantines.values()].some(ended)) {
      const c = allFacts();
      c.operatorQuarantines = without(c.operatorQuarantines, ended);
    }
  }

  function without<K, V>(current: ReadonlyMap<K, V>, drop: (value: V) => boolean): ReadonlyMap<K, V> {
    const gone = [...current].filter(([, value]) => drop(value));
    if (gone.length === 0) return current;
    const kept = table(current);
    for (const [key] of gone) kept.delete(key);
    return kept;
  }

  function started(event: LogEventOf<'migration.started'>, at: number): void {
    const d = event.data;
    const task = aggregates.get(event.aggregate)?.tasks.get(d.taskId);
    if (task === undefined || task.end !== null) return;
    if (d.attempt < task.attempt || (d.attempt === task.attempt && task.status === 'started')) return;
    const slot: Slot = {
      sequence,
      startedAtMs: at,
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
    };
    putTask(facts(event.aggregate), {
      ...task,
      status: 'started',
      attempt: d.attempt,
      destination: d.destination,
      slot,
    });
  }

  function observed(event: LogEventOf<'migration.observed'>): void {
    const d = event.data;
    const task = aggregates.get(event.aggregate)?.tasks.get(d.taskId);
    if (task === undefined || task.slot === null || task.slot.attempt !== d.attempt) return;
    const { slot } = task;
    const migrationId = slot.migrationId ?? d.migrationId;
    const requestId = slot.requestId ?? d.requestId;
    if (migrationId === slot.migrationId && requestId === slot.requestId) return;
    putTask(facts(event.aggregate), { ...task, slot: { ...slot, migrationId, requestId } });
  }

  function abortRefused(event: LogEventOf<'migration.abortRefused'>, at: number): void {
    const d = event.data;
    const task = aggregates.get(event.aggregate)?.tasks.get(d.taskId);
    if (task === undefined || task.slot === null || task.slot.attempt !== d.attempt) return;
    if (task.slot.abortRefused !== null) return;
    const refused = { sequence, atMs: at, status: d.status, text: d.text };
    putTask(facts(event.aggregate), { ...task, slot: { ...task.slot, abortRefused: refused } });
  }

  function ended(
    event: LogEventOf<'migration.completed' | 'migration.failed' | 'migration.skipped'>,
    at: number,
  ): void {
    const d = event.data;
    const task = aggregates.get(event.aggregate)?.tasks.get(d.taskId);
    if (task === undefined || task.end !== null || d.attempt < task.attempt) return;
    // Only an executor ends a started task, except that a planner ends one that an operator closed.
    if (event.by.service === 'planner' && task.slot !== null && task.closeAsked === null) return;
    const f = facts(event.aggregate);
    const held = task.slot !== null;
    const end: TaskEnd = { sequence, atMs: at, host: null, warnings: [] };
    const over = { ...task, slot: null, attempt: d.attempt, destination: d.destination, end };
    switch (event.type) {
      case 'migration.completed':
        f.lastMoveEnd = { taskId: task.id, atMs: at };
        damage(f, task, event, at);
        finish(
          f,
          { ...over, status: 'completed', end: { ...end, host: event.data.host, warnings: event.data.warnings } },
          'completed',
          at,
        );
        return;
      case 'migration.skipped':
        finish(f, { ...over, status: 'skipped' }, 'skipped', at);
        return;
      case 'migration.failed': {
        const { errorType, reason, next, retryPending, hostAtFault } = event.data;
        const final = !retryPending || next === null;
        const lastFailure = {
          sequence,
          atMs: at,
          attempt: d.attempt,
          destination: d.destination,
          errorType,
          reason,
          final,
        };
        damage(f, task, event, at);
        if (held || event.data.started) f.lastMoveEnd = { taskId: task.id, atMs: at };
        if (hostAtFault !== null) {
          const failures = table(f.hostFailures);
          failures.set(hostAtFault, append(failures.get(hostAtFault), at, RECENT_HOST_FAILURES));
          f.hostFailures = failures;
        }
        if (!final) {
          putTask(f, {
            ...task,
            status: 'retryPending',
            slot: null,
            attempt: Math.max(next.attempt, d.attempt + 1),
            destination: next.destination,
            notBeforeMs: Math.min(timeMs(next.notBefore), at + MAX_RETRY_WAIT_SECONDS * 1000),
            lastFailure,
          });
          return;
        }
        if (quarantines(errorType)) {
          const vmFailures = table(f.vmFailures);
          vmFailures.set(d.serverId, {
            sequence,
            atMs: at,
            taskId: task.id,
            errorType,
            text: reason.text,
            absentSinceMs: null,
          });
          f.vmFailures = vmFailures;
        }
        finish(f, { ...over, status: 'failed', lastFailure }, 'failed', at);
        return;
      }
    }
  }

  /** Keeps which servers a move left in ERROR. */
  function damage(
    f: Facts,
    task: TaskFacts,
    event: LogEventOf<'migration.completed' | 'migration.failed'>,
    at: number,
  ): void {
    const { serverId, serverName, from } = task.step;
    if (moveEnd(event) !== 'damaged') {
      if (event.type === 'migration.completed') f.damaged = withoutKey(f.damaged, serverId);
      return;
    }
    const { planId, destination } = event.data;
    const completed = event.type === 'migration.completed';
    const damaged = table(f.damaged);
    damaged.delete(serverId);
    damaged.set(serverId, {
      sequence,
      atMs: at,
      planId,
      taskId: task.id,
      serverId,
      serverName,
      from,
      destination,
      host: completed ? event.data.host : null,
      reasons: completed ? event.data.warnings : [event.data.reason],
    });
    if (damaged.size > RECENT_DAMAGED) {
      const [oldest] = damaged.keys();
      if (oldest !== undefined) damaged.delete(oldest);
    }
    f.damaged = damaged;
  }

  function finish(f: Facts, task: TaskFacts, count: 'completed' | 'failed' | 'skipped', at: number): void {
    putTask(f, task);
    const plan = f.plans.get(task.planId);
    if (plan === undefined) return;
    const warned = plan.warned + (task.status === 'completed' && (task.end?.warnings.length ?? 0) > 0 ? 1 : 0);
    const counted = { ...plan, [count]: plan[count] + 1, warned };
    putPlan(f, counted);
    closeIfDone(f, counted, at);
  }

  function closeIfDone(f: Facts, plan: PlanFacts, at: number): void {
    const done = plan.completed + plan.failed + plan.skipped >= plan.tasks.length;
    if (done && plan.dispatched !== null) close(f, plan, 'done', at);
  }

  function dispatched(event: LogEventOf<'plan.dispatched'>, at: number): void {
    const plan = aggregates.get(event.aggregate)?.plans.get(event.data.planId);
    if (plan === undefined || plan.state !== 'released' || plan.dispatched !== null) return;
    const f = facts(event.aggregate);
    const next = { ...plan, dispatched: { sequence, atMs: at, tasks: event.data.tasks } };
    putPlan(f, next);
    closeIfDone(f, next, at);
  }

  function configured(event: LogEventOf<'planner.configured'>, at: number): void {
    const f = facts(event.aggregate);
    if (!firstTime(f, event.id)) return;
    const { plannerVersion, optionsDigest, options, startedAfter } = event.data;
    const writer = startedAfter === undefined ? {} : { writer: { instance: event.by.instance, startedAfter } };
    f.configured = { sequence, atMs: at, plannerVersion, optionsDigest, options, ...writer };
  }

  /** The aggregates that a command about a plan or a task concerns: it may be sent to all, and the id decides. */
  const addressed = (aggregate: string): readonly string[] =>
    aggregate === ALL ? [...aggregates.keys()] : [aggregate];

  function approved(event: LogEventOf<'plan.approved'>, at: number): void {
    const { planId, steps: wanted } = event.data;
    for (const aggregate of addressed(event.aggregate)) {
      const plan = aggregates.get(aggregate)?.plans.get(planId);
      if (plan === undefined || plan.state !== 'proposed') continue;
      if (!approvalOf(plan, at).open) continue;
      // Somebody turned dry_run on while the plan waited.
      if (aggregates.get(aggregate)?.configured?.options.dryRun !== false) continue;
      const chosen = wanted === null ? plan.proposed : withDependencies(plan.proposed, wanted);
      if (chosen.length === 0) continue;
      release(facts(aggregate), plan, chosen, { sequence, atMs: at, approval: asked(event, at) });
    }
  }

  function rejected(event: LogEventOf<'plan.rejected'>, at: number): void {
    const { planId, steps: unwanted } = event.data;
    for (const aggregate of addressed(event.aggregate)) {
      const plan = aggregates.get(aggregate)?.plans.get(planId);
      if (plan === undefined || plan.state !== 'proposed') continue;
      if (!approvalOf(plan, at).open) continue;
      const gone = unwanted === null ? plan.proposed : withDependents(plan.proposed, unwanted);
      if (gone.length === 0) continue;
      const f = facts(aggregate);
      const proposed = plan.proposed.filter((step) => !gone.includes(step));
      const next = {
        ...plan,
        proposed,
        rejected: [...plan.rejected, ...gone.map((s) => s.step)].sort((a, b) => a - b),
      };
      if (proposed.length === 0) refuse(f, next, 'rejected', at);
      else putPlan(f, next);
    }
  }

  function asked(event: Control, at: number): Asked {
    const { commandId, comment } = event.data;
    return { sequence, atMs: at, commandId, by: event.by.instance, comment };
  }

  function askedOfTask(
    event: LogEventOf<'migration.cancelled' | 'migration.aborted' | 'migration.closed'>,
    at: number,
  ): void {
    for (const aggregate of addressed(event.aggregate)) {
      const task = aggregates.get(aggregate)?.tasks.get(event.data.taskId);
      if (task === undefined || task.end !== null) continue;
      const field = ASKED[event.type];
      if (task[field] === null) putTask(facts(aggregate), { ...task, [field]: asked(event, at) });
    }
  }

  const controlsOf = (aggregate: string): Controls => (aggregate === ALL ? allFacts() : facts(aggregate));

  function quarantine(event: LogEventOf<'instance.quarantined'>, at: number): void {
    const c = controlsOf(event.aggregate);
    if (!firstTime(c, event.id)) return;
    const quarantined = table(c.operatorQuarantines);
    quarantined.set(event.data.serverId, { ...asked(event, at), seconds: event.data.seconds });
    c.operatorQuarantines = quarantined;
  }

  /** A VM is in one aggregate, so its release reaches the quarantine that was set for all of them too. */
  function unquarantine(event: LogEventOf<'instance.unquarantined'>): void {
    if (!firstTime(controlsOf(event.aggregate), event.id)) return;
    const { serverId } = event.data;
    if (all.operatorQuarantines.has(serverId)) {
      const c = allFacts();
      c.operatorQuarantines = withoutKey(c.operatorQuarantines, serverId);
    }
    for (const aggregate of addressed(event.aggregate)) {
      const current = aggregates.get(aggregate);
      const known =
        current?.operatorQuarantines.has(serverId) ||
        current?.vmFailures.has(serverId) ||
        current?.damaged.has(serverId);
      if (!known) continue;
      const f = facts(aggregate);
      f.operatorQuarantines = withoutKey(f.operatorQuarantines, serverId);
      f.vmFailures = withoutKey(f.vmFailures, serverId);
      f.damaged = withoutKey(f.damaged, serverId);
    }
  }

  function withoutKey<K, V>(current: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
    if (!current.has(key)) return current;
    const kept = table(current);
    kept.delete(key);
    return kept;
  }

  function pause(event: LogEventOf<'aggregate.paused' | 'aggregate.resumed'>, at: number): void {
    const c = controlsOf(event.aggregate);
    if (!firstTime(c, event.id)) return;
    if (event.type === 'aggregate.resumed') c.paused = null;
    else if (c.paused === null) c.paused = asked(event, at);
  }

  function unreadable(fact: Omit<UnreadableFact, 'through'>): void {
    const c = controlsOf(fact.aggregate);
    const last = c.unreadables.at(-1);
    c.unreadables =
      last !== undefined && c.unreadables.length >= UNREADABLE_KEPT
        ? [...c.unreadables.slice(0, -1), { ...last, through: fact.sequence }]
        : [...c.unreadables, { ...fact, through: fact.sequence }];
  }

  /** Passes by events that came before and cannot be read; what can be read is never skipped. */
  function skipped(event: LogEventOf<'event.skipped'>, at: number): void {
    const c = controlsOf(event.aggregate);
    const events = c.unreadables.filter(
      (fact) => fact.sequence >= event.data.sequence && fact.through <= event.data.through,
    );
    if (events.length === 0) return;
    c.unreadables = c.unreadables.filter((fact) => !events.includes(fact));
    c.skips = [...c.skips, { ...asked(event, at), events }];
  }

  function one(event: LogEvent, storedAt: number): void {
    const at = eventTimeMs(event.time, storedAt);
    switch (event.type) {
      case 'cycle.decided':
        decided(event, at, storedAt);
        break;
      case 'plan.dispatched':
        dispatched(event, at);
        break;
      case 'planner.configured':
        configured(event, at);
        break;
      case 'migration.started':
        started(event, at);
        break;
      case 'migration.observed':
        observed(event);
        break;
      case 'migration.abortRefused':
        abortRefused(event, at);
        break;
      case 'migration.completed':
      case 'migration.failed':
      case 'migration.skipped':
        ended(event, at);
        break;
      case 'plan.approved':
        approved(event, at);
        break;
      case 'plan.rejected':
        rejected(event, at);
        break;
      case 'instance.quarantined':
        quarantine(event, at);
        break;
      case 'instance.unquarantined':
        unquarantine(event);
        break;
      case 'migration.cancelled':
      case 'migration.aborted':
      case 'migration.closed':
        askedOfTask(event, at);
        break;
      case 'aggregate.paused':
      case 'aggregate.resumed':
        pause(event, at);
        break;
      case 'event.skipped':
        skipped(event, at);
        break;
      case 'migration.suspected':
      case 'migration.abortRequested':
        // What an executor tells those that come after it; it changes nothing of the task.
        break;
      case 'evaluation.requested':
        // Asks the scorer for a snapshot; nothing of it is remembered.
        break;
      case 'installation.created':
        // Says which log this is. Readers ask the log itself for it, before they fold anything.
        break;
      default:
        event satisfies never;
    }
  }

  /**
   * The server's timestamp of an event, on a log that was restored the original one. Only the first events of a log can be
   * restored ones: after an event that no restore published, none may claim another timestamp than its own.
   */
  function stampOf({ storedAt, originallyStoredAt }: StoredEvent): number {
    if (!all.live && originallyStoredAt !== undefined) return originallyStoredAt;
    if (!all.live) allFacts().live = true;
    return storedAt;
  }

  /** No event, however made, ends a fold: one that cannot be folded makes its aggregate unplannable. */
  function foldSafely(event: LogEvent, storedAt: number): void {
    try {
      one(upcast(event), storedAt);
    } catch (error) {
      unreadable({
        sequence,
        aggregate: event.aggregate,
        claimedType: event.type,
        claimedVersion: event.version,
        problem: `it cannot be folded: ${error instanceof Error ? error.message : String(error)}`,
        remedy: 'skip',
      });
    }
  }

  const folder: Folder = {
    get sequence() {
      return sequence;
    },
    apply(stored) {
      if (stored.sequence <= sequence) return folder;
      sequence = stored.sequence;
      const { event } = stored;
      const stamp = stampOf(stored);
      if (event.type === 'unreadable') {
        const { aggregate, claimedType, claimedVersion, problem, remedy } = event;
        unreadable({ sequence, aggregate, claimedType, claimedVersion, problem, remedy });
      } else if (event.aggregate === ALL && !ADDRESSES_ALL.has(event.type)) {
        unreadable({
          sequence,
          aggregate: ALL,
          claimedType: event.type,
          claimedVersion: event.version,
          problem: `${event.type} belongs to one aggregate and was addressed to all`,
          remedy: 'skip',
        });
      } else foldSafely(event, stamp);
      return folder;
    },
    snapshot() {
      if (last.sequence !== sequence) {
        last = { sequence, all, aggregates };
        owned = new Set();
      }
      return last;
    },
  };
  return folder;
}

const ASKED = {
  'migration.cancelled': 'cancelAsked',
  'migration.aborted': 'abortAsked',
  'migration.closed': 'closeAsked',
} as const;

const ADDRESSES_ALL: ReadonlySet<string> = new Set([
  'aggregate.paused',
  'aggregate.resumed',
  'plan.approved',
  'plan.rejected',
  'instance.quarantined',
  'instance.unquarantined',
  'migration.cancelled',
  'migration.aborted',
  'migration.closed',
  'evaluation.requested',
  'event.skipped',
  'installation.created',
]);

/**
 * Ids of decided snapshots that are remembered. One is taken again only within its cycle, or while its command waits for an
 * answer: few snapshots come between.
 */
const DECIDED_KEPT = 32;

const hour = (ms: number): number => Math.floor(ms / 3_600_000);

const append = (times: readonly number[] | undefined, at: number, limit: number): readonly number[] =>
  times === undefined ? [at] : [...times.slice(-(limit - 1)), at];

/** Named one by one, which is several times faster than leaving one out; the type says when one is missing. */
const withoutWhy = (s: Required<StepFacts>): StepFacts => ({
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
  groups: s.groups,
  resources: s.resources,
  ramMb: s.ramMb,
  diskGb: s.diskGb,
  weights: s.weights,
});

/** The wanted steps and everything that they depend on, in step order. Steps that were rejected are not there to choose. */
function withDependencies(steps: readonly StepFacts[], wanted: readonly number[]): readonly StepFacts[] {
  const byTask = new Map(steps.map((s) => [s.taskId, s]));
  return reached(steps, wanted, (step) => step.dependsOn.flatMap((id) => byTask.get(id) ?? []));
}

/** The unwanted steps and everything that depends on them. */
function withDependents(steps: readonly StepFacts[], unwanted: readonly number[]): readonly StepFacts[] {
  const dependents = new Map<string, StepFacts[]>();
  for (const step of steps)
    for (const id of step.dependsOn) {
      const known = dependents.get(id);
      if (known === undefined) dependents.set(id, [step]);
      else known.push(step);
    }
  return reached(steps, unwanted, (step) => dependents.get(step.taskId) ?? []);
}

/** The steps of these numbers and all that follow from them, in step order; no chain is too long for it. */
function reached(
  steps: readonly StepFacts[],
  numbers: readonly number[],
  next: (step: StepFacts) => readonly StepFacts[],
): readonly StepFacts[] {
  const first = new Set(numbers);
  const found = new Set(steps.filter((step) => first.has(step.step)));
  // A set is iterated with what is added on the way.
  for (const step of found) for (const other of next(step)) found.add(other);
  return steps.filter((step) => found.has(step));
}
