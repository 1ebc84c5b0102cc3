/** Runs at most `most` of the jobs given to it at a time, in the order given. */
export function createLimiter(most: number): <T>(job: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  /** Those before it have had their turn: they are removed many at a time, so that a turn costs the same however many wait. */
  let first = 0;
  return async (job) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await job();
    } finally {
      // The place goes to the next one, or becomes free.
      const next = waiting[first];
      if (next === undefined) running -= 1;
      else {
        first += 1;
        if (2 * first > waiting.length) {
          waiting.splice(0, first);
          first = 0;
        }
        next();
      }
    }
  };
}
