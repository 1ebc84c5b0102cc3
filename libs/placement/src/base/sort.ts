import { byText } from '@kronos/contracts';
import { item } from './array.ts';

/** The items in the order of a text key. The key of each is made once. */
export const sortedBy = <T>(items: readonly T[], key: (item: T) => string): T[] =>
  items
    .map((item) => ({ item, key: key(item) }))
    .sort((a, b) => byText(a.key, b.key))
    .map(({ item }) => item);

/** Whether a list of figures comes before another one of the same length: at the first difference it is lower. */
export function isBelow(a: readonly number[], b: readonly number[]): boolean {
  for (const [i, x] of a.entries()) if (x !== b[i]) return x < item(b, i);
  return false;
}

/** All subsets of a size, in the order of their items; only the empty one for sizes below 1. */
export function subsets<T>(of: readonly T[], size: number): readonly (readonly T[])[] {
  if (size <= 0) return [[]];
  return of.flatMap((first, i) => subsets(of.slice(i + 1), size - 1).map((rest) => [first, ...rest]));
}
