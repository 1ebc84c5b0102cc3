import { ALL } from '@kronos/contracts/names';
import { UsageError } from './errors.ts';
import { didYouMean } from './nearest.ts';

const named = (scope: readonly string[]): string => scope.map((name) => JSON.stringify(name)).join(', ');

/** Names that were given, each once. @throws UsageError that names what is in scope */
function known(scope: readonly string[], names: readonly string[]): readonly string[] {
  for (const name of names)
    if (!scope.includes(name))
      throw new UsageError(
        `${JSON.stringify(name)} is not an aggregate in scope`,
        scope.length === 0
          ? '[engine] aggregates of kronos.conf names none.'
          : `${didYouMean(name, scope)}In scope: ${named(scope)}.`,
      );
  return [...new Set(names)];
}

/** The aggregates that a list is about: those that were named, else all in scope. @throws UsageError */
export const filterAggregates = (scope: readonly string[], names: readonly string[] | undefined): readonly string[] =>
  names === undefined ? scope : known(scope, names);

/**
 * The aggregates that a command acts on: those that were named, the only one in scope, or with `--all` every one.
 *
 * @throws UsageError that lists what there is
 */
export function chooseAggregates(
  scope: readonly string[],
  names: readonly string[] | undefined,
  all: boolean,
  command: string,
): readonly string[] {
  if (all && names !== undefined)
    throw new UsageError(`both --all and the aggregate ${named(names)} are given`, 'Give one of them.');
  if (all) return scope;
  if (names !== undefined) return known(scope, names);
  const [only, ...others] = scope;
  if (only !== undefined && others.length === 0) return [only];
  throw new UsageError(
    `several aggregates are in scope: name one`,
    `In scope: ${named(scope)}; for example: kronos ${command} -a ${JSON.stringify(only ?? '')}. Or add --all.`,
  );
}

/** What a command is addressed to: aggregates, or all of them at once. @throws UsageError */
export function chooseAddresses(
  scope: readonly string[],
  names: readonly string[] | undefined,
  all: boolean,
  command: string,
): readonly string[] {
  const chosen = chooseAggregates(scope, names, all, command);
  return all ? [ALL] : chosen;
}

/** An aggregate as people read it. */
export const aggregateText = (aggregate: string): string => (aggregate === ALL ? 'all aggregates' : aggregate);
