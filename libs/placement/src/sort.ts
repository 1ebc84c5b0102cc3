import { byText } from '@kronos/contracts';

/** The items in the order of a text key. The key of each is made once. */
export function sortedBy<T>(items: readonly T[], key: (item: T) => string): T[] {
  const keyed = items.map((item) => ({ item, key: key(item) }));
  // Mostly they come in their order.
  if (keyed.every((one, i) => i === 0 || byText((keyed[i - 1] as Keyed<T>).key, one.key) <= 0)) return [...items];
  return keyed.sort((a, b) => byText(a.key, b.key)).map(({ item }) => item);
}

type Keyed<T> = { readonly item: T; readonly key: string };
