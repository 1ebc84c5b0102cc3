const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Unit = { readonly ms: number; readonly name: string };
const SECONDS: Unit = { ms: SECOND, name: 's' };
const MINUTES: Unit = { ms: MINUTE, name: 'min' };
const HOURS: Unit = { ms: HOUR, name: 'h' };
const DAYS: Unit = { ms: DAY, name: 'd' };

/** A duration in one or two units: `45 s`, `3 min`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  const abs = Math.abs(ms);
  if (abs < 10 * SECOND) return `${trim((abs / SECOND).toFixed(1))} s`;
  if (abs < MINUTE) return `${Math.floor(abs / SECOND)} s`;
  if (abs < HOUR) return two(abs, MINUTES, SECONDS, 5);
  if (abs < DAY) return two(abs, HOURS, MINUTES, Number.POSITIVE_INFINITY);
  return two(abs, DAYS, HOURS, 10);
}

const trim = (text: string): string => text.replace(/\.0$/, '');

/** The smaller unit is left out when it is 0, or when there are `few` or more of the larger one. */
function two(ms: number, unit: Unit, part: Unit, few: number): string {
  const whole = Math.floor(ms / unit.ms);
  const rest = Math.floor((ms % unit.ms) / part.ms);
  return rest === 0 || whole >= few ? `${whole} ${unit.name}` : `${whole} ${unit.name} ${rest} ${part.name}`;
}

/** `3 min ago`, `in 20 s`, `now`. */
export function relative(ms: number, nowMs: number): string {
  const difference = ms - nowMs;
  if (Math.abs(difference) < SECOND) return 'now';
  return difference < 0 ? `${span(difference)} ago` : `in ${span(difference)}`;
}

/** UTC to the second, as short as it is clear today: `12:00:03Z`, or `2026-03-01 12:00:03Z` on another day. */
export function absolute(ms: number, nowMs: number): string {
  const iso = new Date(ms).toISOString();
  const time = `${iso.slice(11, 19)}Z`;
  return iso.slice(0, 10) === new Date(nowMs).toISOString().slice(0, 10) ? time : `${iso.slice(0, 10)} ${time}`;
}

/** `12:00:03Z (3 min ago)`. */
export const when = (ms: number, nowMs: number): string => `${absolute(ms, nowMs)} (${relative(ms, nowMs)})`;
