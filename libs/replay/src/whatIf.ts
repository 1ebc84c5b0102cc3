import type {
  Actor,
  CycleDecided,
  Decision,
  EngineOptions,
  LogEvent,
  Policy,
  Snapshot,
  StoredEvent,
} from '@kronos/contracts';
import { ALL, messageId, timeMs } from '@kronos/contracts';
import { configuredEvent, decidedEvent, digest, runCycle } from '@kronos/cycle';
import { plannerVersion, score } from '@kronos/placement';
import { aggregateState, type Cooldowns, createFolder, type Folder, inFlight, seed } from '@kronos/projections';
import { NothingRecorded, PolicyNotRecorded } from './errors.ts';
import type { History, Range, SnapshotEntry } from './history.ts';
import { lay } from './overlay.ts';
import { type RuleBreaks, ruleBreaks } from './rules.ts';
import type { Progress } from './verify.ts';
import { attemptsOf, World } from './world.ts';

/** What is otherwise than it was. */
export type Change = {
  /** Policies in place of the recorded ones. */
  readonly policies?: readonly Policy[];
  /** Applied to the options that were in force at the start; throws where they do not fit. */
  readonly options?: (recorded: EngineOptions) => EngineOptions;
  /** The options where the recording names none. */
  readonly defaults: EngineOptions;
  /** Cooldowns and quarantines at the start, in seconds remaining. */
  readonly cooldowns?: Cooldowns;
};

/** One world at one snapshot. */
export type WorldCycle = {
  /** Combined imbalance when the snapshot was taken, by the what-if's policies; null when none takes part. */
  readonly combined: number | null;
  /** By policy. */
  readonly imbalance: Readonly<Record<string, number | null>>;
  /** Recorded: completed since the snapshot before. Simulated: planned on this one, and done at once. */
  readonly moves: number;
  readonly ruleBreaks: RuleBreaks;
};

/** One snapshot of a what-if: as it was recorded, and as it would have been. */
export type WhatIfCycle = {
  readonly aggregate: string;
  readonly snapshotId: string;
  readonly timeMs: number;
  readonly recorded: WorldCycle;
  readonly simulated: WorldCycle & {
    readonly outcome: Decision['outcome'];
    readonly reason: string;
    readonly decision: Decision;
    /** VMs that are elsewhere than in the recording. */
    readonly elsewhere: number;
  };
};

const by: Actor = { service: 'planner', instance: 'what-if', version: plannerVersion };

/**
 * Runs the snapshots of a range again with something otherwise. It has a log of its own, which begins with what was
 * remembered at the first snapshot; every plan is released and its moves are done at once; they are laid over the
 * snapshots that follow. What people asked of the real one (pauses, quarantines) holds here too.
 *
 * @throws PolicyNotRecorded, NothingRecorded
 */
export async function* whatIf(
  history: History,
  range: Range,
  change: Change,
  onProgress: Progress = () => {},
): AsyncGenerator<WhatIfCycle, void, undefined> {
  const byAggregate = new Map<string, SnapshotEntry[]>();
  let total = 0;
  // Snapshots that were only kept stand beside the cycles; where there are no cycles, they are all there is.
  const cyclesOnly = await hasDecisions(history, range);
  for await (const entry of history.snapshots(range)) {
    if (entry.purpose === 'record' && cyclesOnly) continue;
    byAggregate.set(entry.aggregate, [...(byAggregate.get(entry.aggregate) ?? []), entry]);
    total += 1;
  }
  if (total === 0)
    throw new NothingRecorded(
      `${history.name} holds no snapshot in that range`,
      'Give another range, or record one: kronos record.',
    );
  let done = 0;
  onProgress(0, total);
  for (const [aggregate, entries] of [...byAggregate].sort(([a], [b]) => (a < b ? -1 : 1)))
    for await (const cycle of lane(history, aggregate, entries, change)) {
      yield cycle;
      done += 1;
      onProgress(done, total);
    }
}

async function hasDecisions(history: History, range: Range): Promise<boolean> {
  for await (const _ of history.decisions(range)) return true;
  return false;
}

/** What the recorded log says about one aggregate: its state at the start, and what happened since. */
type Past = { readonly folder: Folder; readonly events: LogEvent[] };

