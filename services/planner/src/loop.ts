import type { Clock } from '@kronos/clock';
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
  releaseOf,
  requests,
  runCycle,
  withoutDetails,
} from '@kronos/cycle';
import { AppendConflict, contextFrom, type Delivered, type EventLog, LogFull, type LogView } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import { type AggregateState, aggregateState, type Folder, undispatched } from '@kronos/projections';
import { attributes, type Logger, spans, withSpan } from '@kronos/telemetry';
import { SpanKind, type Tracer } from '@opentelemetry/api';
import { eligibility } from './eligibility.ts';
import type { PlannerMeters } from './meters.ts';
import { dispatchedEvent, overdueResults } from './tasks.ts';

export type PlannerDeps = {
  readonly log: EventLog;
  readonly view: LogView<Folder>;
  readonly aggregates: readonly string[];
  readonly options: EngineOptions;
  readonly by: Actor;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly meters: PlannerMeters;
  readonly clock: Clock;
};

export type Planner = {
  /** Runs until it was stopped and the log is closed; rejects when the log can no longer be read. */
  readonly run: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Aggregates whose newest snapshot has a time that cannot be trusted. */
  readonly skewed: () => readonly string[];
};

/** Tasks published at once. */
const PUBLISH_WINDOW = 64;

/**
 * Reads the newest snapshot of each aggregate, folds the log, decides, appends. Aggregates never wait for each other, and
 * each one is handled by one worker at a time.
 */
export function createPlanner(deps: PlannerDeps): Planner {
  const { log, view, options, by, logger, tracer, meters } = deps;
  const clock = (): number => deps.clock.now();
  const optionsDigest = digest(options);
  const newest = new Map<string, Delivered<SnapshotTaken>>();
  const busy = new Map<string, Promise<void>>();
  const skewed = new Set<string>();
  let stopped = false;
  let fail: (error: unknown) => void = () => {};

  const stateOf = (aggregate: string): AggregateState => aggregateState(view.state.snapshot(), aggregate);

  /** Has the aggregate looked at again, after what is under way for it. */
  function wake(aggregate: string): void {
    const before = busy.get(aggregate) ?? Promise.resolve();
    const next = before.then(() => (stopped ? undefined : attend(aggregate))).catch((error: unknown) => fail(error));
    busy.set(aggregate, next);
  }

  async function attend(aggregate: string): Promise<void> {
    const delivered = newest.get(aggregate);
    newest.delete(aggregate);
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
        logger.error({ aggregate, err: error }, 'the event log is full: nothing is planned until it has room');
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
    await finishReleased(aggregate);
    const may = eligibility(taken, delivered.storedAt, stateOf(aggregate), options, clock());
    if (!may.ok) {
      if (may.reason.code === 'clock-skew') skewed.add(aggregate);
      meters.notDecided(aggregate, may.reason.code);
      logger[may.alarm ? 'error' : 'debug'](
        { aggregate, snapshotId: taken.data.snapshotId, reason: may.reason },
        'not decided',
      );
      return;
    }
    skewed.delete(aggregate);
    await withSpan(
      tracer,
      spans.decide,
      {
        kind: SpanKind.CONSUMER,
        parent: contextFrom(delivered.traceparent),
        attributes: { [attributes.aggregate]: aggregate, [attributes.snapshotId]: taken.data.snapshotId },
      },
      async (span) => {
        await configure(aggregate);
        const snapshot = await log.getSnapshot(taken);
        const decided = await decideOn(aggregate, taken, snapshot);
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

  /** Puts the options on the log unless they are the ones in force. */
  async function configure(aggregate: string): Promise<void> {
    const { configured } = stateOf(aggregate);
    if (configured?.optionsDigest === optionsDigest && configured.plannerVersion === plannerVersion) return;
    const event = configuredEvent(aggregate, options, optionsDigest, plannerVersion, view.sequence, by, clock());
    await log.append(event, { expectedLastSequence: view.lastSequenceOf(subject('plans', aggregate)) });
    await view.refresh();
  }

  async function decideOn(aggregate: string, taken: SnapshotTaken, snapshot: Snapshot): Promise<CycleDecided> {
    const basis = view.sequence;
    const state = stateOf(aggregate);
    const started = deps.clock.monotonic();
    const { decision, digests } = runCycle({ snapshot, state, options });
    meters.decided(aggregate, decision, releaseOf(decision, options), deps.clock.monotonic() - started);
    const { kept, details } = await shorten(snapshot.id, decision);
    const event = decidedEvent(kept, {
      snapshot,
      basis,
      plannerVersion,
      options,
      digests: { snapshot: taken.data.body.digest, ...digests },
      details,
      by,
      nowMs: clock(),
    });
    await log.append(event, { expectedLastSequence: view.lastSequenceOf(subject('plans', aggregate)) });
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

  async function shorten(snapshotId: string, decision: Decision) {
    const bytes = new TextEncoder().encode(JSON.stringify(decision));
    if (bytes.length <= MAX_EVENT_BYTES) return { kept: decision, details: null };
    const details = await log.objects.put(bucketNames.details, snapshotId, bytes);
    return { kept: withoutDetails(decision), details };
  }

  /** Puts the tasks of released plans on the work queue, and ends tasks that were left behind. */
  async function finishReleased(aggregate: string): Promise<void> {
    await view.refresh();
    const state = stateOf(aggregate);
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
    for (const result of overdueResults(state, by, clock())) {
      await log.append(result, { expectedLastSequence: view.lastSequenceOf(subject('results', aggregate)) });
      logger.warn({ aggregate, taskId: result.data.taskId }, 'ended a task that no executor ended');
      await view.refresh();
    }
    if (undispatched(state).length > 0) await view.refresh();
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
      for (const aggregate of deps.aggregates) if (undispatched(stateOf(aggregate)).length > 0) wake(aggregate);
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
  };
}
