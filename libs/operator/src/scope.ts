import { didYouMean } from '@kronos/config/nearest';
import { CommandRefused } from './errors.ts';

/**
 * Refuses a plan from or to an aggregate that is not between cells. `between`: those of `[cells] aggregates`.
 *
 * @throws CommandRefused that names the existing ones
 */
export function requireCells(between: readonly string[], scope: readonly string[], from: string, to: string): void {
  if (between.length === 0)
    throw new CommandRefused(
      'moves between cells are off',
      'Set [cells] aggregates in kronos.conf of all services and of the kronos command, e.g. cell1:old, cell2:new.',
    );
  for (const aggregate of [to, from])
    if (!between.includes(aggregate))
      throw new CommandRefused(
        `[cells] aggregates does not name ${JSON.stringify(aggregate)}`,
        `${didYouMean(aggregate, [...between, ...scope])}It names ${between.join(', ')}.`,
      );
  if (from === to)
    throw new CommandRefused(`${JSON.stringify(from)} is the source and the target`, 'Name another target.');
}

/** Names in a sentence: a long list is cut, and a command shows all of it. */
const SHOWN = 6;
export const someOf = (names: readonly string[], all = 'kronos aggregates'): string =>
  names.length <= SHOWN
    ? names.join(', ')
    : `${names.slice(0, SHOWN).join(', ')} and ${names.length - SHOWN} more (${all})`;

/** Aggregates that were named, each once. @throws CommandRefused that names what is in scope */
export function knownAggregates(scope: readonly string[], names: readonly string[]): readonly string[] {
  for (const name of names)
    if (!scope.includes(name))
      throw new CommandRefused(
        `${JSON.stringify(name)} is not an aggregate in scope`,
        scope.length === 0
          ? '[engine] aggregates of kronos.conf names none.'
          : `${didYouMean(name, scope)}In scope: ${someOf(scope)}.`,
      );
  return [...new Set(names)];
}