/**
 * The log up to what the first snapshot was decided on; where it was not decided, up to the snapshot's time.
 */
async function pastOf(history: History, { aggregate, id, timeMs }: SnapshotEntry): Promise<Past> {
  let basis: number | null = null;
  for await (const { event } of history.decisions({ aggregates: [aggregate], sinceMs: timeMs, untilMs: timeMs }))
    if (event.data.snapshotId === id) basis = event.data.basis;
  const folder = createFolder();
  const events: LogEvent[] = [];
  for await (const stored of history.events()) {
    const { event, sequence, storedAt } = stored;
    if (event.aggregate !== aggregate && event.aggregate !== ALL) continue;
    if (basis === null ? storedAt <= timeMs : sequence <= basis) folder.apply(stored);
    else if (event.type !== 'unreadable') events.push(event);
  }
  return { folder, events };
}

const CARRIED: ReadonlySet<string> = new Set([
  'aggregate.paused',
  'aggregate.resumed',
  'instance.quarantined',
  'instance.unquarantined',
]);

async function* lane(
  history: History,
  aggregate: string,
  entries: readonly SnapshotEntry[],
  change: Change,
): AsyncGenerator<WhatIfCycle, void, undefined> {
  const [first] = entries;
  if (first === undefined) return;
  const startMs = first.timeMs;
  const past = await pastOf(history, first);
  const before = past.folder.snapshot();
  const recordedOptions = aggregateState(before, aggregate).configured?.options ?? change.defaults;
  // Whether people answer, and whether it was a dry run, is of the recording: here every plan is carried out.
  const options: EngineOptions = {
    ...(change.options?.(recordedOptions) ?? recordedOptions),
    dryRun: false,
    approval: 'auto',
  };
  const given = { nowMs: startMs, aggregates: [aggregate], options };
  const own = new OwnLog(change.cooldowns === undefined ? before : seed(before, change.cooldowns, given));
  own.add(configuredEvent(aggregate, options, digest(options), plannerVersion, own.sequence, by, startMs));
  const underWay = inFlight(aggregateState(before, aggregate));
  const start = new Map(underWay.map((task) => [task.step.serverId, task.destination]));
  for (const task of underWay)
    own.addMove(aggregate, task.planId, { ...task.step, taskId: task.id, to: task.destination }, task.attempt, startMs);

  const attempts = attemptsOf(past.events);
  const world = new World(attempts, start);
  const commands = past.events.filter((event) => CARRIED.has(event.type));
  const completions = past.events.filter((event) => event.type === 'migration.completed');
  let recordedMoves = 0;
  for (const entry of entries) {
    const { snapshot: asRecorded } = await entry.load();
    const snapshot = withPolicies(asRecorded, change.policies);
    const nowMs = entry.timeMs;
    while (commands[0] !== undefined && Date.parse(commands[0].time) <= nowMs) {
      const command = commands.shift();
      if (command !== undefined) own.add(command);
    }
    let moves = 0;
    while (completions[recordedMoves] !== undefined && Date.parse(completions[recordedMoves]?.time ?? '') <= nowMs) {
      recordedMoves += 1;
      moves += 1;
    }
    const overlay = world.next(snapshot);
    const laid = lay(overlay, { ...snapshot, purpose: snapshot.purpose === 'record' ? 'command' : snapshot.purpose });
    const state = aggregateState(own.folder.snapshot(), aggregate);
    const { decision, digests, absence } = runCycle({ snapshot: laid, state, options });
    own.add(
      decidedEvent(decision, {
        snapshot: laid,
        basis: own.sequence,
        plannerVersion,
        options,
        digests: { ...digests, snapshot: digest(laid) },
        absence,
        details: null,
        by,
        nowMs,
      }),
    );
    const recordedScores = score({ ...snapshot, options });
    const { before: found } = decision;
    yield {
      aggregate,
      snapshotId: entry.id,
      timeMs: nowMs,
      recorded: {
        combined: recordedScores.combined,
        imbalance: Object.fromEntries(recordedScores.policies.map((p) => [p.policy, p.imbalance])),
        moves,
        ruleBreaks: ruleBreaks(snapshot),
      },
      simulated: {
        combined: found.combined,
        imbalance: Object.fromEntries(found.policies.map((p) => [p.policy, p.imbalance])),
        moves: decision.plan?.steps.length ?? 0,
        ruleBreaks: ruleBreaks(laid),
        outcome: decision.outcome,
        reason: decision.reason.text,
        decision,
        elsewhere: overlay.hosts.size,
      },
    };
    if (decision.plan !== null) carryOut(own, world, aggregate, decision.plan, nowMs);
  }
}

