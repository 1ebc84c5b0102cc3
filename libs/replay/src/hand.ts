import type { AggregateState } from '@kronos/projections';
import { type VerifyOrder, verifyOne } from './compare.ts';
import { Lane, type LaneStart, type LaneStep } from './lane.ts';

/** An order to a member of the crew. */
export type Order =
  | VerifyOrder
  /** Begins a what-if of one aggregate. */
  | ({ readonly kind: 'begin' } & LaneStart)
  /** The next snapshot of a what-if. */
  | ({ readonly kind: 'next'; readonly aggregate: string } & LaneStep);

/** Carries orders out, one after the other, and remembers the results on which later orders build. */
export function createHand(): (order: Order) => unknown {
  const states = new Map<string, AggregateState>();
  const lanes = new Map<string, Lane>();
  return (order) => {
    if (order.kind === 'verify') {
      const { aggregate } = order.event;
      // The first order about an aggregate has the state whole.
      const state = { ...states.get(aggregate), ...order.state } as AggregateState;
      states.set(aggregate, state);
      return verifyOne(order, state);
    }
    if (order.kind === 'begin') {
      lanes.set(order.aggregate, new Lane(order));
      return null;
    }
    const lane = lanes.get(order.aggregate);
    if (lane === undefined) throw new Error(`no what-if of ${order.aggregate} was begun`);
    return lane.next(order);
  };
}
