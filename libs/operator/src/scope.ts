import { didYouMean } from '@kronos/config/nearest';
import { CommandRefused } from './errors.ts';

/** Aggregates that were named, each once. @throws CommandRefused that names what is in scope */
export function knownAggregates(scope: readonly string[], names: readonly string[]): readonly string[] {
  for (const name of names)
    if (!scope.includes(name))
      throw new CommandRefused(
        `${JSON.stringify(name)} is not an aggregate in scope`,
        scope.length === 0
          ? '[engine] aggregates of kronos.conf names none.'
          : `${didYouMean(name, scope)}In scope: ${scope.map((one) => JSON.stringify(one)).join(', ')}.`,
      );
  return [...new Set(names)];
}
