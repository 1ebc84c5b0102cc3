/** The rest of a course in words, for people at the terminal, in the report and in the console alike. Pure. */
import { count } from '@kronos/contracts';
import type { CourseLeft } from '@kronos/projections';
import { span } from './times.ts';

/** Where it ends. */
export const courseEnd = ({ reaches }: Pick<CourseLeft, 'reaches'>): string =>
  reaches ? 'until every policy is at its target' : 'until the lowest imbalance that was found';

/** How long: `in about 3 cycles (25 min)`. */
export const courseTime = ({ cycles, seconds }: Pick<CourseLeft, 'cycles' | 'seconds'>): string =>
  `in about ${count(cycles, 'cycle')} (${span(seconds * 1000)})`;

/** `31 moves in about 4 cycles (40 min) are left until every policy is at its target`. */
export function courseText({ moves, reaches, neededBudget, ...time }: CourseLeft): string {
  const be = moves === 1 ? 'is' : 'are';
  return neededBudget === undefined
    ? `${count(moves, 'move')} ${courseTime(time)} ${be} left ${courseEnd({ reaches })}`
    : `${count(moves, 'move')} ${be} left ${courseEnd({ reaches })}: the first of them need max_migrations_per_cycle = ${neededBudget}`;
}
