export type RateLimit = { readonly most: number; readonly perMs: number };

/** Keys that are counted at once: beyond that, nothing new is allowed until one is forgotten. */
const MOST_KEYS = 1_000;

/**
 * Allows `most` acts per key within any `perMs`. A refused act does not count.
 *
 * @returns milliseconds until the next one is allowed; 0: this one is, and counts
 */
export function rateLimit({ most, perMs }: RateLimit, monotonic: () => number): (key: string) => number {
  const acts = new Map<string, number[]>();
  return (key) => {
    const now = monotonic();
    if (acts.size >= MOST_KEYS)
      for (const [other, times] of acts) if ((times.at(-1) ?? 0) + perMs <= now) acts.delete(other);
    if (!acts.has(key) && acts.size >= MOST_KEYS) return perMs;
    const times = (acts.get(key) ?? []).filter((at) => at + perMs > now);
    const [first] = times;
    if (first !== undefined && times.length >= most) return first + perMs - now;
    times.push(now);
    acts.set(key, times);
    return 0;
  };
}
