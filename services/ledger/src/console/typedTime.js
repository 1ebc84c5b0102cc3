/** Times as people type them: `03:00`, `3am`, `yesterday 14:00`, `2h`, `-90m`, `2026-01-31 12:00`. Pure. */

const SECONDS = { s: 1, min: 60, m: 60, h: 3600, d: 86_400 };

/** The examples that an error names. */
export const EXAMPLES = '03:00, 3am, yesterday 14:00, 2h ago or 2026-01-31 12:00';

/** A time of day as minutes since midnight; null: none. */
function clockOf(text) {
  const found = /^(\d{1,2})(?::(\d{2}))?(?::\d{2})?\s*(am|pm)?$/.exec(text);
  if (found === null || (found[2] === undefined && found[3] === undefined)) return null;
  const [hours, minutes] = [Number(found[1]), Number(found[2] ?? 0)];
  const half = found[3];
  if (minutes > 59 || (half === undefined ? hours > 23 : hours < 1 || hours > 12)) return null;
  return (half === undefined ? hours : (hours % 12) + (half === 'pm' ? 12 : 0)) * 60 + minutes;
}

/** How long ago, in ms; null: no such text. */
function agoOf(text) {
  const found = /^-?\s*(\d+(?:\.\d+)?)\s*(s|min|m|h|d)(?:\s+ago)?$/.exec(text);
  return found === null ? null : Number(found[1]) * SECONDS[found[2]] * 1000;
}

/** A moment of the calendar, in ms since the epoch. `days`: after the day of `nowMs`. */
function onDay(days, minutes, { nowMs, utc }) {
  const now = new Date(nowMs);
  return utc
    ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + days, 0, minutes)
    : new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, 0, minutes).getTime();
}

/** A date that exists, with a time of day or at its start; null: none. */
function dateOf(text, utc) {
  const found = /^(\d{4}-\d{2}-\d{2})(?:[t ]+(\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?))?\s*(z|[+-]\d{2}:?\d{2})?$/.exec(text);
  if (found === null) return null;
  const [, day, time = '00:00', zone = utc ? 'z' : ''] = found;
  if (Number.isNaN(Date.parse(`${day}T00:00Z`)) || new Date(`${day}T00:00Z`).toISOString().slice(0, 10) !== day)
    return null;
  const ms = Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(ms) ? null : ms;
}

/**
 * A time in the past, in ms since the epoch; null: the text is none. A time of day without a day is the last one that has been: `03:00` at two in
 * the morning is that of yesterday.
 *
 * @param zone `utc`: whether times of day are UTC; otherwise they are those of this machine
 */
export function typedTime(text, { nowMs, utc }) {
  const zone = { nowMs, utc };
  const typed = text.trim().toLowerCase();
  if (typed === 'now') return nowMs;
  const ago = agoOf(typed);
  if (ago !== null) return nowMs - ago;
  const [day, rest = ''] = /^(today|yesterday)\b\s*(?:at\s+)?(.*)$/.exec(typed)?.slice(1) ?? [
    null,
    typed.replace(/^at\s+/, ''),
  ];
  if (day === 'yesterday' && rest === '') return nowMs - 86_400_000;
  const minutes = clockOf(rest);
  if (minutes === null) return day === null ? dateOf(typed, utc) : null;
  const ms = onDay(day === 'yesterday' ? -1 : 0, minutes, zone);
  return day === null && ms > nowMs ? onDay(-1, minutes, zone) : ms;
}

/** What people look for most, each with a text that {@link typedTime} reads. */
export const OFTEN = [
  ['1 h ago', '1h'],
  ['6 h ago', '6h'],
  ['03:00', '03:00'],
  ['yesterday', 'yesterday'],
];
