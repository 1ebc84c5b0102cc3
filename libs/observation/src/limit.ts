/** Runs at most `most` of the jobs given to it at a time, in the order given. */
export function createLimiter(most: number): <T>(job: () => Promise<T>) => Promise<T> {
  let running = 0;
  // A set keeps the order too, and its first is taken at the same cost however many wait.
  const waiting = new Set<() => void>();
  return async (job) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.add(resolve));
    else running += 1;
    try {
      return await job();
    } finally {
      // The place goes to the next one, or becomes free.
      const [next] = waiting;
      if (next === undefined) running -= 1;
      else {
        waiting.delete(next);
        next();
      }
    }
  };
}