/** Every step of a plan, done at once and in its order. */
function carryOut(
  own: OwnLog,
  world: World,
  aggregate: string,
  plan: NonNullable<CycleDecided['data']['plan']>,
  nowMs: number,
): void {
  for (const step of plan.steps) {
    own.addMove(aggregate, plan.id, step, 1, nowMs);
    world.move(step.serverId, step.to);
  }
  own.add({
    ...own.envelope(aggregate, messageId.dispatched(plan.id), plan.id, nowMs),
    type: 'plan.dispatched',
    data: { planId: plan.id, tasks: plan.steps.length },
  });
}

/** Policies in place of a snapshot's own. @throws PolicyNotRecorded */
function withPolicies(snapshot: Snapshot, policies: readonly Policy[] | undefined): Snapshot {
  if (policies === undefined) return snapshot;
  for (const policy of policies.filter((p) => p.enabled)) {
    const hostQueries = [policy.imbalanceQuery, policy.capacityQuery, policy.hostSizeQuery];
    for (const query of hostQueries)
      if (query !== null && !snapshot.hostReadings.some((r) => r.query === query && r.label === policy.hostLabel))
        throw new PolicyNotRecorded(policy.name, query, snapshot.id, [
          ...new Set(snapshot.hostReadings.map((r) => r.query)),
        ]);
    const profile = snapshot.vmReadings.some(
      (r) =>
        r.query === policy.vmProfileQuery &&
        r.label === policy.vmProfileLabel &&
        r.labelType === policy.vmProfileLabelType,
    );
    if (!profile)
      throw new PolicyNotRecorded(policy.name, policy.vmProfileQuery, snapshot.id, [
        ...new Set(snapshot.vmReadings.map((r) => r.query)),
      ]);
  }
  return { ...snapshot, policies: [...policies] };
}

type MoveStep = {
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
    const time = new Date(atMs).toISOString();
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
  addMove(aggregate: string, planId: string, step: MoveStep, attempt: number, atMs: number): void {
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
      type: 'migration.completed',
      data: { ...about, outcome: 'migrated', host: step.to, retries: attempt - 1, nova: null, warnings: [] },
    });
  }
}

export type WorldTotals = {
  readonly moves: number;
  /** Mean over the snapshots at which a policy took part; null when none did. */
  readonly meanImbalance: number | null;
  readonly maxImbalance: number | null;
  readonly lastImbalance: number | null;
  /** At the last snapshot. */
  readonly ruleBreaks: RuleBreaks;
};

export type WhatIfTotals = {
  readonly aggregate: string;
  readonly snapshots: number;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly recorded: WorldTotals;
  readonly simulated: WorldTotals;
};

/** Totals by aggregate. */
export function whatIfTotals(cycles: readonly WhatIfCycle[]): WhatIfTotals[] {
  return [...Map.groupBy(cycles, (cycle) => cycle.aggregate)].map(([aggregate, own]) => {
    const last = own.at(-1);
    const of = (world: (cycle: WhatIfCycle) => WorldCycle): WorldTotals => {
      const values = own.flatMap((cycle) => world(cycle).combined ?? []);
      return {
        moves: own.reduce((sum, cycle) => sum + world(cycle).moves, 0),
        meanImbalance: values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length,
        maxImbalance: values.length === 0 ? null : Math.max(...values),
        lastImbalance: values.at(-1) ?? null,
        ruleBreaks: last === undefined ? NO_BREAKS : world(last).ruleBreaks,
      };
    };
    return {
      aggregate,
      snapshots: own.length,
      sinceMs: own[0]?.timeMs ?? 0,
      untilMs: last?.timeMs ?? 0,
      recorded: of((cycle) => cycle.recorded),
      simulated: of((cycle) => cycle.simulated),
    };
  });
}

const NO_BREAKS: RuleBreaks = { affinity: 0, 'anti-affinity': 0, 'soft-affinity': 0, 'soft-anti-affinity': 0 };
