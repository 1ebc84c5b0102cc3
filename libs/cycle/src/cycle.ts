import type { CycleDecided, Decision, EngineOptions, Snapshot } from '@kronos/contracts';
import { type DecideInput, decide, memoryText } from '@kronos/placement';
import type { CarryOut } from '@kronos/placement/runs';
import { type AggregateState, absence, newRefusals } from '@kronos/projections';
import { digest } from './digest.ts';
import { measuredLoads } from './loads.ts';
import { decideInput } from './memory.ts';

/** Everything that a decision is made of. The planner's version is the code's. */
export type CycleInput = {
  readonly snapshot: Snapshot;
  /** The log up to the decision's `basis`. */
  readonly state: AggregateState;
  readonly options: EngineOptions;
};

/** Whether `search_work_limit` limits the work of the decision: neither greedy nor pack mode counts its own. */
export const searches = ({ snapshot, options }: Pick<CycleInput, 'snapshot' | 'options'>): boolean =>
  options.balance && options.planner === 'search' && snapshot.policies.every(({ mode }) => mode === 'spread');

export type Cycle = {
  readonly decision: Decision;
  /** Of all that it was made of but the snapshot, whose digest is that of its stored bytes. */
  readonly digests: Omit<CycleDecided['data']['digests'], 'snapshot'>;
  /** The event's field about absent servers; undefined: none. */
  readonly absence: CycleDecided['data']['absence'];
  /** The event's field about new refusals of Nova; undefined: none. */
  readonly novaRefusals: CycleDecided['data']['novaRefusals'];
  /** The event's field about loads of hosts; undefined: none is to be compared. */
  readonly loads: CycleDecided['data']['loads'];
};

/** Decides one snapshot. The same input gives the same bytes, in the planner and in a replay. */
export function decideCycle({
  snapshot,
  state,
  options,
}: CycleInput): Pick<Cycle, 'decision' | 'absence' | 'novaRefusals'> {
  const decision = decide(decideInput(state, snapshot, options));
  return {
    decision,
    absence: absenceOf(state, snapshot, decision),
    novaRefusals: newRefusals(state, snapshot),
  };
}

/** The event's field about absent servers. A gate ended the cycle before it looked at the servers: the list may not be whole. */
export const absenceOf = (state: AggregateState, { servers }: Snapshot, { outcome }: Decision): Cycle['absence'] =>
  outcome === 'gated' ? undefined : (absence(state, servers) ?? undefined);

/**
 * As {@link decideCycle}, with the digests of what the decision was made of.
 *
 * @param carryOut how runs of the search are carried out; it changes no decision
 */
export function runCycle(input: CycleInput, carryOut?: CarryOut): Cycle {
  const asked = decideInput(input.state, input.snapshot, input.options);
  return cycleOf(input, asked, decide(asked, carryOut));
}

/** The cycle with a decision on this input, wherever it was made. */
export function cycleOf(input: CycleInput, { memory }: Pick<DecideInput, 'memory'>, decision: Decision): Cycle {
  return {
    decision,
    absence: absenceOf(input.state, input.snapshot, decision),
    novaRefusals: newRefusals(input.state, input.snapshot),
    loads: measuredLoads(input.state, input.snapshot, decision, input.options),
    digests: {
      policies: digest(input.snapshot.policies),
      state: digest(memoryText(memory)),
      options: digest(input.options),
      decision: digest(decision),
    },
  };
}
