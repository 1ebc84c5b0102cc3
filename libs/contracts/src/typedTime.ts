/** Times as people type them: `03:00`, `3am`, `yesterday 14:00`, `2h`, `-90m`, `2026-01-31 12:00`. Pure. */

import { DAY_MS } from './time.ts';

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3600, d: 86_400 };

/** The examples that an error of the console names. */
export const EXAMPLES = '03:00, 3am, yesterday 14:00, 2h ago or 2026-01-31 12:00';

/** The times that people look for most, each with a text that {@link typedTime} reads. */
export const OFTEN: readonly (readonly [label: string, text: string])[] = [
  ['1 h ago', '1h'],
  ['6 h ago', '6h'],
  ['03:00', '03:00'],
  ['yesterday', 'yesterday'],
];

/** A duration in seconds, which need no unit: `600`, `90s`, `1.5 h`. Null: the text is none. */
export function typedSeconds(text: string): number | null {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(?:\s*(s|min|m|h|d))?$/.exec(text) ?? [];
  return amount === undefined ? null : Number(amount) * (UNITS[unit] ?? 1);
}

/** How long ago, in ms: `2h`, `-90m`, `90 min ago`. A number alone may be anything. Null: the text is none. */
function agoMs(text: string): number | null {
  const duration = text.replace(/^-\s*/, '').replace(/\s+ago$/, '');
  const seconds = /\d$/.test(duration) ? null : typedSeconds(duration);
  return seconds === null ? null : seconds * 1000;
}

type Clock = {
  /** After midnight. */
  readonly seconds: number;
  /** The text says so; otherwise the zone is that of the reader. */
  readonly utc: boolean;
};

/** A time of day; null: the text is none. */
function clockOf(text: string): Clock | null {
  const [, hours, minutes, seconds = '0', half] = /^(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(am|pm|z)?$/.exec(text) ?? [];
  const ofHalf = half === 'am' || half === 'pm';
  if (hours === undefined || (minutes === undefined && !ofHalf)) return null;
  const [h, m, s] = [Number(hours), Number(minutes ?? 0), Number(seconds)];
  if (m > 59 || s > 59 || (ofHalf ? h < 1 || h > 12 : h > 23)) return null;
  const hour = ofHalf ? (h % 12) + (half === 'pm' ? 12 : 0) : h;
  return { seconds: (hour * 60 + m) * 60 + s, utc: half === 'z' };
}

/** A moment of the calendar, in ms since the epoch. `days`: after the day of `nowMs`. */
function onDay(
  days: number,
  seconds: number,
  { nowMs, utc }: { readonly nowMs: number; readonly utc: boolean },
): number {
  const now = new Date(nowMs);
  return utc
    ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + days, 0, 0, seconds)
    : new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, 0, 0, seconds).getTime();
}

/** A date that exists, with a time of day or at its start, in ms since the epoch; null: the text is none. */
function dateOf(text: string, utc: boolean): number | null {
  const found = /^(\d{4}-\d{2}-\d{2})(?:[t ]+(\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?))?\s*(z|[+-]\d{2}:?\d{2})?$/.exec(text);
  if (found === null) return null;
  const [, day, time = '00:00', zone = utc ? 'z' : ''] = found;
  const midnight = Date.parse(`${day}T00:00Z`);
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== day) return null;
  const ms = Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(ms) ? null : ms;
}

/**
 * A time in the past, in ms since the epoch; null: the text is none. A time of day without a day is the last one that has been: `03:00` at two in
 * the morning is that of yesterday.
 *
 * @param zone `utc`: whether times of day are UTC; otherwise they are those of this machine
 */
export function typedTime(text: string, zone: { readonly nowMs: number; readonly utc: boolean }): number | null {
  const { nowMs } = zone;
  const typed = text.trim().toLowerCase();
  if (typed === 'now') return nowMs;
  const ago = agoMs(typed);
  if (ago !== null) return nowMs - ago;
  const [, day, ofDay] = /^(today|yesterday)\b\s*(?:at\s+)?(.*)$/.exec(typed) ?? [];
  const rest = ofDay ?? typed.replace(/^at\s+/, '');
  if (day === 'yesterday' && rest === '') return nowMs - DAY_MS;
  const clock = clockOf(rest);
  if (clock === null) return day === undefined ? dateOf(typed, zone.utc) : null;
  const of = { nowMs, utc: zone.utc || clock.utc };
  const ms = onDay(day === 'yesterday' ? -1 : 0, clock.seconds, of);
  return day === undefined && ms > nowMs ? onDay(-1, clock.seconds, of) : ms;
}
