import type { CompleteEngineOptions, Decision, Policy, PolicyImbalance, Reason, Snapshot } from '@kronos/contracts';
import { isAbove, migrationWindow, type WindowState } from '@kronos/rules';
import { float } from './base/array.ts';
import { combinedOf, imbalances } from './cluster/measure.ts';
import { Draft } from './draft/draft.ts';
import { blockingGates, type Gate } from './gate.ts';
import type { Drain } from './passes/pack.ts';
import type { FoundCourse } from './passes/spread.ts';
import { type ReasonCode, reasonMeanings } from './reasons.ts';
import type { CarryOut } from './search/anneal/runs.ts';
import type { SearchEnd } from './search/search.ts';
import { foreignMoves } from './snapshot/foreign.ts';
import { decisionMs, type Memory } from './snapshot/memory.ts';
import { type Observed, observe } from './snapshot/observe.ts';
import { own } from './snapshot/unmovable.ts';

/** A decision in the making. Passes add moves to the draft, and say in the other variable fields how they found them. */
export type State = {
  readonly snapshot: Snapshot;
  readonly memory: Memory;
  readonly options: CompleteEngineOptions;
  /** Ms since the epoch. */
  readonly now: number;
  readonly observed: Observed;
  readonly mode: Policy['mode'];
  /** The imbalance at the start. */
  readonly before: Decision['before'];
  /** The gates that block the cycle. The first one ends it. */
  readonly gates: readonly Gate[];
  readonly window: WindowState;
  /** Moves of others that undo or repeat those of Kronos; null: none. */
  readonly foreign: NonNullable<Decision['foreign']> | null;
  /** Moves that a cycle may make when none are in flight. */
  readonly fullBudget: number;
  /** The same without the moves in flight. */
  readonly budget: number;
  readonly draft: Draft;
  /** The evacuator ran. */
  evacuates: boolean;
  drains: readonly Drain[];
  endedBy: SearchEnd | null;
  course: FoundCourse | null;
};

/**
 * The moves that a pass adds, or the reason that no later pass runs. The reason is the decision's unless the draft has moves.
 */
export type Passed = { readonly moves: number } | { readonly end: Reason };

/** @param carryOut how runs of the search are carried out; it changes no decision. */
export type Pass = (state: State, carryOut: CarryOut) => Passed;

/** The budget of a cycle when no enabled policy names one (rules-only mode without policies). */
const RULES_ONLY_BUDGET = 10;

/** The state before the first pass. */
export function begin(snapshot: Snapshot, memory: Memory, options: CompleteEngineOptions): State {
  const now = decisionMs(snapshot, memory);
  const observed = observe(snapshot, memory, options, now);
  const { cluster, judged } = observed;
  const fullBudget = cycleBudget(snapshot);
  const own = memory.inFlight.filter(({ cell, aggregate }) => cell !== true && aggregate === undefined);
  const budget = Math.max(0, fullBudget - own.length);
  return {
    snapshot,
    memory,
    options,
    now,
    observed,
    mode: judged[0]?.policy.mode ?? 'spread',
    before: imbalanceOf(observed, memory, imbalances(cluster, cluster.score)),
    gates: blockingGates({ snapshot, memory, options }, judged, now),
    window: migrationWindow(options, now),
    foreign: foreignMoves({ snapshot, memory, options, now }),
    fullBudget,
    budget,
    draft: new Draft(cluster, budget),
    evacuates: false,
    drains: [],
    endedBy: null,
    course: null,
  };
}

export const reasonOf = (code: ReasonCode): Reason => ({ code, text: reasonMeanings[code] });

/** The largest `maxMigrationsPerCycle` of the enabled policies. */
export function cycleBudget(snapshot: Pick<Snapshot, 'policies'>): number {
  const enabled = snapshot.policies.filter((policy) => policy.enabled);
  if (enabled.length === 0) return RULES_ONLY_BUDGET;
  return Math.max(...enabled.map((policy) => policy.maxMigrationsPerCycle));
}

/** Every enabled policy with its imbalance, from the imbalances of the policies that take part. */
export function imbalanceOf(observed: Observed, memory: Memory, imbalance: Float64Array): Decision['before'] {
  const { cluster, judged } = observed;
  const policies = judged.map(({ policy, reason, acts }): PolicyImbalance => {
    const p = cluster.policies.findIndex((model) => model.name === policy.name);
    const value = reason === null ? float(imbalance, p) : null;
    const detected = value !== null && acts !== false && isAbove(value, policy.threshold);
    return {
      policy: policy.name,
      imbalance: value,
      threshold: policy.threshold,
      participates: reason === null,
      detected,
      ...(acts === null ? {} : { acts }),
      sustainedCycles: detected ? (own(memory.sustained, policy.name) ?? 0) + 1 : 0,
    };
  });
  return { combined: cluster.P === 0 ? null : combinedOf(cluster, imbalance), policies };
}
