import { aggregateState, initialLogState } from '@kronos/projections';
import { type VerifyOrder, verifyOne } from './compare.ts';
import { withChanges } from './logChanges.ts';
import { type RunStart, type RunStep, WhatIfRun } from './whatIfRun.ts';

/** An order to a worker of the pool. */
export type ReplayOrder =
  | VerifyOrder
  /** Begins a what-if of one aggregate. */
  | ({ readonly kind: 'begin' } & RunStart)
  /** The next snapshot of a what-if. */
  | ({ readonly kind: 'next'; readonly aggregate: string } & RunStep);

/** Carries orders out, one after the other, and remembers the results on which later orders build. */
export function createWorker(): (order: ReplayOrder) => unknown {
  let log = initialLogState();
  const runs = new Map<string, WhatIfRun>();
  return (order) => {
    if (order.kind === 'verify') {
      log = withChanges(log, order.log);
      return verifyOne(order, aggregateState(log, order.event.aggregate));
    }
    if (order.kind === 'begin') {
      runs.set(order.aggregate, new WhatIfRun(order));
      return null;
    }
    const run = runs.get(order.aggregate);
    if (run === undefined) throw new Error(`no what-if of ${order.aggregate} was begun`);
    return run.next(order);
  };
}
