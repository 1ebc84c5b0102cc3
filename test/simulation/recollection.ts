/**
 * The past by the log, folded a second time for the second opinion on plans (`test/property/verifier.ts`). It
 * shares no code with the services' fold, and is as slow as it is plain.
 */
import type { CycleDecided, LogEvent, LogEventOf } from '@kronos/contracts';
import type { InFlightTask, Memory, QuarantineFact } from '@kronos/placement';
import { lateTasks } from './checker/book.ts';

type Plan = NonNullable<CycleDecided['data']['plan']>;
interface Proposed {
  readonly plan: Plan;
  readonly decidedMs: number;
}
interface Facts {
  lastDecidedMs: number | null;
  proposed: Proposed | null;
  approvalTtlMs: number;
  readonly inFlight: Map<string, InFlightTask>;
  readonly releases: Map<string, number[]>;
  readonly failures: Map<string, QuarantineFact>;
  readonly asked: Map<string, QuarantineFact>;
  readonly hostFailures: Map<string, number[]>;
}

/** Failures after which a VM is left alone. */
const QUARANTINING = new Set(['PreFlightError', 'MigrationFailed', 'MigrationTimeout']);
const AT_THE_VM = new Set(['server', 'unknown']);
/** An event is believed to be at most so far from its stamp. */
const STAMP_MS = 60_000;

/** The plan with the steps that can still start at a time. */
function withoutLate(plan: Plan, atMs: number): Plan {
  const late = lateTasks(plan.steps, atMs);
  return { ...plan, steps: plan.steps.filter(({ taskId }) => !late.has(taskId)) };
}

function failed(facts: Facts, data: LogEventOf<'migration.failed'>['data'], ms: number): void {
  const { taskId, serverId, errorType, cause = 'unknown', next, retryPending, hostAtFault } = data;
  const task = facts.inFlight.get(taskId);
  if (task === undefined) return;
  if (hostAtFault !== null) facts.hostFailures.set(hostAtFault, [...(facts.hostFailures.get(hostAtFault) ?? []), ms]);
  if (retryPending && next !== null) {
    facts.inFlight.set(taskId, { ...task, destination: next.destination, startedAtMs: null });
    return;
  }
  facts.inFlight.delete(taskId);
  if (QUARANTINING.has(errorType) && AT_THE_VM.has(cause))
    facts.failures.set(serverId, { cause: 'failure', atMs: ms, errorType, seconds: null });
}

/** Folds the commands of people. */
function acted(facts: Facts, event: LogEvent, ms: number): void {
  if (event.type === 'instance.quarantined') {
    const { serverId, seconds } = event.data;
    facts.asked.set(serverId, { cause: 'operator', atMs: ms, errorType: null, seconds });
  } else if (event.type === 'instance.unquarantined') {
    facts.asked.delete(event.data.serverId);
    facts.failures.delete(event.data.serverId);
  } else if (event.type === 'host.released') facts.hostFailures.delete(event.data.host);
}

export class Recollection {
  readonly #aggregates = new Map<string, Facts>();

