import { didYouMean } from '@kronos/config/nearest';
import { ALL } from '@kronos/contracts/names';
import { knownAggregates, someOf } from '@kronos/operator/scope';
import { UsageError } from './errors.ts';

/** The aggregates that a list is about: those that were named, else all in scope. @throws CommandRefused */
export const filterAggregates = (scope: readonly string[], names: readonly string[] | undefined): readonly string[] =>
  names === undefined ? scope : knownAggregates(scope, names);

/** The aggregates that a person names, or `--all`. */
type Chosen = { readonly names: readonly string[] | undefined; readonly all: boolean };

/**
 * The aggregates that a command acts on: those that were named, the only one in scope, or with `--all` every one.
 *
 * @throws UsageError, CommandRefused that list what there is
 */
export function chooseAggregates(scope: readonly string[], { names, all }: Chosen, command: string): readonly string[] {
  if (all && names !== undefined)
    throw new UsageError(`both --all and the aggregate ${someOf(names)} are given`, 'Give one of them.');
  if (all) return scope;
  if (names !== undefined) return knownAggregates(scope, names);
  const [only, ...others] = scope;
  if (only !== undefined && others.length === 0) return [only];
  throw new UsageError(
    `several aggregates are in scope: name one`,
    `In scope: ${someOf(scope)}; for example: kronos ${command} ${aggregateOption(only ?? '')}. Or add --all.`,
  );
}

/** The addresses of a command: aggregates, or all of them at once. @throws UsageError */
export function chooseAddresses(scope: readonly string[], by: Chosen, command: string): readonly string[] {
  const chosen = chooseAggregates(scope, by, command);
  return by.all ? [ALL] : chosen;
}

/** @param known the hosts of the newest snapshots */
export const unknownHost = (name: string, known: readonly string[]): UsageError =>
  new UsageError(
    `no host ${JSON.stringify(name)} in the newest snapshots`,
    `${didYouMean(name, known)}kronos hosts lists them.`,
  );

/** The option that addresses an aggregate, or all of them, as a person types it. */
export const aggregateOption = (aggregate: string): string =>
  aggregate === ALL ? '--all' : `-a ${/\s/.test(aggregate) ? JSON.stringify(aggregate) : aggregate}`;

/** An aggregate as people read it. */
export const aggregateText = (aggregate: string): string => (aggregate === ALL ? 'all aggregates' : aggregate);
