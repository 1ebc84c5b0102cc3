/** The times at which moves may start: weekly windows and blackouts, in the local time of one zone. */
import { DAY_MS, iso, quotedValue } from '@kronos/contracts';

/**
 * The changes of a time zone, as data. It is part of the recorded options, so that a replay needs no time zone database and
 * another database changes no decision.
 */
export type TimeZoneRules = {
  /** E.g. `Europe/Berlin`. */
  readonly name: string;
  /** When each change took effect, seconds since the epoch, ascending. The first offset holds before it too. */
  readonly since: readonly number[];
  /** Seconds by which local time is ahead of UTC from each change on. */
  readonly offsetSeconds: readonly number[];
};

/** UTC needs no table. */
export const UTC: TimeZoneRules = { name: 'UTC', since: [], offsetSeconds: [] };

export type WindowOptions = {
  /** Each as {@link parseWindow} reads it. Empty: open at all times. */
  readonly windows: readonly string[];
  /** Each as {@link parseBlackout} reads it. */
  readonly blackouts: readonly string[];
  readonly timezone: TimeZoneRules;
};

/** Minutes of local time since the beginning of a day; an end at or before the start is on the next day. */
export type WeeklyWindow = {
  /** 0: Monday. */
  readonly days: readonly number[];
  readonly startMinute: number;
  readonly endMinute: number;
};

/** Local times, as ms since the epoch as if the zone were UTC. */
export type Blackout = { readonly fromMs: number; readonly toMs: number };

export type ReadWindow<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string; readonly remedy: string };

export type WindowState = {
  readonly open: boolean;
  /** When that changes, ms since the epoch; null: never, by these options. */
  readonly untilMs: number | null;
  /** The cause: a blackout, no window, or text that cannot be read. Null while it is open. */
  readonly closedBy: { readonly kind: 'window' | 'blackout' | 'unreadable'; readonly text: string } | null;
};

const MINUTE_MS = 60_000;
const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

const bad = (problem: string, remedy: string): ReadWindow<never> => ({ ok: false, problem, remedy });

/** `Mon-Fri 22:00-06:00`, `Sun 00:00-24:00`; without days, every day. A window that ends the next day belongs to the day of its start. */
export function parseWindow(text: string): ReadWindow<WeeklyWindow> {
  const remedy = 'Write days and times, such as Mon-Fri 22:00-06:00 or Sat 00:00-24:00.';
  const match = /^(?:([a-z]+)(?:\s*-\s*([a-z]+))?\s+)?(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$/i.exec(text.trim());
  if (match === null) return bad(`${quotedValue(text)} is not a window`, remedy);
  const [, first, last, ...times] = match;
  const named = [first, last].find((name) => name !== undefined && dayOf(name) < 0);
  if (named !== undefined)
    return bad(
      `${quotedValue(text)}: ${quotedValue(named)} is not a day`,
      'Write Mon, Tue, Wed, Thu, Fri, Sat or Sun.',
    );
  const [startHour = 0, startMin = 0, endHour = 0, endMin = 0] = times.map(Number);
  const [startMinute, endMinute] = [startHour * 60 + startMin, endHour * 60 + endMin];
  if (startMin > 59 || endMin > 59 || startMinute >= 1440 || endMinute > 1440)
    return bad(
      `${quotedValue(text)} holds a time that no day has`,
      'Write times from 00:00 to 23:59; an end may be 24:00.',
    );
  if (startMinute === endMinute)
    return bad(`${quotedValue(text)} ends when it starts`, 'Write 00:00-24:00 for the whole day.');
  return { ok: true, value: { days: daysFrom(first, last), startMinute, endMinute } };
}

/** The days from the first to the last one, over the end of the week; without a last one the first, without both every day. */
function daysFrom(first: string | undefined, last: string | undefined): number[] {
  const from = first === undefined ? 0 : dayOf(first);
  const to = first === undefined ? 6 : dayOf(last ?? first);
  const days: number[] = [];
  for (let day = from; ; day = (day + 1) % 7) {
    days.push(day);
    if (day === to) return days;
  }
}

const dayOf = (name: string): number => DAYS.indexOf(name.toLowerCase());

/**
 * `2026-12-24` (the whole day), `2026-12-24/2027-01-02` (the last day included), `2026-12-24T18:00/2026-12-26T06:00` (up to
 * that time).
 */
export function parseBlackout(text: string): ReadWindow<Blackout> {
  const [from = '', to = from, ...more] = text.split('/').map((part) => part.trim());
  const start = momentOf(from);
  const end = momentOf(to);
  if (start === null || end === null || more.length > 0 || (to === from && !start.wholeDay))
    return bad(
      `${quotedValue(text)} is not a blackout`,
      'Write a date or a range of dates or times, such as 2026-12-24, 2026-12-24/2027-01-02 or 2026-12-24T18:00/2026-12-26T06:00.',
    );
  const toMs = end.ms + (end.wholeDay ? DAY_MS : 0);
  if (toMs <= start.ms) return bad(`${quotedValue(text)} ends before it starts`, 'Write the earlier one first.');
  return { ok: true, value: { fromMs: start.ms, toMs } };
}

function momentOf(text: string): { ms: number; wholeDay: boolean } | null {
  const match = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2}))?$/.exec(text);
  if (match === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = match.slice(1).map((part) => Number(part ?? 0));
  const ms = Date.UTC(year, month - 1, day, hour, minute);
  const back = new Date(ms);
  const real = back.getUTCMonth() === month - 1 && back.getUTCDate() === day && hour < 24 && minute < 60;
  return real ? { ms, wholeDay: match[4] === undefined } : null;
}

