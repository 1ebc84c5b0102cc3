/** Handles a snapshot that arrives: drops it, skips it with a reason, or decides it. */

import type { AggregateFold } from '@kronos/checkpoints';
import type { SnapshotTaken } from '@kronos/contracts';
import { planRequest } from '@kronos/cycle';
import { contextFrom, type Delivered, nullIfUnusable } from '@kronos/eventlog';
import { attributes, spans, withSpan } from '@kronos/telemetry';
import { type Span, SpanKind } from '@opentelemetry/api';
import { Decisions } from './decideOnce.ts';
import type { PlannerDeps } from './deps.ts';
import type { OwnOptions } from './ownOptions.ts';
import { type DeliveredSnapshot, type Permission, permission } from './permission.ts';

export type SnapshotDecider = {
  /** @throws AppendConflict when another planner decided it */
  readonly consider: (aggregate: string, delivered: Delivered<SnapshotTaken>) => Promise<void>;
  readonly misdated: Permission['misdated'];
  readonly slow: Decisions['slow'];
};

/** @param finishReleased called before a snapshot is decided, and after */
export function snapshotDecider(
  deps: PlannerDeps,
  own: OwnOptions,
  fold: AggregateFold,
  finishReleased: (aggregate: string) => Promise<void>,
): SnapshotDecider {
  const { log, logger, tracer, meters } = deps;
  const may = permission(deps, own, fold);
  const decide = new Decisions(deps, own, fold, may);

  async function consider(aggregate: string, delivered: Delivered<SnapshotTaken>): Promise<void> {
    if (delivered.problem !== undefined) {
      const { sequence, problem } = delivered;
      meters.notDecided(aggregate, 'unreadable-snapshot');
      logger.error({ aggregate, sequence, problem }, 'a snapshot message cannot be read: the planner drops it');
      return;
    }
    const { snapshotId, log: mark } = delivered.message.data;
    if (!(await may.ofThisLog(delivered))) {
      meters.notDecided(aggregate, 'other-log');
      logger.warn({ aggregate, snapshotId, log: mark }, 'the snapshot was not decided: it was taken on another log');
      return;
    }
    await finishReleased(aggregate);
    const { state: known } = fold.at(aggregate);
    const refused = may.refusal(delivered, known) !== null;
    if (!refused && !may.eligible(delivered, known)) return;
    await withSpan(
      tracer,
      spans.decide,
      {
        kind: SpanKind.CONSUMER,
        parent: contextFrom(delivered.traceparent),
        attributes: { [attributes.aggregate]: aggregate, [attributes.snapshotId]: snapshotId },
      },
      (span) => decided(delivered, { refused, span }),
    );
  }

  async function decided(
    delivered: DeliveredSnapshot,
    { refused, span }: { readonly refused: boolean; readonly span: Span },
  ): Promise<void> {
    const { aggregate } = delivered.message;
    const { snapshotId } = delivered.message.data;
    const loading = log.getSnapshot(delivered.message);
    // Only its body names the command that an answer is for: a later try to read it would fail, too.
    const snapshot = await (refused ? loading.catch(nullIfUnusable) : loading);
    if (snapshot === null) {
      meters.notDecided(aggregate, 'unreadable-snapshot');
      logger.error({ aggregate, snapshotId }, 'a request gets no answer: its snapshot is no longer kept');
      return;
    }
    const request = planRequest(snapshot);
    if (request !== null) {
      await decide.proposal(delivered, request);
      return;
    }
    const event = await decide.cycle(delivered, snapshot);
    if (event === null) return;
    const { basis, outcome, reason, plan } = event.data;
    span.setAttributes({
      [attributes.basis]: basis,
      [attributes.outcome]: outcome,
      [attributes.reason]: reason.code,
      [attributes.steps]: plan?.steps.length ?? 0,
      [attributes.candidates]: plan?.candidatesEvaluated ?? 0,
    });
    await finishReleased(aggregate);
  }

  return { consider, misdated: may.misdated, slow: decide.slow };
}
