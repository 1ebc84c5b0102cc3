import { iso } from '@kronos/contracts';
import { span } from '@kronos/contracts/words';

export { span };

const SECOND = 1000;

/** `3 min ago`, `in 20 s`, `now`. */
export function relative(ms: number, nowMs: number): string {
  const difference = ms - nowMs;
  if (Math.abs(difference) < SECOND) return 'now';
  return difference < 0 ? `${span(difference)} ago` : `in ${span(difference)}`;
}

/** UTC to the second, as short as it is clear today: `12:00:03Z`, or `2026-03-01 12:00:03Z` on another day. */
export function absolute(ms: number, nowMs: number): string {
  const text = iso(ms);
  const time = `${text.slice(11, 19)}Z`;
  return text.slice(0, 10) === iso(nowMs).slice(0, 10) ? time : `${text.slice(0, 10)} ${time}`;
}

/** `12:00:03Z (3 min ago)`. */
export const when = (ms: number, nowMs: number): string => `${absolute(ms, nowMs)} (${relative(ms, nowMs)})`;