  #facts(name: string): Facts {
    let facts = this.#aggregates.get(name);
    if (facts === undefined) {
      facts = {
        lastDecidedMs: null,
        proposed: null,
        approvalTtlMs: 0,
        inFlight: new Map(),
        releases: new Map(),
        failures: new Map(),
        asked: new Map(),
        hostFailures: new Map(),
      };
      this.#aggregates.set(name, facts);
    }
    return facts;
  }

  /** Takes the events of the log in their order, with the times of the server's stamps: a writer's clock may be wrong. */
  apply(event: LogEvent, storedAt: number): void {
    // A VM or a host may have been in another aggregate: its release counts in all of them.
    const all =
      event.aggregate === '_all_' || event.type === 'instance.unquarantined' || event.type === 'host.released';
    const ms = Math.max(storedAt - STAMP_MS, Math.min(Date.parse(event.time), storedAt + STAMP_MS));
    for (const facts of all ? this.#aggregates.values() : [this.#facts(event.aggregate)]) this.#one(facts, event, ms);
  }

  #one(facts: Facts, event: LogEvent, ms: number): void {
    switch (event.type) {
      case 'planner.configured':
        facts.approvalTtlMs = event.data.options.approvalTtlSeconds * 1000;
        break;
      case 'cycle.decided':
        this.#decided(facts, event.data, ms);
        break;
      case 'plan.approved':
        this.#approved(facts, event.data.planId, ms);
        break;
      case 'plan.rejected':
      case 'plan.withdrawn':
        if (facts.proposed?.plan.id === event.data.planId) facts.proposed = null;
        break;
      case 'migration.started': {
        const task = facts.inFlight.get(event.data.taskId);
        const { destination } = event.data;
        if (task !== undefined) facts.inFlight.set(task.taskId, { ...task, destination, startedAtMs: ms });
        break;
      }
      case 'migration.completed':
      case 'migration.skipped':
        facts.inFlight.delete(event.data.taskId);
        break;
      case 'migration.failed':
        failed(facts, event.data, ms);
        break;
      default:
        acted(facts, event, ms);
        break;
    }
  }

  #decided(facts: Facts, { plan, release, snapshotTime }: CycleDecided['data'], ms: number): void {
    facts.lastDecidedMs = Date.parse(snapshotTime);
    if (plan === null || (release !== 'released' && release !== 'proposed')) return;
    facts.proposed = null;
    const left = withoutLate(plan, ms);
    if (left.steps.length === 0) return;
    if (release === 'proposed') facts.proposed = { plan: left, decidedMs: ms };
    else this.#release(facts, left, ms);
  }

  #approved(facts: Facts, planId: string, ms: number): void {
    const { proposed } = facts;
    if (proposed?.plan.id !== planId) return;
    const left = withoutLate(proposed.plan, ms);
    if (ms > proposed.decidedMs + facts.approvalTtlMs || left.steps.length === 0) return;
    facts.proposed = null;
    this.#release(facts, left, ms);
  }

  #release(facts: Facts, plan: Plan, ms: number): void {
    for (const { taskId, serverId, from, to, resources, weights, ramMb } of plan.steps) {
      facts.inFlight.set(taskId, {
        taskId,
        serverId,
        from,
        destination: to,
        resources,
        weights,
        ramMb,
        startedAtMs: null,
      });
      facts.releases.set(serverId, [...(facts.releases.get(serverId) ?? []), ms]);
    }
  }

  /** As far as a plan is judged by it. What is known of a VM or a host counts in whatever aggregate it was learnt. */
  memory(aggregate: string): Memory {
    const { lastDecidedMs } = this.#facts(aggregate);
    const all = [...this.#aggregates];
    const quarantines: Record<string, QuarantineFact[]> = {};
    for (const kind of ['failures', 'asked'] as const) {
      const facts = all.flatMap(([, of]) => [...of[kind]]).sort(([, a], [, b]) => a.atMs - b.atMs);
      for (const [id, fact] of new Map(facts)) quarantines[id] = [...(quarantines[id] ?? []), fact];
    }
    const times = (kind: 'releases' | 'hostFailures'): Record<string, number[]> => {
      const found: Record<string, number[]> = {};
      for (const [, of] of all)
        for (const [id, known] of of[kind]) found[id] = [...(found[id] ?? []), ...known].sort((a, b) => a - b);
      return found;
    };
    return {
      paused: null,
      unreadable: null,
      lastDecidedMs,
      lastRelease: null,
      lastRefusal: null,
      waitingPlan: null,
      lastMoveEndMs: null,
      releases: times('releases'),
      quarantines,
      hostFailures: times('hostFailures'),
      inFlight: all.flatMap(([name, of]) =>
        [...of.inFlight.values()].map((task) => (name === aggregate ? task : { ...task, aggregate: name })),
      ),
      sustained: {},
    };
  }
}