/**
 * Whether moves may start at a time, and until when that holds. Closed where a text cannot be read.
 *
 * A local time is the first moment at which the clock on the wall shows it or a later time: one that is skipped in spring is
 * the moment of the change, one that comes twice in autumn is the first of the two. The end of a blackout is the second.
 *
 * @param nowMs ms since the epoch
 */
export function migrationWindow({ windows, blackouts, timezone }: WindowOptions, nowMs: number): WindowState {
  if (windows.length === 0 && blackouts.length === 0) return { open: true, untilMs: null, closedBy: null };
  const weekly: WeeklyWindow[] = [];
  const black: (Interval & { readonly text: string })[] = [];
  for (const [texts, parse] of [
    [windows, parseWindow],
    [blackouts, parseBlackout],
  ] as const)
    for (const text of texts) {
      const read = parse(text);
      if (!read.ok) return { open: false, untilMs: null, closedBy: { kind: 'unreadable', text: read.problem } };
      if ('days' in read.value) weekly.push(read.value);
      else {
        const { fromMs, toMs } = read.value;
        black.push({ text, fromMs: instant(timezone, fromMs, 'first'), toMs: instant(timezone, toMs, 'second') });
      }
    }

  const opening = (atMs: number): Pick<WindowState, 'open' | 'closedBy'> => {
    const blackout = black.find(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
    if (blackout !== undefined) return { open: false, closedBy: { kind: 'blackout', text: blackout.text } };
    const inside =
      weekly.length === 0 || occurrences(weekly, timezone, atMs, 1).some((w) => w.fromMs <= atMs && atMs < w.toMs);
    return { open: inside, closedBy: inside ? null : { kind: 'window', text: windows.join(', ') } };
  };
  const state = opening(nowMs);
  const lastBlackMs = Math.max(nowMs, ...black.map(({ toMs }) => toMs));
  for (let fromMs = nowMs; fromMs <= lastBlackMs + SETTLED_DAYS * DAY_MS; fromMs += SPAN_DAYS * DAY_MS) {
    const toMs = fromMs + SPAN_DAYS * DAY_MS;
    const edges = [...occurrences(weekly, timezone, fromMs, SPAN_DAYS), ...black].flatMap((each) => [
      each.fromMs,
      each.toMs,
    ]);
    for (const edge of edges.filter((at) => at > nowMs && at > fromMs - 1 && at <= toMs).sort((a, b) => a - b))
      if (opening(edge).open !== state.open) return { ...state, untilMs: edge };
  }
  return { ...state, untilMs: null };
}

type Interval = { readonly fromMs: number; readonly toMs: number };

/** Days that are searched at a time. */
const SPAN_DAYS = 8;
/** After the last blackout the weeks repeat; one occurrence may be lost to the change of a clock. */
const SETTLED_DAYS = 16;

/** The occurrences of the windows that may cover a time from `atMs` to `days` days later. */
function occurrences(weekly: readonly WeeklyWindow[], zone: TimeZoneRules, atMs: number, days: number): Interval[] {
  const today = Math.floor((atMs + offsetAt(zone, atMs) * 1000) / DAY_MS);
  const found: Interval[] = [];
  for (let day = today - 1; day <= today + days; day++) {
    // Day 0 since the epoch was a Thursday.
    const weekday = (day + 3) % 7;
    for (const window of weekly) {
      if (!window.days.includes(weekday)) continue;
      const { startMinute, endMinute } = window;
      const start = day * DAY_MS + startMinute * MINUTE_MS;
      const end = (endMinute <= startMinute ? day + 1 : day) * DAY_MS + endMinute * MINUTE_MS;
      found.push({ fromMs: instant(zone, start, 'first'), toMs: instant(zone, end, 'first') });
    }
  }
  return found;
}

function offsetAt({ since, offsetSeconds }: TimeZoneRules, atMs: number): number {
  return (
    offsetSeconds[
      Math.max(
        0,
        since.findLastIndex((second) => second * 1000 <= atMs),
      )
    ] ?? 0
  );
}

/** The moment of a local time; of one that comes twice the first or the second, of one that is skipped the change. */
function instant({ since, offsetSeconds }: TimeZoneRules, localMs: number, which: 'first' | 'second'): number {
  let found: number | null = null;
  for (const [i, offset] of offsetSeconds.entries()) {
    const begins = i === 0 ? Number.NEGATIVE_INFINITY : (since[i] ?? 0) * 1000;
    const ends = (since[i + 1] ?? Number.POSITIVE_INFINITY) * 1000;
    const at = localMs - offset * 1000;
    if (at >= ends) continue;
    // The clock shows it again in this period; otherwise the clock jumps past it where the period begins.
    if (at >= begins) found = at;
    else found ??= begins;
    if (which === 'first' || at < begins) break;
  }
  return found ?? localMs;
}

/** Metadata key, and beginning of a tag, that gives a server windows of its own. */
const OWN_WINDOW = 'kronos:window';

/**
 * The windows that a server's metadata and tags name, as text. In the metadata there are commas between them, as in the
 * option; a tag of Nova holds no comma, so each tag is one window.
 */
export function serverWindows(server: {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
}): string[] {
  const { metadata, tags } = server;
  const text = Object.hasOwn(metadata, OWN_WINDOW) ? metadata[OWN_WINDOW] : undefined;
  const tagged = tags.filter((tag) => tag.startsWith(`${OWN_WINDOW}=`)).map((tag) => tag.slice(OWN_WINDOW.length + 1));
  return [...(text === undefined ? [] : text.split(',').map((part) => part.trim())), ...tagged.sort()];
}

/** The effect of a server's own windows on its moves. */
export type ServerWindow =
  /** Nothing is against a move. `endMs`: when its window closes, ms since the epoch; null: no window of its own limits it. */
  | { readonly kind: 'open'; readonly endMs: number | null }
  /** Only an evacuation may move it where `evacuation_ignores_windows` says so; otherwise nothing. */
  | { readonly kind: 'closed'; readonly untilMs: number | null }
  /** Its text cannot be read: nothing moves it. */
  | { readonly kind: 'unreadable'; readonly problem: string };

/** @param windows as {@link serverWindows} gives them */
export function serverWindow(windows: readonly string[], timezone: TimeZoneRules, nowMs: number): ServerWindow {
  const { open, untilMs, closedBy } = migrationWindow({ windows, blackouts: [], timezone }, nowMs);
  if (closedBy?.kind === 'unreadable') return { kind: 'unreadable', problem: closedBy.text };
  return open ? { kind: 'open', endMs: untilMs } : { kind: 'closed', untilMs };
}

/** Why nothing starts, in words; null while it is open. */
export function windowText({ closedBy, untilMs }: WindowState): string | null {
  if (closedBy === null) return null;
  const until = untilMs === null ? 'for good: no window opens again' : `until ${iso(untilMs)}`;
  return closedBy.kind === 'blackout'
    ? `blocked by the blackout ${closedBy.text} ${until}`
    : closedBy.kind === 'window'
      ? `blocked by the window ${until}`
      : `blocked by the window: ${closedBy.text}`;
}
