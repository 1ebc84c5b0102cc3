/** For tests that wait: for a condition, or on a clock that they move themselves; never for a time. */
import { systemClock } from '../src/index.ts';

export * from './manual.ts';

type Found<T> = Exclude<T, false | null | undefined>;

/** Ends only a test that cannot pass: far longer than a machine needs that is busy with other work. */
const WITHIN_MS = 600_000;
const EVERY_MS = 20;

/**
 * Asks again and again until the answer is something other than false, null or undefined, and returns it.
 *
 * @param what names in the error what did not come; default: the source text of `look`
 * @param everyMs the wait between two looks; longer when a look is expensive
 * @throws what `look` throws, and an Error when there is nothing within `withinMs`
 */
export async function until<T>(
  look: () => T | Promise<T>,
  withinMs: number = WITHIN_MS,
  what: string | (() => string | Promise<string>) = () => String(look),
  everyMs: number = EVERY_MS,
): Promise<Found<T>> {
  const end = systemClock.monotonic() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== false && found !== null && found !== undefined) return found as Found<T>;
    if (systemClock.monotonic() > end)
      throw new Error(`waited ${withinMs} ms for ${typeof what === 'string' ? what : await what()}`);
    await systemClock.sleep(everyMs);
  }
}

/**
 * Lets real time pass, for what another process does by its own clock and shows to nobody. Not for anything that can be awaited:
 * see {@link until}.
 *
 * @param reason why no condition can be awaited
 */
export async function elapse(ms: number, reason: string): Promise<void> {
  if (reason === '') throw new RangeError('a wait for a time needs a reason');
  await systemClock.sleep(ms);
}
