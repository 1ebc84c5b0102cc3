import { MAX_TIME_DIFFERENCE_MS } from './limits.ts';

/** Milliseconds of a day of 24 hours. */
export const DAY_MS = 86_400_000;

/** ISO-8601 UTC, in milliseconds. @throws RangeError beyond the years that a Date has */
export const iso = (ms: number): string => new Date(ms).toISOString();

/** Likewise; null where the time is not known. */
export const isoOrNull = (ms: number | null | undefined): string | null =>
  ms === null || ms === undefined ? null : iso(ms);

/**
 * Milliseconds since the epoch of an ISO-8601 time. The usual form, `YYYY-MM-DDTHH:MM:SS.mmmZ`, is read digit by digit:
 * a log has one per event.
 */
export function timeMs(time: string): number {
  if (time.length !== 24) return Date.parse(time);
  const digits = (from: number, to: number): number => {
    let value = 0;
    for (let i = from; i < to; i++) value = value * 10 + time.charCodeAt(i) - 48;
    return value;
  };
  return Date.UTC(
    digits(0, 4),
    digits(5, 7) - 1,
    digits(8, 10),
    digits(11, 13),
    digits(14, 16),
    digits(17, 19),
    digits(20, 23),
  );
}

/**
 * When an event happened, in milliseconds since the epoch: the time in its body, clamped to the server's timestamp
 * +- {@link MAX_TIME_DIFFERENCE_MS}. No clock and no forged year reaches further.
 *
 * @param time ISO-8601, from the body
 * @param storedAtMs the server's timestamp of the message
 */
export function eventTimeMs(time: string, storedAtMs: number): number {
  const stated = timeMs(time);
  if (Number.isNaN(stated)) return storedAtMs;
  return Math.min(Math.max(stated, storedAtMs - MAX_TIME_DIFFERENCE_MS), storedAtMs + MAX_TIME_DIFFERENCE_MS);
}

/**
 * Time of a snapshot in milliseconds since the epoch: at most {@link MAX_TIME_DIFFERENCE_MS} after the server's timestamp of
 * the message that names it. It may be much older than that message.
 *
 * @param time ISO-8601, from the body
 * @param storedAtMs the server's timestamp of the message
 */
export const snapshotTimeMs = (time: string, storedAtMs: number): number =>
  Math.min(timeMs(time), storedAtMs + MAX_TIME_DIFFERENCE_MS);
