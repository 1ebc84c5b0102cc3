import { aggregateAt, type LogGuard } from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import { engineFields } from '@kronos/config';
import {
  type Actor,
  bucketNames,
  type CycleDecided,
  type Decision,
  type EngineOptions,
  type Snapshot,
  type SnapshotTaken,
  subject,
} from '@kronos/contracts';
import {
  configuredEvent,
  decidedEvent,
  digest,
  MAX_EVENT_BYTES,
  requests,
  runCycle,
  withoutDetails,
} from '@kronos/cycle';
import {
  AppendConflict,
  AppendWithdrawn,
  contextFrom,
  type Delivered,
  type EventLog,
  LogFull,
  type LogPosition,
  type LogView,
} from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import {
  type AggregateState,
  inForce,
  type LogState,
  type Standing,
  standing,
  undispatched,
} from '@kronos/projections';
import { attributes, type Logger, spans, withSpan } from '@kronos/telemetry';
import { SpanKind, type Tracer } from '@opentelemetry/api';
import { type Eligibility, eligibility, overtaken } from './eligibility.ts';
import type { PlannerMeters } from './meters.ts';
import { dispatchedEvent, overdueResults } from './tasks.ts';

export type PlannerDeps = {
  readonly log: EventLog;
  readonly view: LogView<LogState>;
  /** While it has a problem nothing is planned or dispatched. Absent: the log is not in doubt. */
  readonly guard?: Pick<LogGuard, 'problem' | 'agrees' | 'identity'>;
  readonly aggregates: readonly string[];
  /** The options of an aggregate; asked once for each. */
  readonly optionsOf: (aggregate: string) => EngineOptions;
  readonly by: Actor;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly meters: PlannerMeters;
  readonly clock: Clock;
  /** What is wrong with the own clock; null: nothing. A planner with a wrong clock plans nothing. */
  readonly clockProblem: () => string | null;
};

export type Planner = {
  /** Runs until it was stopped and the log is closed; rejects when the log can no longer be read. */
  readonly run: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Aggregates whose newest snapshot has a time that cannot be trusted. */
  readonly skewed: () => readonly string[];
  /** Why aggregates are not planned here: another planner, which started later, has other options for them. */
  readonly yielding: () => readonly string[];
};

type DeliveredSnapshot = Extract<Delivered<SnapshotTaken>, { readonly problem?: undefined }>;

/** Tasks published at once. */
const PUBLISH_WINDOW = 64;

/**
 * Reads the newest snapshot of each aggregate, folds the log, decides, appends. Aggregates never wait for each other, and
 * each one is handled by one worker at a time.
 */
