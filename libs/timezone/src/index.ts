import { createRequire } from 'node:module';
import { type TimeZoneRules, UTC } from '@kronos/rules';
import type { Temporal as TemporalApi } from 'temporal-polyfill';

/** The years of which the changes are listed: constants, so that every planner of the same version writes the same table. */
const FIRST = '2024-01-01T00:00:00Z';
const END = '2050-01-01T00:00:00Z';

const known = new Map<string, TimeZoneRules>();

/**
 * The changes of a time zone, from the database of this Node.
 *
 * @param name an IANA name, e.g. `Europe/Berlin`
 * @returns null where there is no such zone
 */
export function timeZoneRules(name: string): TimeZoneRules | null {
  if (name === UTC.name) return UTC;
  const before = known.get(name);
  if (before !== undefined) return before;
  if (!isZone(name)) return null;
  // Loaded only by those who have a zone: it takes longer than the rest of a command's start.
  const { Temporal } = createRequire(import.meta.url)('temporal-polyfill') as { Temporal: typeof TemporalApi };
  let at = Temporal.Instant.from(FIRST).toZonedDateTimeISO(name);
  const changes = [at];
  const endMs = Temporal.Instant.from(END).epochMilliseconds;
  for (;;) {
    const next = at.getTimeZoneTransition('next');
    if (next === null || next.epochMilliseconds >= endMs) break;
    at = next;
    changes.push(at);
  }
  const rules = {
    name,
    since: changes.map(({ epochMilliseconds }) => epochMilliseconds / 1000),
    offsetSeconds: changes.map(({ offsetNanoseconds }) => offsetNanoseconds / 1e9),
  };
  known.set(name, rules);
  return rules;
}

/** Only names of the database: an offset such as +02:00 knows no daylight saving. */
function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
