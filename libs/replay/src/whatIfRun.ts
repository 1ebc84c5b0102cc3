import {
  type Actor,
  type CycleDecided,
  type Decision,
  type EngineOptions,
  holdInWhatIf,
  hostReadingOf,
  iso,
  type LogEvent,
  messageId,
  type Policy,
  policyQueries,
  queriesOf,
  readingOf,
  type Snapshot,
  type StoredEvent,
  timeMs,
  vmReadingOf,
} from '@kronos/contracts';
import { absenceOf, configuredEvent, decideCycle, decidedEvent, releaseOf } from '@kronos/cycle';
import { allocationReadings, isCounted, plannerVersion, score } from '@kronos/placement';
import {
  aggregateState,
  type Cooldowns,
  createFolder,
  type Folder,
  inFlight,
  type LogState,
  seed,
} from '@kronos/projections';
import { PolicyNotRecorded } from './errors.ts';
import { isOfCycle, openSnapshot, type StoredBody } from './history.ts';
import { lay } from './overlay.ts';
import { OwnMigrations } from './ownMigrations.ts';
import { type RuleBreaks, ruleBreaks } from './rules.ts';
import { World } from './world.ts';

/** One world at one snapshot. */
export type WorldCycle = {
  /** Combined imbalance when the snapshot was taken, by the what-if's policies; null when none takes part. */
  readonly combined: number | null;
  /** By policy. */
  readonly imbalance: Readonly<Record<string, number | null>>;
  /** By policy: the highest value of a host that may be a destination; null where it takes no part. */
  readonly peak: Readonly<Record<string, number | null>>;
  /** Hosts that may be destinations and have no VM. */
  readonly emptyHosts: number;
  /** Recorded: completed since the snapshot before. Simulated: planned on this one, and done at once. */
  readonly moves: number;
  readonly ruleBreaks: RuleBreaks;
};

/** One snapshot of a what-if: as it was recorded, and as it would have been. */
export type WhatIfCycle = {
  readonly aggregate: string;
  readonly snapshotId: string;
  readonly timeMs: number;
  /** Of a reconstructed snapshot: what is not known at its time, and how many of each. */
  readonly unknown?: NonNullable<Snapshot['reconstructed']>['unknown'];
  readonly recorded: WorldCycle;
  readonly simulated: WorldCycle & {
    readonly outcome: Decision['outcome'];
    readonly reason: string;
    readonly decision: Decision;
    /** VMs that are elsewhere than in the recording. */
    readonly elsewhere: number;
  };
};

/** The beginning of one aggregate's what-if. */
export type RunStart = {
  readonly aggregate: string;
  /** Time of the first snapshot, in ms since the epoch. */
  readonly startMs: number;
  /** The log up to what the first snapshot was decided on. Nothing of other aggregates is needed. */
  readonly before: LogState;
  readonly options: EngineOptions;
  /** In place of the recorded ones. */
  readonly policies: readonly Policy[] | null;
  /** Cooldowns that are not on the log, in remaining seconds. */
  readonly cooldowns: Cooldowns | null;
  /** Leave out snapshots that were only kept. */
  readonly cyclesOnly: boolean;
};

/** One snapshot of a what-if. */
export type RunStep = {
  readonly id: string;
  readonly timeMs: number;
  readonly body: StoredBody;
  /** The events of the recorded log between the previous snapshot and this one, see `holdInWhatIf` and {@link MOVES}. */
  readonly events: readonly LogEvent[];
  /** The decision, where it is known already; undefined: it is made. */
  readonly known: Decision | undefined;
};

/** Acts of the recorded Kronos. */
export const MOVES: ReadonlySet<string> = new Set([
  'migration.started',
  'migration.observed',
  'migration.completed',
  'migration.failed',
]);

const by: Actor = { service: 'planner', instance: 'what-if', version: plannerVersion };
/** Only an executor ends a move that was started: by anyone else it would stay in flight, and use the budget for ever. */
const executor: Actor = { ...by, service: 'executor' };

/** A digest that nothing is compared with. */
const NOT_COMPARED = '';

/** One aggregate in a what-if's world, snapshot by snapshot. */
export class WhatIfRun {
  readonly #start: RunStart;
  readonly #own: OwnLog;
  readonly #world: World;

