import { UsageError } from './errors.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something takes, in one or two units: `45 s`, `3 min`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  const abs = Math.abs(ms);
  if (abs < 10 * SECOND) return `${trim((abs / SECOND).toFixed(1))} s`;
  if (abs < MINUTE) return `${Math.floor(abs / SECOND)} s`;
  if (abs < HOUR) return two(abs, MINUTE, 'min', SECOND, 's', 5);
  if (abs < DAY) return two(abs, HOUR, 'h', MINUTE, 'min', Number.POSITIVE_INFINITY);
  return two(abs, DAY, 'd', HOUR, 'h', 10);
}

const trim = (text: string): string => text.replace(/\.0$/, '');

/** The smaller unit is left out when it is 0, or when there are `few` or more of the larger one. */
function two(ms: number, unit: number, name: string, part: number, partName: string, few: number): string {
  const whole = Math.floor(ms / unit);
  const rest = Math.floor((ms % unit) / part);
  return rest === 0 || whole >= few ? `${whole} ${name}` : `${whole} ${name} ${rest} ${partName}`;
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

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3600, d: 86_400 };

function seconds(text: string): number | null {
  const parts = /^(\d+(?:\.\d+)?)(s|m|min|h|d)?$/.exec(text);
  if (parts === null) return null;
  return Number(parts[1]) * (UNITS[parts[2] ?? 's'] ?? 1);
}

/** A duration as a person types it: `600`, `90s`, `10m`, `2h`, `1d`. In seconds. @throws UsageError */
export function parseDuration(option: string, text: string): number {
  const found = seconds(text);
  if (found !== null) return found;
  throw new UsageError(
    `${option} takes a duration, not ${JSON.stringify(text)}`,
    'Write seconds, or a number with a unit: 600, 90s, 10m, 2h, 1d.',
  );
}

/**
 * A time as a person types it: how long ago (`10m`, `2h`), a time of this day (`12:30`), or ISO-8601. Without a zone it
 * is UTC. In milliseconds since the epoch.
 *
 * @throws UsageError
 */
export function parseTime(option: string, text: string, nowMs: number): number {
  if (text === 'now') return nowMs;
  const ago = seconds(text);
  if (ago !== null) return nowMs - ago * SECOND;
  const clock = /^(\d{1,2})(:\d{2}(?::\d{2})?)Z?$/.exec(text);
  const today = new Date(nowMs).toISOString().slice(0, 10);
  const full = clock === null ? text.replace(' ', 'T') : `${today}T${(clock[1] ?? '').padStart(2, '0')}${clock[2]}`;
  if (/^\d{4}-\d{2}-\d{2}/.test(full)) {
    const zoned = !full.includes('T') || /(Z|[+-]\d{2}:?\d{2})$/.test(full);
    const ms = Date.parse(zoned ? full : `${full}Z`);
    if (Number.isFinite(ms)) return ms;
  }
  throw new UsageError(
    `${option} takes a time, not ${JSON.stringify(text)}`,
    'Write how long ago (90s, 10m, 2h, 1d), a time of today (12:30), or a date and time (2026-03-01T12:30Z); times are UTC.',
  );
}
