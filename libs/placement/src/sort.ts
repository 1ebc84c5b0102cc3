import { byText } from '@kronos/contracts';

/** The items in the order of a text key. */
export const sortedBy = <T>(items: readonly T[], key: (item: T) => string): T[] =>
  [...items].sort((a, b) => byText(key(a), key(b)));
