/** Histories for tests: kept in memory, and a simulated operation that writes one. */
export * from './memory.ts';
export * from './operation.ts';

/** A count of what came. */
export function counted<T, C extends { add(one: T): void }>(count: C, came: Iterable<T>): C {
  for (const one of came) count.add(one);
  return count;
}
