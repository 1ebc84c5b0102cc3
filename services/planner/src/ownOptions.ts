/** The options of this planner, and whether they are the ones in force. */
import { engineFields } from '@kronos/config';
import type { EngineOptions } from '@kronos/contracts';
import { digest } from '@kronos/cycle';
import { plannerVersion } from '@kronos/placement';
import { type AggregateState, type PlannerRight, rightOf } from '@kronos/projections';
import type { PlannerDeps } from './deps.ts';

export type OwnOptions = {
  /** @throws RangeError for an aggregate of another planner */
  readonly of: (aggregate: string) => { readonly options: EngineOptions; readonly optionsDigest: string };
  /** The right of this planner by the options that the log has for the aggregate. */
  readonly right: (aggregate: string, state: AggregateState) => PlannerRight;
  /** The log has them now. */
  readonly areInForce: (aggregate: string) => void;
  /** The log's end when this planner started: its place among the planners. */
  readonly startedAfter: number;
};

export function ownOptions({ aggregates, optionsOf, view }: PlannerDeps): OwnOptions {
  const configured = new Map(
    aggregates.map((aggregate) => {
      const options = optionsOf(aggregate);
      return [aggregate, { options, optionsDigest: digest(options) }] as const;
    }),
  );
  const startedAfter = view.at().sequence;
  /** Aggregates for which they have been in force. */
  const wasInForce = new Set<string>();
  const of: OwnOptions['of'] = (aggregate) => {
    const found = configured.get(aggregate);
    if (found === undefined) throw new RangeError(`${aggregate} is not an aggregate of this planner`);
    return found;
  };
  return {
    of,
    startedAfter,
    areInForce: (aggregate) => void wasInForce.add(aggregate),
    right: (aggregate, state) =>
      rightOf(state, { startedAfter, ...of(aggregate), plannerVersion, wasInForce: wasInForce.has(aggregate) }),
  };
}

/** Why a planner leaves an aggregate to another one, and what to do. */
export function yieldText(
  aggregate: string,
  stands: Extract<PlannerRight, { kind: 'yield' }>,
  options: EngineOptions,
): string {
  const { to, options: theirs, differing } = stands;
  const named = differing.map((field) => {
    const value = (of: EngineOptions) =>
      JSON.stringify(field === 'timezone' ? (of.timezone?.name ?? 'UTC') : of[field]);
    return `${engineFields[field] ?? field} (${value(options)} here, ${value(theirs)} there)`;
  });
  return `${aggregate} is planned by ${to}, which started later with other options: ${named.join(', ')}; give all planners the same options and restart this one`;
}

/** Why this planner leaves aggregates to other planners. */
export const yieldTexts = (
  own: OwnOptions,
  aggregates: readonly string[],
  stateOf: (aggregate: string) => AggregateState,
): string[] =>
  aggregates.flatMap((aggregate) => {
    const stands = own.right(aggregate, stateOf(aggregate));
    return stands.kind === 'yield' ? [yieldText(aggregate, stands, own.of(aggregate).options)] : [];
  });
