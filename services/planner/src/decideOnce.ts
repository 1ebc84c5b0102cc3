/** Decides a snapshot on the log as it stands, and appends the decision on that very state. */

import type { AggregateFold } from '@kronos/checkpoints';
import { aggregateAt } from '@kronos/checkpoints';
import {
  bucketNames,
  type CycleDecided,
  type Decision,
  type EngineOptions,
  type PlanProposed,
  type PlanWithdrawn,
  type ProposalDecision,
  type Reason,
  type Snapshot,
  subject,
  timeMs,
} from '@kronos/contracts';
import {
  decidedEvent,
  MAX_EVENT_BYTES,
  type PlanRequest,
  proposedEvent,
  withoutDetails,
  withoutRefused,
} from '@kronos/cycle';
import { AppendConflict, AppendWithdrawn, type LogPosition } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import { type AggregateState, aggregateState, comparisons, type LogState, wasProposed } from '@kronos/projections';
import type { PlannerDeps } from './deps.ts';
import type { OwnOptions } from './ownOptions.ts';
import type { DeliveredSnapshot, Permission } from './permission.ts';
import { type TimedDecider, timedDecider } from './timedDecider.ts';
import { lostPlan, withdrawnEvent } from './withdraw.ts';

/**
 * Decides cycles, and answers requests for plans. Both methods judge what can have aged before the append, and again whenever the
 * append's bytes leave. Where the log has changed, they decide the snapshot again, or not at all.
 */
export class Decisions {
  /** The aggregates of which a cycle takes longer to decide than until the next one is due. */
  readonly slow: TimedDecider['slow'];
  readonly #deps: PlannerDeps;
  readonly #own: OwnOptions;
  readonly #refresh: AggregateFold['refresh'];
  readonly #permission: Permission;
  readonly #timed: TimedDecider;

  constructor(deps: PlannerDeps, own: OwnOptions, { refresh }: Pick<AggregateFold, 'refresh'>, permission: Permission) {
    this.#deps = deps;
    this.#own = own;
    this.#refresh = refresh;
    this.#permission = permission;
    this.#timed = timedDecider(deps.decider, deps.clock);
    this.slow = this.#timed.slow;
  }