export function createPlanner(deps: PlannerDeps): Planner {
  const { log, view, by, logger, tracer, meters } = deps;
  const clock = (): number => deps.clock.now();
  const configured = new Map(
    deps.aggregates.map((aggregate) => {
      const options = deps.optionsOf(aggregate);
      return [aggregate, { options, optionsDigest: digest(options) }] as const;
    }),
  );
  function own(aggregate: string): { readonly options: EngineOptions; readonly optionsDigest: string } {
    const found = configured.get(aggregate);
    if (found === undefined) throw new RangeError(`${aggregate} is not an aggregate of this planner`);
    return found;
  }
  const newest = new Map<string, Delivered<SnapshotTaken>>();
  const busy = new Map<string, Promise<void>>();
  const skewed = new Set<string>();
  /** The log's end when this planner started: its place among the planners. */
  const startedAfter = view.at().sequence;
  /** Aggregates for which its options have been in force. */
  const wasInForce = new Set<string>();
  const inDoubt = (): string | null => deps.guard?.problem ?? null;
  let stopped = false;
  let fail: (error: unknown) => void = () => {};

  /** The log as folded so far. */
  const now = (aggregate: string): LogPosition<AggregateState> => aggregateAt(view.at(), aggregate);
  /** The log folded to its end. */
  const level = async (aggregate: string): Promise<LogPosition<AggregateState>> =>
    aggregateAt(await view.refresh(), aggregate);

  /** Has the aggregate looked at again, after what is under way for it. */
  function wake(aggregate: string): void {
    const before = busy.get(aggregate) ?? Promise.resolve();
    const next = before.then(() => (stopped ? undefined : attend(aggregate))).catch((error: unknown) => fail(error));
    busy.set(aggregate, next);
  }

  async function attend(aggregate: string): Promise<void> {
    const delivered = newest.get(aggregate);
    newest.delete(aggregate);
    if (inDoubt() !== null) {
      meters.notDecided(aggregate, 'other-log');
      return;
    }
    try {
      if (delivered === undefined) await finishReleased(aggregate);
      else await consider(aggregate, delivered);
    } catch (error) {
      if (error instanceof AppendConflict) {
        // Somebody else decided: the log has the decision, this one is dropped.
        meters.notDecided(aggregate, 'lost-race');
        logger.debug({ aggregate }, 'another planner decided first');
      } else if (error instanceof LogFull) {
        meters.notDecided(aggregate, 'log-full');
        logger.error({ aggregate, err: error }, 'the event log is full: nothing is planned until its limit is raised');
      } else {
        meters.notDecided(aggregate, 'error');
        logger.error({ aggregate, err: error }, 'this cycle was not decided');
      }
    }
  }

  async function consider(aggregate: string, delivered: Delivered<SnapshotTaken>): Promise<void> {
    if (delivered.problem !== undefined) {
      meters.notDecided(aggregate, 'unreadable-snapshot');
      logger.error(
        { aggregate, sequence: delivered.sequence, problem: delivered.problem },
        'dropped a snapshot message that cannot be read',
      );
      return;
    }
    const taken = delivered.message;
    if (!(await ofThisLog(taken, delivered.storedAt))) {
      meters.notDecided(aggregate, 'other-log');
      logger.warn({ aggregate, snapshotId: taken.data.snapshotId, log: taken.data.log }, 'not decided: another log');
      return;
    }
    await finishReleased(aggregate);
    if (!eligible(aggregate, delivered, now(aggregate).state)) return;
    await withSpan(
      tracer,
      spans.decide,
      {
        kind: SpanKind.CONSUMER,
        parent: contextFrom(delivered.traceparent),
        attributes: { [attributes.aggregate]: aggregate, [attributes.snapshotId]: taken.data.snapshotId },
      },
      async (span) => {
        const snapshot = await log.getSnapshot(taken);
        const decided = await decideOnce(aggregate, delivered, snapshot);
        if (decided === null) return;
        span.setAttributes({
          [attributes.basis]: decided.data.basis,
          [attributes.outcome]: decided.data.outcome,
          [attributes.reason]: decided.data.reason.code,
          [attributes.steps]: decided.data.plan?.steps.length ?? 0,
          [attributes.candidates]: decided.data.plan?.candidatesEvaluated ?? 0,
        });
        await finishReleased(aggregate);
      },
    );
  }

  /** Whether a snapshot was taken on this log, and not on more of it than there is. */
  async function ofThisLog({ data }: SnapshotTaken, storedAt: number): Promise<boolean> {
    const { guard } = deps;
    if (guard === undefined || data.log === undefined) return true;
    const source = `the snapshot ${data.snapshotId}`;
    const agrees = await guard.agrees({ source, ...data.log, seenAtMs: storedAt });
    return agrees && data.log.installationId === (inForce(guard.identity)?.id ?? null);
  }

  const judge = (delivered: DeliveredSnapshot, state: AggregateState): Eligibility =>
    eligibility(delivered.message, delivered.storedAt, state, own(delivered.message.aggregate).options, {
      nowMs: clock(),
      problem: deps.clockProblem(),
    });

  /** Whether the snapshot may be decided now; says why not. */
  function eligible(aggregate: string, delivered: DeliveredSnapshot, state: AggregateState): boolean {
    const may = judge(delivered, state);
    if (may.ok) {
      skewed.delete(aggregate);
      return true;
    }
    if (may.reason.code === 'clock-skew') skewed.add(aggregate);
    meters.notDecided(aggregate, may.reason.code);
    const { snapshotId } = delivered.message.data;
    logger[may.alarm ? 'error' : 'debug']({ aggregate, snapshotId, reason: may.reason }, 'not decided');
    return false;
  }

  /**
   * Decides the snapshot on the log as it stands, and appends the decision with the expectation of that very state. What
   * can have aged while it waited is judged again before the append, and again whenever the append's bytes leave: then the
   * snapshot is decided anew, or not at all.
   *
   * @returns null when the snapshot may not be decided any more
   * @throws AppendConflict when another planner decided it
   */
  async function decideOnce(
    aggregate: string,
    delivered: DeliveredSnapshot,
    snapshot: Snapshot,
  ): Promise<CycleDecided | null> {
    const { options } = own(aggregate);
    for (;;) {
      const at = await level(aggregate);
      if (!eligible(aggregate, delivered, at.state)) return null;
      const stands = standingOf(aggregate, at.state);
      if (stands.kind === 'yield') {
        meters.notDecided(aggregate, 'other-options');
        logger.error({ aggregate, reason: yieldText(aggregate, stands) }, 'not decided');
        return null;
      }
      if (stands.kind === 'configure') {
        await configure(aggregate, at);
        continue;
      }
      wasInForce.add(aggregate);
      const started = deps.clock.monotonic();
      const { decision, digests, absence } = runCycle({ snapshot, state: at.state, options });
      const decideMs = deps.clock.monotonic() - started;
      const { kept, details } = await shorten(snapshot.id, decision);
      const event = decidedEvent(kept, {
        snapshot,
        basis: at.sequence,
        plannerVersion,
        options,
        digests: { snapshot: delivered.message.data.body.digest, ...digests },
        absence,
        details,
        by,
        nowMs: clock(),
      });
      const veto = (): string | null => {
        const { state } = now(aggregate);
        const may = judge(delivered, state);
        return inDoubt() ?? (may.ok ? overtaken(at.state, state) : may.reason.text);
      };
      await view.refresh();
      try {
        await log.append(event, { expectedLastSequence: at.expectedOn(subject('plans', aggregate)), veto });
      } catch (error) {
        if (!(error instanceof AppendWithdrawn)) throw error;
        const late = { aggregate, snapshotId: snapshot.id, reason: error.message, decideMs: Math.round(decideMs) };
        logger.warn(late, 'the decision was too late');
        continue;
      }
      meters.decided(aggregate, decision, event.data.release, decideMs);
      logger.info(
        {
          aggregate,
          snapshotId: snapshot.id,
          outcome: decision.outcome,
          release: event.data.release,
          steps: decision.plan?.steps.length ?? 0,
          combined: decision.before.combined,
          after: decision.plan?.after.combined ?? null,
          reason: decision.reason,
        },
        'decided',
      );
      return event;
    }
  }

  const standingOf = (aggregate: string, state: AggregateState): Standing =>
    standing(state, {
      startedAfter,
      ...own(aggregate),
      plannerVersion,
      wasInForce: wasInForce.has(aggregate),
    });

  /** Puts the options on the log. */
  async function configure(aggregate: string, { sequence, expectedOn }: LogPosition<AggregateState>): Promise<void> {
    const { options, optionsDigest } = own(aggregate);
    await log.append(
      configuredEvent(aggregate, options, optionsDigest, plannerVersion, sequence, by, clock(), startedAfter),
      { expectedLastSequence: expectedOn(subject('plans', aggregate)) },
    );
    wasInForce.add(aggregate);
  }

  const yieldText = (aggregate: string, stands: Extract<Standing, { kind: 'yield' }>): string => {
    const { to, options: theirs, differing } = stands;
    const { options } = own(aggregate);
    const named = differing.map((field) => {
      const value = (of: EngineOptions) =>
        JSON.stringify(field === 'timezone' ? (of.timezone?.name ?? 'UTC') : of[field]);
      return `${engineFields[field] ?? field} (${value(options)} here, ${value(theirs)} there)`;
    });
    return `${aggregate} is planned by ${to}, which started later with other options: ${named.join(', ')}; give all planners the same options and restart this one`;
  };

  async function shorten(snapshotId: string, decision: Decision) {
    const bytes = new TextEncoder().encode(JSON.stringify(decision));
    if (bytes.length <= MAX_EVENT_BYTES) return { kept: decision, details: null };
    const details = await log.objects.put(bucketNames.details, snapshotId, bytes);
    return { kept: withoutDetails(decision), details };
  }

  /** Puts the tasks of released plans on the work queue, and ends tasks that were left behind. */
  async function finishReleased(aggregate: string): Promise<void> {
    const { state } = await level(aggregate);
    for (const plan of undispatched(state)) {
      const tasks = requests(state, plan, by, clock());
      const about = {
        [attributes.aggregate]: aggregate,
        [attributes.planId]: plan.id,
        [attributes.steps]: tasks.length,
      };
      await withSpan(tracer, spans.dispatch, { attributes: about }, async () => {
        for (let i = 0; i < tasks.length; i += PUBLISH_WINDOW)
          await Promise.all(tasks.slice(i, i + PUBLISH_WINDOW).map((task) => log.append(task)));
        await log.append(dispatchedEvent(aggregate, plan, by, clock()));
      });
      meters.dispatched(aggregate, tasks.length);
      logger.info({ aggregate, planId: plan.id, tasks: tasks.length }, 'dispatched');
    }
    await endOverdue(aggregate);
  }

  /** Ends the tasks that no executor ended, each by the log as it stands after the one before it. */
  async function endOverdue(aggregate: string): Promise<void> {
    // A clock that is ahead would end tasks before their time.
    while (!stopped && deps.clockProblem() === null) {
      const at = await level(aggregate);
      const [result] = overdueResults(at.state, by, clock());
      if (result === undefined) return;
      try {
        await log.append(result, { expectedLastSequence: at.expectedOn(subject('results', aggregate)) });
        logger.warn({ aggregate, taskId: result.data.taskId }, 'ended a task that no executor ended');
      } catch (error) {
        // Another result came first: the log now says whether this task still has to be ended.
        if (!(error instanceof AppendConflict)) throw error;
      }
    }
  }

  async function readSnapshots(): Promise<void> {
    for await (const delivered of log.snapshots({ aggregates: deps.aggregates })) {
      const aggregate = deps.aggregates.find((a) => subject('snapshots', a) === delivered.subject);
      if (aggregate === undefined) continue;
      newest.set(aggregate, delivered);
      wake(aggregate);
    }
  }

  /** An approval releases a plan between two snapshots: its tasks need not wait for the next one. */
  async function readApprovals(): Promise<void> {
    for await (const { event } of view.changes()) {
      if (event.type !== 'plan.approved') continue;
      for (const aggregate of deps.aggregates) if (undispatched(now(aggregate).state).length > 0) wake(aggregate);
    }
  }

  return {
    async run() {
      const failed = new Promise<never>((_, reject) => {
        fail = reject;
      });
      for (const aggregate of deps.aggregates) wake(aggregate);
      try {
        await Promise.race([Promise.all([readSnapshots(), readApprovals()]), failed]);
      } catch (error) {
        // The connection is closed after a stop: that ends the reading, and is no failure.
        if (!stopped) throw error;
      }
    },
    async stop() {
      stopped = true;
      await Promise.all(busy.values());
    },
    skewed: () => [...skewed],
    yielding: () =>
      deps.aggregates.flatMap((aggregate) => {
        const stands = standingOf(aggregate, now(aggregate).state);
        return stands.kind === 'yield' ? [yieldText(aggregate, stands)] : [];
      }),
  };
}