  constructor(start: RunStart) {
    this.#start = start;
    const { aggregate, startMs, before, options, cooldowns } = start;
    const given = { nowMs: startMs, aggregates: [aggregate], options };
    this.#own = new OwnLog(cooldowns === null ? before : seed(before, cooldowns, given));
    this.#own.add(
      configuredEvent({
        aggregate,
        options,
        plannerVersion,
        basis: this.#own.sequence,
        by,
        nowMs: startMs,
      }),
    );
    const underWay = inFlight(aggregateState(before, aggregate));
    for (const task of underWay)
      this.#own.addMove(
        aggregate,
        { ...task.step, taskId: task.id, to: task.destination, planId: task.planId, attempt: task.attempt },
        startMs,
      );
    const there = new Map(underWay.map((task) => [task.step.serverId, task.destination]));
    this.#world = new World(there, new OwnMigrations(underWay));
  }

  /** Decides the next snapshot; null when it is left out. @throws PolicyNotRecorded, BadObject, RecordingInvalid */
  next({ id, timeMs: nowMs, body, events, known }: RunStep): WhatIfCycle | null {
    const { aggregate, options, policies, cyclesOnly } = this.#start;
    let moves = 0;
    for (const event of events) {
      if (holdInWhatIf.has(event.type)) this.#own.add(event);
      else this.#world.note(event);
      if (event.type === 'migration.completed') moves += 1;
    }
    const { snapshot: asRecorded } = openSnapshot(body);
    if (cyclesOnly && !isOfCycle(asRecorded.purpose)) return null;
    const snapshot = withPolicies(asRecorded, policies);
    const overlay = this.#world.next(snapshot);
    const laid = lay(overlay, { ...snapshot, purpose: isOfCycle(snapshot.purpose) ? snapshot.purpose : 'command' });
    const state = aggregateState(this.#own.folder.snapshot(), aggregate);
    const { decision, absence } =
      known === undefined
        ? decideCycle({ snapshot: laid, state, options })
        : { decision: known, absence: absenceOf(state, laid, known) };
    this.#own.add(
      decidedEvent(decision, {
        snapshot: laid,
        basis: this.#own.sequence,
        plannerVersion,
        options,
        digests: {
          snapshot: NOT_COMPARED,
          policies: NOT_COMPARED,
          state: NOT_COMPARED,
          options: NOT_COMPARED,
          decision: NOT_COMPARED,
        },
        absence,
        details: null,
        by,
        nowMs,
      }),
    );
    const recordedScores = score({ ...snapshot, options });
    const { before: found } = decision;
    // A plan that a closed window blocks is made again when the window opens.
    const plan = releaseOf(decision, options, nowMs) === 'released' ? decision.plan : null;
    if (plan !== null) this.#carryOut(plan, nowMs);
    return {
      aggregate,
      snapshotId: id,
      timeMs: nowMs,
      ...(snapshot.reconstructed === undefined ? {} : { unknown: snapshot.reconstructed.unknown }),
      recorded: {
        combined: recordedScores.combined,
        imbalance: Object.fromEntries(recordedScores.policies.map((p) => [p.policy, p.imbalance])),
        peak: peaksOf(recordedScores.policies, snapshot),
        emptyHosts: emptyHosts(snapshot),
        moves,
        ruleBreaks: ruleBreaks(snapshot),
      },
      simulated: {
        combined: found.combined,
        imbalance: Object.fromEntries(found.policies.map((p) => [p.policy, p.imbalance])),
        peak: peaksOf(score({ ...laid, options }).policies, laid),
        emptyHosts: emptyHosts(laid),
        moves: plan?.steps.length ?? 0,
        ruleBreaks: ruleBreaks(laid),
        outcome: decision.outcome,
        reason: decision.reason.text,
        decision,
        elsewhere: overlay.hosts.size,
      },
    };
  }

  /** Every step of a plan, done at once and in its order. */
  #carryOut({ id: planId, steps }: NonNullable<CycleDecided['data']['plan']>, nowMs: number): void {
    const { aggregate } = this.#start;
    for (const step of steps) {
      this.#own.addMove(aggregate, { ...step, planId, attempt: 1 }, nowMs);
      this.#world.move(step.serverId, step.to);
    }
    this.#own.add({
      ...this.#own.envelope(aggregate, messageId.dispatched(planId), planId, nowMs),
      type: 'plan.dispatched',
      data: { planId, tasks: steps.length },
    });
  }
}