  /**
   * Decides a cycle.
   *
   * @returns null when the snapshot may not be decided any more
   * @throws AppendConflict when another planner decided it
   */
  async cycle(delivered: DeliveredSnapshot, snapshot: Snapshot): Promise<CycleDecided | null> {
    const { aggregate, data } = delivered.message;
    const { options } = this.#own.of(aggregate);
    for (;;) {
      const at = await this.#refresh(aggregate);
      const may = await this.#permission.decides(delivered, at);
      if (may === 'no') return null;
      if (may === 'soon') continue;
      if (await this.#withdrawn(at, delivered, snapshot)) continue;
      const { decision, digests, decideMs, ...fields } = await this.#timed.cycle({
        snapshot,
        state: at.state,
        options,
      });
      const { kept, details } = await this.#shorten(snapshot.id, decision, withoutDetails);
      const event = decidedEvent(kept, {
        ...this.#stamp(at, options, { snapshot: data.body.digest, ...digests }),
        snapshot,
        ...fields,
        details,
      });
      try {
        await this.#appendOn(at, delivered, event);
      } catch (error) {
        if (!(error instanceof AppendWithdrawn)) throw error;
        const late = { aggregate, snapshotId: snapshot.id, reason: error.message, decideMs: Math.round(decideMs) };
        this.#deps.logger.warn(late, 'the decision was too late');
        continue;
      }
      const { meters } = this.#deps;
      meters.decided(aggregate, decision, event.data.release, decideMs);
      meters.compared(aggregate, comparisons(at.state, event.data, timeMs(snapshot.time)));
      this.#logDecided(event, decision);
      return event;
    }
  }

  /**
   * Answers a person's request for a plan. Another event of the aggregate's plans has it decided again; another planner's answer
   * ends it.
   */
  async proposal(delivered: DeliveredSnapshot, request: PlanRequest): Promise<void> {
    const { view, logger } = this.#deps;
    const { aggregate } = delivered.message;
    const { id: snapshotId } = request.snapshot;
    for (;;) {
      const whole = await view.refresh();
      const at = aggregateAt(whole, aggregate);
      if (wasProposed(whole.state, aggregate, request.planId)) return;
      const refusal = this.#permission.refusal(delivered, at.state);
      const may = await this.#permission[refusal === null ? 'decides' : 'answers'](delivered, at);
      if (may === 'no') return;
      if (may === 'soon') continue;
      try {
        // A plan that makes room finds its place once the one that waits is gone.
        if (refusal === null && (await this.#withdrawn(at, delivered, request.snapshot))) continue;
        await this.#propose(whole.state, at, delivered, { request, refusal });
        return;
      } catch (error) {
        if (!(error instanceof AppendWithdrawn || error instanceof AppendConflict)) throw error;
        logger.warn(
          { aggregate, snapshotId, reason: error.message },
          'the answer to a request for a plan was not stored; it is planned again',
        );
      }
    }
  }

  /** @throws AppendWithdrawn, AppendConflict when it is to be decided again */
  async #propose(
    state: LogState,
    at: LogPosition<AggregateState>,
    delivered: DeliveredSnapshot,
    { request, refusal }: { readonly request: PlanRequest; readonly refusal: Reason | null },
  ): Promise<void> {
    const { clock, decider } = this.#deps;
    const { aggregate, data } = delivered.message;
    const { options } = this.#own.of(aggregate);
    const stateOf = (name: string): AggregateState => aggregateState(state, name);
    const startedMs = clock.monotonic();
    const { decision, digests } = await decider.proposal({ request, stateOf, options, refusal });
    const decideMs = clock.monotonic() - startedMs;
    const { kept, details } = await this.#shorten(request.snapshot.id, decision, withoutRefused);
    const event = proposedEvent(kept, {
      ...this.#stamp(at, options, { snapshot: data.body.digest, ...digests }),
      request,
      details,
    });
    await this.#appendOn(at, delivered, event, { refused: refusal !== null });
    this.#logProposed(event, decision, decideMs);
  }

  /** Withdraws a plan that waits, if the snapshot shows that its reason is gone. Then the snapshot is decided without it. */
  async #withdrawn(
    at: LogPosition<AggregateState>,
    delivered: DeliveredSnapshot,
    snapshot: Snapshot,
  ): Promise<boolean> {
    const { by, clock, logger } = this.#deps;
    const nowMs = clock.now();
    const lost = snapshot.purpose === 'record' ? null : lostPlan(at.state, snapshot, nowMs);
    if (lost === null) return false;
    const { plan, reason } = lost;
    const { aggregate } = snapshot;
    logger.info({ aggregate, planId: plan.id, reason }, 'the planner withdrew a plan whose reason is gone');
    const event = withdrawnEvent(plan, { snapshot, reason, by, nowMs });
    try {
      await this.#appendOn(at, delivered, event);
    } catch (error) {
      if (!(error instanceof AppendWithdrawn)) throw error;
    }
    return true;
  }

  /**
   * Appends a decision with the expectation of the state that it was made on.
   *
   * @param how `refused`: it says that the snapshot may not be decided
   * @throws AppendWithdrawn when the snapshot may not be decided any more, or not on that state
   */
  async #appendOn(
    at: LogPosition<AggregateState>,
    delivered: DeliveredSnapshot,
    event: CycleDecided | PlanProposed | PlanWithdrawn,
    { refused }: { readonly refused: boolean } = { refused: false },
  ): Promise<void> {
    const { log, view } = this.#deps;
    const { aggregate } = event;
    const veto = (): string | null => (refused ? null : this.#permission.problem(delivered, at.state));
    await view.refresh();
    await log.append(event, { expectedLastSequence: at.expectedOn(subject('plans', aggregate)), veto });
  }

  /** The facts about its making that every decision on the log holds. */
  #stamp<D>(at: LogPosition<AggregateState>, options: EngineOptions, digests: D) {
    const { by, clock } = this.#deps;
    return { basis: at.sequence, plannerVersion, options, digests, by, nowMs: clock.now() };
  }

  /** Shortens a decision that is too large for its event, and stores the whole one as an object. */
  async #shorten<D>(id: string, decision: D, short: (decision: D) => D) {
    const bytes = new TextEncoder().encode(JSON.stringify(decision));
    if (bytes.length <= MAX_EVENT_BYTES) return { kept: decision, details: null };
    return { kept: short(decision), details: await this.#deps.log.objects.put(bucketNames.details, id, bytes) };
  }

  #logDecided({ aggregate, data }: CycleDecided, { outcome, plan, before, reason }: Decision): void {
    this.#deps.logger.info(
      {
        aggregate,
        snapshotId: data.snapshotId,
        outcome,
        release: data.release,
        steps: plan?.steps.length ?? 0,
        combined: before.combined,
        after: plan?.after.combined ?? null,
        reason,
      },
      'decided',
    );
  }

  #logProposed({ aggregate, data }: PlanProposed, decision: ProposalDecision, decideMs: number): void {
    const { outcome, reason, steps, refusals, left } = decision;
    this.#deps.logger.info(
      {
        aggregate,
        planId: data.planId,
        outcome,
        reason,
        release: data.release,
        steps: steps.length,
        refusals,
        left,
        decideMs: Math.round(decideMs),
      },
      'proposed',
    );
  }
}
