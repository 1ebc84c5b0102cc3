import type { AggregateState } from '@kronos/projections';
import { type VerifyOrder, verifyOne } from './compare.ts';
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
  const states = new Map<string, AggregateState>();
  const runs = new Map<string, WhatIfRun>();
  return (order) => {
    if (order.kind === 'verify') {
      const { aggregate } = order.event;
      // The first order about an aggregate has the state whole.
      const state = { ...states.get(aggregate), ...order.state } as AggregateState;
      states.set(aggregate, state);
      return verifyOne(order, state);
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
