import { byText } from '@kronos/contracts';

/** The items in the order of a text key. The key of each is made once. */
export const sortedBy = <T>(items: readonly T[], key: (item: T) => string): T[] =>
  items
    .map((item) => ({ item, key: key(item) }))
    .sort((a, b) => byText(a.key, b.key))
    .map(({ item }) => item);
