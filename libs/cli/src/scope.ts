import { ALL } from '@kronos/contracts';
import { UsageError } from './errors.ts';

const named = (scope: readonly string[]): string => scope.map((name) => JSON.stringify(name)).join(', ');

/**
 * The aggregates that a command is about: the one that was named, the only one in scope, or with `--all` every one.
 *
 * @throws UsageError that lists what there is
 */
export function chooseAggregates(
  scope: readonly string[],
  name: string | undefined,
  all: boolean,
  command: string,
): readonly string[] {
  if (all && name !== undefined)
    throw new UsageError(`--all and the aggregate ${JSON.stringify(name)} are given both`, 'Give one of them.');
  if (all) return scope;
  if (name !== undefined) {
    if (scope.includes(name)) return [name];
    throw new UsageError(
      `${JSON.stringify(name)} is not an aggregate in scope`,
      scope.length === 0 ? '[engine] aggregates of kronos.conf names none.' : `In scope: ${named(scope)}.`,
    );
  }
  const [only, ...others] = scope;
  if (only !== undefined && others.length === 0) return [only];
  throw new UsageError(
    `which aggregate? There are several in scope`,
    `Name one: ${named(scope)}; for example: kronos ${command} ${JSON.stringify(only ?? '')}. Or give --all.`,
  );
}

/** What a command is addressed to: one aggregate, or all of them at once. @throws UsageError */
export function chooseAddress(
  scope: readonly string[],
  name: string | undefined,
  all: boolean,
  command: string,
): string {
  const [only] = chooseAggregates(scope, name, all, command);
  return all ? ALL : (only ?? ALL);
}

/** An aggregate as people read it. */
export const aggregateText = (aggregate: string): string => (aggregate === ALL ? 'all aggregates' : aggregate);
