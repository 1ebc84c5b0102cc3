/** Decides a snapshot on the log as it stands, and appends the decision on that very state. */
import { aggregateAt } from '@kronos/checkpoints';
import {
  bucketNames,
  type CycleDecided,
  type EngineOptions,
  type PlanProposed,
  type PlanWithdrawn,
  type Snapshot,
  subject,
  timeMs,
} from '@kronos/contracts';
import {
  decidedEvent,
  MAX_EVENT_BYTES,
  type PlanRequest,
  proposedEvent,
  runProposal,
  withoutDetails,
  withoutRefused,
} from '@kronos/cycle';
import { AppendConflict, AppendWithdrawn, type LogPosition } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import { type AggregateState, aggregateState, comparisons, waitingPlan, wasProposed } from '@kronos/projections';
import type { Folded, PlannerDeps } from './deps.ts';
import type { OwnOptions } from './ownOptions.ts';
import type { DeliveredSnapshot, Permission } from './permission.ts';
import { type TimedDecider, timedDecider } from './timedDecider.ts';
import { goneReason, withdrawnEvent } from './withdraw.ts';

/**
 * Both decide again while the log changes under them: what can have aged is judged before the append, and again whenever the
 * append's bytes leave. Then the snapshot is decided again, or not at all.
 */
export type Decisions = {
  /**
   * Decides a cycle.
   *
   * @returns null when the snapshot may not be decided any more
   * @throws AppendConflict when another planner decided it
   */
  readonly cycle: (delivered: DeliveredSnapshot, snapshot: Snapshot) => Promise<CycleDecided | null>;
  /**
   * Answers a person's request for a plan. Another event of the aggregate's plans has it decided again; another planner's answer
   * ends it.
   */
  readonly proposal: (delivered: DeliveredSnapshot, request: PlanRequest) => Promise<void>;
  /** The aggregates of which a cycle takes longer to decide than until the next one is due. */
  readonly slow: TimedDecider['slow'];
};

export function decisions(
  deps: PlannerDeps,
  own: OwnOptions,
  { level }: Pick<Folded, 'level'>,
  permission: Permission,
): Decisions {
  const { log, view, by, logger, meters, clock } = deps;
  const timed = timedDecider(deps.decider, clock);

  /** The facts about its making that every decision on the log holds. */
  const stamp = <D>(at: LogPosition<AggregateState>, options: EngineOptions, digests: D) => ({
    basis: at.sequence,
    plannerVersion,
    options,
    digests,
    by,
    nowMs: clock.now(),
  });

  /**
   * Appends a decision with the expectation of the state that it was made on.
   *
   * @throws AppendWithdrawn when the snapshot may not be decided any more, or not on that state
   */
  async function appendOn(
    at: LogPosition<AggregateState>,
    delivered: DeliveredSnapshot,
    event: CycleDecided | PlanProposed | PlanWithdrawn,
  ): Promise<void> {
    const { aggregate } = event;
    const veto = (): string | null => permission.problem(delivered, at.state);
    await view.refresh();
    await log.append(event, { expectedLastSequence: at.expectedOn(subject('plans', aggregate)), veto });
  }

  /** Withdraws the plan that waits, if the snapshot shows that its reason is gone. Then the snapshot is decided without it. */
  async function withdrawn(
    at: LogPosition<AggregateState>,
    delivered: DeliveredSnapshot,
    snapshot: Snapshot,
  ): Promise<boolean> {
    const nowMs = clock.now();
    const waiting = snapshot.purpose === 'record' ? null : waitingPlan(at.state, nowMs);
    if (waiting === null || !waiting.open) return false;
    const reason = goneReason(waiting.plan, snapshot);
    if (reason === null) return false;
    const { aggregate } = snapshot;
    logger.info({ aggregate, planId: waiting.plan.id, reason }, 'withdrew a plan whose reason is gone');
    const event = withdrawnEvent(waiting.plan, { snapshot, reason, by, nowMs });
    try {
      await appendOn(at, delivered, event);
    } catch (error) {
      if (!(error instanceof AppendWithdrawn)) throw error;
    }
    return true;
  }

  /** Shortens a decision that is too large for its event, and stores the whole one as an object. */
  async function shorten<D>(id: string, decision: D, short: (decision: D) => D) {
    const bytes = new TextEncoder().encode(JSON.stringify(decision));
    if (bytes.length <= MAX_EVENT_BYTES) return { kept: decision, details: null };
    return { kept: short(decision), details: await log.objects.put(bucketNames.details, id, bytes) };
  }

  return {
    slow: timed.slow,
    async cycle(delivered, snapshot) {
      const { aggregate, data } = delivered.message;
      const { options } = own.of(aggregate);
      for (;;) {
        const at = await level(aggregate);
        const may = await permission.decides(delivered, at);
        if (may === 'no') return null;
        if (may === 'soon') continue;
        if (await withdrawn(at, delivered, snapshot)) continue;
        const { decision, digests, decideMs, ...fields } = await timed.cycle({ snapshot, state: at.state, options });
        const { kept, details } = await shorten(snapshot.id, decision, withoutDetails);
        const event = decidedEvent(kept, {
          ...stamp(at, options, { snapshot: data.body.digest, ...digests }),
          snapshot,
          ...fields,
          details,
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
        meters.compared(aggregate, comparisons(at.state, event.data, timeMs(snapshot.time)));
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
    },

    async proposal(delivered, request) {
      const { aggregate, data } = delivered.message;
      const { id: snapshotId } = request.snapshot;
      const { options } = own.of(aggregate);
      for (;;) {
        const whole = await view.refresh();
        const at = aggregateAt(whole, aggregate);
        if (wasProposed(whole.state, aggregate, request.planId)) return;
        const may = await permission.decides(delivered, at);
        if (may === 'no') return;
        if (may === 'soon') continue;
        const stateOf = (name: string): AggregateState => aggregateState(whole.state, name);
        const startedMs = clock.monotonic();
        const { decision, digests } = runProposal({ request, stateOf, options });
        const decideMs = clock.monotonic() - startedMs;
        const { kept, details } = await shorten(snapshotId, decision, withoutRefused);
        const event = proposedEvent(kept, {
          ...stamp(at, options, { snapshot: data.body.digest, ...digests }),
          request,
          details,
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
    },
  };
}
