/** When to try again what has failed. Pure. */

const MOST_MS = 30_000;

/** The wait before the next try, in ms: after each failure in a row twice as long, and at most half a minute. `failures`: one or more. */
export const againMs = (failures, firstMs = 1000) => Math.min(MOST_MS, firstMs * 2 ** (failures - 1));
