/** Sizes and durations of moves, as the ledger estimates them. Pure. */

/** What a move copies, in MiB: the VM's memory and its local disk. */
export const copiedMb = ({ ramMb, diskGb }) => ramMb + diskGb * 1024;

/**
 * How long moves take together: those off one host follow each other, those off different hosts run at the same time. Null: no move.
 *
 * @param timeOf the estimate of one move
 */
export function together(steps, timeOf) {
  let longest = null;
  for (const own of Map.groupBy(steps, ({ from }) => from).values()) {
    const times = own.map(timeOf);
    const sum = (of) => times.reduce((total, time) => total + of(time), 0);
    const expectedMs = sum((time) => time.expectedMs);
    if (longest !== null && expectedMs <= longest.expectedMs) continue;
    longest = {
      expectedMs,
      interval: times.some(({ interval }) => interval === null)
        ? null
        : { lowMs: sum(({ interval }) => interval.lowMs), highMs: sum(({ interval }) => interval.highMs) },
      measured: times.every(({ measured }) => measured),
    };
  }
  return longest;
}
