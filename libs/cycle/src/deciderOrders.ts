/** Orders to the thread that decides. It loads this file, and not the fold. */
import type { ProposalDecision } from '@kronos/contracts';
import {
  type DecideCapacityInput,
  type DecideCellsInput,
  type DecideInput,
  decideCapacity,
  decideCells,
} from '@kronos/placement';

/** A request for a plan as it is decided: plain data, which can be sent to another thread. */
export type ProposalAsked =
  | { readonly kind: 'cells'; readonly input: DecideCellsInput }
  | { readonly kind: 'capacity'; readonly input: DecideCapacityInput };

/** The answer is the decision of that kind. */
export type DeciderOrder = { readonly kind: 'cycle'; readonly input: DecideInput } | ProposalAsked;

/** The decision about a request. */
export const decideProposal = (asked: ProposalAsked): ProposalDecision =>
  asked.kind === 'cells' ? decideCells(asked.input) : decideCapacity(asked.input);
