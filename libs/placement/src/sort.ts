/** Order of two texts by code unit: the same on every machine, unlike localeCompare. */
export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The items in the order of a text key. */
export const sortedBy = <T>(items: readonly T[], key: (item: T) => string): T[] =>
  [...items].sort((a, b) => byText(key(a), key(b)));
