/** Decides one snapshot: judges whether it may be decided, decides it on the log as it stands, and appends the decision. */
import { aggregateAt } from '@kronos/checkpoints';
import {
  bucketNames,
  type CycleDecided,
  type PlanProposed,
  type Snapshot,
  type SnapshotTaken,
  subject,
} from '@kronos/contracts';
import {
  configuredEvent,
  decidedEvent,
  MAX_EVENT_BYTES,
  type PlanRequest,
  planRequest,
  proposedEvent,
  runCycle,
  runProposal,
  withoutDetails,
  withoutRefused,
} from '@kronos/cycle';
import { AppendConflict, AppendWithdrawn, contextFrom, type Delivered, type LogPosition } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import { type AggregateState, aggregateState, inForce, wasProposed } from '@kronos/projections';
import { attributes, spans, withSpan } from '@kronos/telemetry';
import { SpanKind } from '@opentelemetry/api';
import type { Folded, PlannerDeps } from './deps.ts';
import { type Eligibility, eligibility, overtaken } from './eligibility.ts';
import { type OwnOptions, yieldText } from './ownOptions.ts';

type DeliveredSnapshot = Extract<Delivered<SnapshotTaken>, { readonly problem?: undefined }>;

export type Decider = {
  /** @throws AppendConflict when another planner decided it */
  readonly consider: (aggregate: string, delivered: Delivered<SnapshotTaken>) => Promise<void>;
  /** Aggregates whose newest snapshot has a time that cannot be trusted. */
  readonly skewed: ReadonlySet<string>;
};

/** @param finishReleased called before a snapshot is decided, and after */
export function decider(
  deps: PlannerDeps,
  own: OwnOptions,
  { now, level }: Folded,
  finishReleased: (aggregate: string) => Promise<void>,
): Decider {
  const { log, view, by, logger, tracer, meters } = deps;
  const clock = (): number => deps.clock.now();
  const skewed = new Set<string>();
  const inDoubt = (): string | null => deps.guard?.problem ?? null;

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
        const request = planRequest(snapshot);
        if (request !== null) {
          await proposeOnce(aggregate, delivered, request);
          return;
        }
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
    eligibility(delivered.message, delivered.storedAt, state, own.of(delivered.message.aggregate).options, {
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
   * snapshot is decided again, or not at all.
   *
   * @returns null when the snapshot may not be decided any more
   * @throws AppendConflict when another planner decided it
   */
  async function decideOnce(
    aggregate: string,
    delivered: DeliveredSnapshot,
    snapshot: Snapshot,
  ): Promise<CycleDecided | null> {
    const { options } = own.of(aggregate);
    for (;;) {
      const at = await level(aggregate);
      const may = await mayDecide(delivered, at);
      if (may === 'no') return null;
      if (may === 'soon') continue;
      const started = deps.clock.monotonic();
      const { decision, digests, absence } = runCycle({ snapshot, state: at.state, options });
      const decideMs = deps.clock.monotonic() - started;
      const { kept, details } = await shorten(snapshot.id, decision, withoutDetails);
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
      try {
        await appendOn(at, delivered, event);
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

  /**
   * Appends a decision with the expectation of the state that it was made on.
   *
   * @throws AppendWithdrawn when the snapshot may not be decided any more, or not on that state
   */
  async function appendOn(
    at: LogPosition<AggregateState>,
    delivered: DeliveredSnapshot,
    event: CycleDecided | PlanProposed,
  ): Promise<void> {
    const { aggregate } = event;
    const veto = (): string | null => {
      const { state } = now(aggregate);
      const may = judge(delivered, state);
      return inDoubt() ?? (may.ok ? overtaken(at.state, state) : may.reason.text);
    };
    await view.refresh();
    await log.append(event, { expectedLastSequence: at.expectedOn(subject('plans', aggregate)), veto });
  }

  /** Whether this planner decides the snapshot on this state; `soon`: on the next one, which has its options. */
  const mayDecide = async (
    delivered: DeliveredSnapshot,
    at: LogPosition<AggregateState>,
  ): Promise<'yes' | 'no' | 'soon'> => {
    const { aggregate } = delivered.message;
    return eligible(aggregate, delivered, at.state) ? await inCharge(aggregate, at) : 'no';
  };

  /** Whether this planner's options are in force; `soon`: it has just written them. */
  async function inCharge(aggregate: string, at: LogPosition<AggregateState>): Promise<'yes' | 'no' | 'soon'> {
    const stands = own.standing(aggregate, at.state);
    if (stands.kind === 'yield') {
      meters.notDecided(aggregate, 'other-options');
      logger.error({ aggregate, reason: yieldText(aggregate, stands, own.of(aggregate).options) }, 'not decided');
      return 'no';
    }
    if (stands.kind === 'configure') {
      await configure(aggregate, at);
      return 'soon';
    }
    own.areInForce(aggregate);
    return 'yes';
  }

  /** Puts the options on the log. */
  async function configure(aggregate: string, { sequence, expectedOn }: LogPosition<AggregateState>): Promise<void> {
    const { options, optionsDigest } = own.of(aggregate);
    await log.append(
      configuredEvent(aggregate, options, optionsDigest, plannerVersion, sequence, by, clock(), own.startedAfter),
      { expectedLastSequence: expectedOn(subject('plans', aggregate)) },
    );
    own.areInForce(aggregate);
  }

  /**
   * Answers a person's request for a plan, on the log as it stands: as {@link decideOnce}. Another event of the aggregate's
   * plans has it decided again; another planner's answer ends it.
   */
  async function proposeOnce(aggregate: string, delivered: DeliveredSnapshot, request: PlanRequest): Promise<void> {
    const { id: snapshotId } = request.snapshot;
    const { options } = own.of(aggregate);
    for (;;) {
      const whole = await view.refresh();
      const at = aggregateAt(whole, aggregate);
      if (wasProposed(whole.state, aggregate, request.planId)) return;
      const may = await mayDecide(delivered, at);
      if (may === 'no') return;
      if (may === 'soon') continue;
      const started = deps.clock.monotonic();
      const { decision, digests } = runProposal({
        request,
        stateOf: (name) => aggregateState(whole.state, name),
        options,
      });
      const decideMs = deps.clock.monotonic() - started;
      const { kept, details } = await shorten(snapshotId, decision, withoutRefused);
      const event = proposedEvent(kept, {
        request,
        basis: at.sequence,
        plannerVersion,
        options,
        digests: { snapshot: delivered.message.data.body.digest, ...digests },
        details,
        by,
        nowMs: clock(),
      });
      try {
        await appendOn(at, delivered, event);
      } catch (error) {
        if (!(error instanceof AppendWithdrawn || error instanceof AppendConflict)) throw error;
        logger.warn({ aggregate, snapshotId, reason: error.message }, 'the proposal was too late');
        continue;
      }
      const { outcome, reason, steps, refusals, left } = decision;
      logger.info(
        {
          aggregate,
          planId: event.data.planId,
          outcome,
          reason,
          release: event.data.release,
          steps: steps.length,
          refusals,
          left,
          decideMs: Math.round(decideMs),
        },
        'proposed',
      );
      return;
    }
  }

  async function shorten<D>(id: string, decision: D, short: (decision: D) => D) {
    const bytes = new TextEncoder().encode(JSON.stringify(decision));
    if (bytes.length <= MAX_EVENT_BYTES) return { kept: decision, details: null };
    return { kept: short(decision), details: await log.objects.put(bucketNames.details, id, bytes) };
  }

  return { consider, skewed };
}
