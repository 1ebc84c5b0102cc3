/** Whether this planner may decide a snapshot: one of this log, in time, with the options that are in force. */

import type { AggregateFold } from '@kronos/checkpoints';
import { type FailingPart, type Reason, type SnapshotTaken, subject } from '@kronos/contracts';
import { configuredEvent } from '@kronos/cycle';
import type { Delivered, LogPosition } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import { type AggregateState, inForce } from '@kronos/projections';
import type { PlannerDeps } from './deps.ts';
import { type Eligibility, eligibility, requestRefusal } from './eligibility.ts';
import { overtaken } from './overtaken.ts';
import { type OwnOptions, yieldText } from './ownOptions.ts';
import { isRequest } from './undecided.ts';

export type DeliveredSnapshot = Extract<Delivered<SnapshotTaken>, { readonly problem?: undefined }>;

export type Permission = {
  /** Whether a snapshot was taken on this log, and not on more of it than there is. */
  readonly ofThisLog: (delivered: DeliveredSnapshot) => Promise<boolean>;
  /** Whether the snapshot may be decided on this state; logs and counts why not. */
  readonly eligible: (delivered: DeliveredSnapshot, state: AggregateState) => boolean;
  /** Why the request of a snapshot has an answer without a plan: it can no longer be decided; null: it can, or has no request. */
  readonly refusal: (delivered: DeliveredSnapshot, state: AggregateState) => Reason | null;
  /** Whether this planner answers a request on this state; `soon`: on the next one, which has its options. */
  readonly answers: (delivered: DeliveredSnapshot, at: LogPosition<AggregateState>) => Promise<'yes' | 'no' | 'soon'>;
  /** Whether this planner decides the snapshot on this state; `soon`: on the next one, which has its options. */
  readonly decides: (delivered: DeliveredSnapshot, at: LogPosition<AggregateState>) => Promise<'yes' | 'no' | 'soon'>;
  /** Why a decision that was made on this state may not be appended now; null: it may. */
  readonly problem: (delivered: DeliveredSnapshot, basis: AggregateState) => string | null;
  /** Aggregates whose newest snapshot has a time that cannot be trusted, and why. */
  readonly misdated: () => readonly FailingPart[];
};

export function permission(deps: PlannerDeps, own: OwnOptions, { at }: Pick<AggregateFold, 'at'>): Permission {
  const { log, guard, by, logger, meters, clock } = deps;
  const misdated = new Map<string, FailingPart>();

  const judge = (delivered: DeliveredSnapshot, state: AggregateState): Eligibility =>
    eligibility(delivered, state, own.of(delivered.message.aggregate).options, {
      nowMs: clock.now(),
      problem: deps.clockProblem(),
      logProblem: guard?.problem ?? null,
    });

  function eligible(delivered: DeliveredSnapshot, state: AggregateState): boolean {
    const { aggregate, data } = delivered.message;
    const may = judge(delivered, state);
    if (may.ok) {
      misdated.delete(aggregate);
      return true;
    }
    const { code, text } = may.reason;
    if (code === 'clock-skew' || code === 'stored-late') misdated.set(aggregate, { code, part: aggregate, text });
    meters.notDecided(aggregate, may.reason.code);
    const told = { aggregate, snapshotId: data.snapshotId, reason: may.reason };
    logger[may.alarm ? 'error' : 'debug'](told, 'not decided');
    return false;
  }

  /** Whether this planner's options are in force; `soon`: it has just written them. */
  async function inCharge(aggregate: string, at: LogPosition<AggregateState>): Promise<'yes' | 'no' | 'soon'> {
    const stands = own.right(aggregate, at.state);
    if (stands.kind === 'yield') {
      meters.notDecided(aggregate, 'other-options');
      logger.error({ aggregate, reason: yieldText(aggregate, stands, own.of(aggregate).options) }, 'not decided');
      return 'no';
    }
    if (stands.kind === 'configure') await configure(aggregate, at);
    own.areInForce(aggregate);
    return stands.kind === 'configure' ? 'soon' : 'yes';
  }

  /** Puts the options on the log. */
  async function configure(aggregate: string, { sequence, expectedOn }: LogPosition<AggregateState>): Promise<void> {
    const { options } = own.of(aggregate);
    await log.append(
      configuredEvent({
        aggregate,
        options,
        plannerVersion,
        basis: sequence,
        by,
        nowMs: clock.now(),
        startedAfter: own.startedAfter,
      }),
      { expectedLastSequence: expectedOn(subject('plans', aggregate)) },
    );
  }

  return {
    misdated: () => [...misdated.values()],
    eligible,
    refusal: (delivered, state) =>
      isRequest(delivered) && deps.clockProblem() === null ? requestRefusal(judge(delivered, state)) : null,
    answers: ({ message }, at) => inCharge(message.aggregate, at),
    async ofThisLog({ message: { data }, storedAt }) {
      if (guard === undefined || data.log === undefined) return true;
      const source = `the snapshot ${data.snapshotId}`;
      const agrees = await guard.agrees({ source, ...data.log, seenAtMs: storedAt });
      return agrees && data.log.installationId === (inForce(guard.identity)?.id ?? null);
    },
    decides: async (delivered, at) =>
      eligible(delivered, at.state) ? await inCharge(delivered.message.aggregate, at) : 'no',
    problem(delivered, basis) {
      const { state } = at(delivered.message.aggregate);
      const may = judge(delivered, state);
      return may.ok ? overtaken(basis, state) : may.reason.text;
    },
  };
}
