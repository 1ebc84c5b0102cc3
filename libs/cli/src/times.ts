import type { Estimate } from '@kronos/rules';
import { absolute, span } from '@kronos/status/times';
import { UsageError } from './errors.ts';

export { absolute, relative, span, when } from '@kronos/status/times';

/** A text from the log with its times as people read them: `12:00:03Z`. */
export const said = (text: string, nowMs: number): string =>
  text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => absolute(Date.parse(time), nowMs));

/** `about 3 min (2 min to 5 min)`. */
export const expected = ({ expectedMs, interval }: Omit<Estimate, 'measured'>): string =>
  `about ${span(expectedMs)}${interval === null ? '' : ` (${span(interval.lowMs)} to ${span(interval.highMs)})`}`;

/** By which pace a time is expected that is not measured. */
export const ASSUMED_PACE = 'assumed at 100 MiB/s, because fewer than 3 moves have been measured';

/** `about 3 min, assumed at ...`, or by former moves `about 3 min (2 min to 5 min)`. */
export const estimated = (time: Estimate): string => `${expected(time)}${time.measured ? '' : `, ${ASSUMED_PACE}`}`;

const SECOND = 1000;

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
