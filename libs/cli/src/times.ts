import { timeMs } from '@kronos/contracts';
import { typedSeconds, typedTime } from '@kronos/contracts/typedTime';
import type { Estimate } from '@kronos/rules';
import { absolute, span } from '@kronos/status/times';
import { UsageError } from './errors.ts';

export { absolute, relative, span, when } from '@kronos/status/times';

/** A text from the log with its times as people read them: `12:00:03Z`. */
export const said = (text: string, nowMs: number): string =>
  text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => absolute(timeMs(time), nowMs));

/** `about 3 min (2 min to 5 min)`. */
export const expected = ({ expectedMs, interval }: Omit<Estimate, 'measured'>): string =>
  `about ${span(expectedMs)}${interval === null ? '' : ` (${span(interval.lowMs)} to ${span(interval.highMs)})`}`;

/** By which pace a time is expected that is not measured. */
export const ASSUMED_PACE = 'assumed at 100 MiB/s, because fewer than 3 moves have been measured';

/** `about 3 min, assumed at ...`, or by former moves `about 3 min (2 min to 5 min)`. */
export const estimated = (time: Estimate): string => `${expected(time)}${time.measured ? '' : `, ${ASSUMED_PACE}`}`;

/** A duration as a person types it: `600`, `90s`, `10m`, `2h`, `1d`. In milliseconds. @throws UsageError */
export function parseDuration(option: string, text: string): number {
  const seconds = typedSeconds(text);
  if (seconds !== null) return seconds * 1000;
  throw new UsageError(
    `${option} takes a duration, not ${JSON.stringify(text)}`,
    'Write seconds, or a number with a unit: 600, 90s, 10m, 2h, 1d.',
  );
}

/**
 * A time as a person types it, as the console reads it: how long ago (`10m`, `2h`), a time of day (`12:30`, `yesterday 14:00`), or ISO-8601.
 * Without a zone it is UTC. In milliseconds since the epoch.
 *
 * @throws UsageError
 */
export function parseTime(option: string, text: string, nowMs: number): number {
  // A number alone is seconds, as in a duration.
  const ms = typedTime(text.replace(/^-?\s*\d+(?:\.\d+)?(?=$|\s+ago$)/, '$&s'), { nowMs, utc: true });
  if (ms !== null) return ms;
  throw new UsageError(
    `${option} takes a time, not ${JSON.stringify(text)}`,
    'Write how long ago (90s, 10m, 2h, 1d), a time of day (12:30, yesterday 14:00), or a date and time (2026-03-01T12:30Z); times are UTC.',
  );
}

/** The range of `--since` and `--until`; null: no such end. @throws UsageError */
export function parseRange(
  { since, until }: { readonly since?: string | undefined; readonly until?: string | undefined },
  nowMs: number,
): { readonly sinceMs: number | null; readonly untilMs: number | null } {
  const at = (option: string, text: string | undefined): number | null =>
    text === undefined || text === 'all' ? null : parseTime(option, text, nowMs);
  const [sinceMs, untilMs] = [at('--since', since), at('--until', until)];
  if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs)
    throw new UsageError(
      '--since is not before --until',
      `They are ${absolute(sinceMs, nowMs)} and ${absolute(untilMs, nowMs)}.`,
    );
  return { sinceMs, untilMs };
}

/** The same, with only the ends that were given. @throws UsageError */
export function partOfRange(
  given: Parameters<typeof parseRange>[0],
  nowMs: number,
): { readonly sinceMs?: number; readonly untilMs?: number } {
  const { sinceMs, untilMs } = parseRange(given, nowMs);
  return { ...(sinceMs === null ? {} : { sinceMs }), ...(untilMs === null ? {} : { untilMs }) };
}