const counted = ({ hosts }: Snapshot): Set<string> => new Set(hosts.filter(isCounted).map(({ name }) => name));

function peaksOf(policies: Snapshot['scores']['policies'], snapshot: Snapshot): WorldCycle['peak'] {
  const names = counted(snapshot);
  return Object.fromEntries(
    policies.map(({ policy, participates, hosts }) => {
      const values = Object.entries(hosts).flatMap(([host, { raw }]) => (names.has(host) ? [raw] : []));
      return [policy, participates && values.length > 0 ? values.reduce((a, b) => Math.max(a, b)) : null];
    }),
  );
}

function emptyHosts(snapshot: Snapshot): number {
  const names = counted(snapshot);
  for (const { host, alsoOn } of snapshot.servers) for (const name of [host, ...alsoOn]) names.delete(name);
  return names.size;
}

/** With the readings of allocation policies, which any snapshot has the figures for. */
function withAllocations(snapshot: Snapshot, policies: readonly Policy[]): Snapshot {
  const { hostReadings, vmReadings } = allocationReadings({ ...snapshot, policies });
  return {
    ...snapshot,
    hostReadings: [
      ...snapshot.hostReadings,
      ...hostReadings.filter((one) => hostReadingOf(snapshot.hostReadings, one) === undefined),
    ],
    vmReadings: [
      ...snapshot.vmReadings,
      ...vmReadings.filter((one) => vmReadingOf(snapshot.vmReadings, one) === undefined),
    ],
  };
}

/** Policies in place of a snapshot's own. @throws PolicyNotRecorded */
function withPolicies(recorded: Snapshot, policies: readonly Policy[] | null): Snapshot {
  if (policies === null) return recorded;
  const snapshot = withAllocations(recorded, policies);
  for (const policy of policies.filter((p) => p.enabled)) {
    for (const { use, query } of queriesOf(policy)) {
      if (readingOf(snapshot, policy, use) !== undefined) continue;
      const recordedQueries = (snapshot[policyQueries[use].readings] ?? []).map((reading) => reading.query);
      throw new PolicyNotRecorded(policy.name, query, snapshot.id, [...new Set(recordedQueries)]);
    }
  }
  return { ...snapshot, policies: [...policies] };
}

type MoveStep = {
  readonly planId: string;
  readonly attempt: number;
  readonly taskId: string;
  readonly serverId: string;
  readonly from: string;
  readonly to: string;
  readonly groups: readonly { readonly id: string }[];
  readonly ramMb: number;
  readonly diskGb: number;
};

/** The what-if's log: nobody else reads it. */
class OwnLog {
  readonly folder: Folder;
  #sequence: number;

  constructor(from: Parameters<typeof createFolder>[0]) {
    this.folder = createFolder(from);
    this.#sequence = this.folder.sequence;
  }

  get sequence(): number {
    return this.#sequence;
  }

  add(event: LogEvent): void {
    this.#sequence += 1;
    // No server stamps it: it is stored when it happens.
    const stored: StoredEvent = { sequence: this.#sequence, storedAt: timeMs(event.time), event };
    this.folder.apply(stored);
  }

  envelope(aggregate: string, id: string, planId: string, atMs: number) {
    const time = iso(atMs);
    return {
      version: 1 as const,
      id,
      time,
      aggregate,
      by,
      correlationId: planId,
      causationId: messageId.decided(planId),
    };
  }

  /** A move that was started and completed in the same moment. */
  addMove(aggregate: string, step: MoveStep, atMs: number): void {
    const { planId, attempt } = step;
    const about = {
      taskId: step.taskId,
      planId,
      serverId: step.serverId,
      attempt,
      from: step.from,
      destination: step.to,
    };
    this.add({
      ...this.envelope(aggregate, messageId.started(step.taskId, attempt), planId, atMs),
      by: executor,
      type: 'migration.started',
      data: {
        ...about,
        groups: step.groups.map((group) => group.id),
        newestMigrationId: 0,
        forced: false,
        ramMb: step.ramMb,
        diskGb: step.diskGb,
      },
    });
    this.add({
      ...this.envelope(aggregate, messageId.ended(step.taskId, attempt), planId, atMs),
      by: executor,
      type: 'migration.completed',
      data: { ...about, outcome: 'migrated', host: step.to, retries: attempt - 1, nova: null, warnings: [] },
    });
  }
}
