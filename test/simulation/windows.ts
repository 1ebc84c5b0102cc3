/**
 * Windows and blackouts of a run: the seed draws them as figures. From these come the text of the options, and what the checker judges
 * by. It shares no code with libs/rules and libs/timezone: `Intl` says what the clock on the wall shows.
 */
import { Chance } from './chance.ts';

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
/** None of them changes its clock while a run lasts. */
const ZONES = ['UTC', 'Asia/Kolkata', 'America/New_York'];

/** From this minute of the local day up to that one: where it is not later, that of the next day. */
export interface Span {
  /** First and last weekday, 0: Monday; null: every day. */
  readonly days: readonly [number, number] | null;
  readonly fromMinute: number;
  readonly toMinute: number;
}

export interface Hours {
  readonly zone: string;
  /** None: open at all times. */
  readonly spans: readonly Span[];
  /** Local times as `2026-01-05T02:30`, the second one not included. */
  readonly blackouts: readonly (readonly [string, string])[];
}

const clock = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;

/** As the options `windows` and `kronos:window` take it. */
export function spanText({ days, fromMinute, toMinute }: Span): string {
  const times = `${clock(fromMinute)}-${clock(toMinute)}`;
  return days === null ? times : `${DAYS[days[0]]}-${DAYS[days[1]]} ${times}`;
}

/** Parses the text of {@link spanText}. */
export function readSpan(text: string): Span {
  const [days, times] = text.includes(' ') ? (text.split(' ') as [string, string]) : [null, text];
  const [fromMinute = 0, toMinute = 0] = times
    .split('-')
    .map((time) => time.split(':').map(Number))
    .map(([hour = 0, minute = 0]) => 60 * hour + minute);
  const [first = 0, last = 0] = (days ?? '').split('-').map((day) => DAYS.indexOf(day));
  return { days: days === null ? null : [first, last], fromMinute, toMinute };
}

/** A local time. */
interface Wall {
  readonly text: string;
  readonly weekday: number;
  readonly minute: number;
}
/** By time zone: its format, and what was shown at minutes since the epoch, as the checker asks for the same ones again and again. */
const zones = new Map<string, { readonly format: Intl.DateTimeFormat; readonly shown: Map<number, Wall> }>();

/** @param atMs ms since the epoch */
function wall(zone: string, atMs: number): Wall {
  let known = zones.get(zone);
  if (known === undefined) {
    const format = new Intl.DateTimeFormat('en-GB', {
      timeZone: zone,
      weekday: 'short',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
    known = { format, shown: new Map() };
    zones.set(zone, known);
  }
  const at = Math.floor(atMs / 60_000);
  let shown = known.shown.get(at);
  if (shown === undefined) {
    shown = read(known.format, atMs);
    known.shown.set(at, shown);
  }
  return shown;
}

function read(format: Intl.DateTimeFormat, atMs: number): Wall {
  const parts = Object.fromEntries(format.formatToParts(atMs).map(({ type, value }) => [type, value]));
  const { year, month, day, hour, minute, weekday } = parts;
  return {
    text: `${year}-${month}-${day}T${hour}:${minute}`,
    weekday: DAYS.indexOf(weekday ?? ''),
    minute: 60 * Number(hour) + Number(minute),
  };
}

/** Whether moves may start at a time. @param atMs ms since the epoch */
export function isOpen({ zone, spans, blackouts }: Hours, atMs: number): boolean {
  const { text, weekday, minute } = wall(zone, atMs);
  if (blackouts.some(([from, to]) => from <= text && text < to)) return false;
  if (spans.length === 0) return true;
  const on = (days: Span['days'], day: number): boolean => {
    if (days === null) return true;
    const [first, last] = days;
    return first <= last ? first <= day && day <= last : day >= first || day <= last;
  };
  return spans.some(({ days, fromMinute, toMinute }) =>
    fromMinute < toMinute
      ? on(days, weekday) && fromMinute <= minute && minute < toMinute
      : (on(days, weekday) && minute >= fromMinute) || (on(days, (weekday + 6) % 7) && minute < toMinute),
  );
}

/** The least and the greatest length of a window, and of the time between two, in minutes. */
interface Lengths {
  readonly open: readonly [number, number];
  readonly closed: readonly [number, number];
}
/** They open and close several times a day, so that many moves meet an edge. */
const USUAL: Lengths = { open: [20, 150], closed: [10, 90] };
/** They close before a plan with several moves is done: some of its tasks wait for a slot then. */
const SHORT: Lengths = { open: [3, 12], closed: [5, 25] };

function drawSpans(chance: Chance, { open, closed }: Lengths): Span[] {
  const spans: Span[] = [];
  const days = chance.pick([null, null, [0, 3], [6, 4]] as const);
  let minute = chance.int(0, 60);
  while (minute < 1440) {
    const end = minute + chance.int(...open);
    spans.push({ days, fromMinute: minute, toMinute: end > 1440 ? end - 1440 : end });
    minute = end + chance.int(...closed);
  }
  return spans;
}

/** @param durationMs of the run, which begins at `beginMs` */
function drawHours(chance: Chance, zone: string, beginMs: number, durationMs: number): Hours {
  const blackouts: [string, string][] = [];
  while (chance.flip(0.4)) {
    const fromMs = beginMs + chance.next() * durationMs;
    blackouts.push([wall(zone, fromMs).text, wall(zone, fromMs + chance.int(5, 60) * 60_000).text]);
  }
  if (!chance.flip(0.8)) return { zone, spans: [], blackouts };
  const lengths = chance.fork('lengths').flip(0.5) ? SHORT : USUAL;
  return { zone, spans: drawSpans(chance, lengths), blackouts };
}

export interface DrawnWindows {
  /** Of all aggregates without hours of their own. */
  readonly usual: Hours;
  readonly own: ReadonlyMap<string, Hours>;
  /** Windows of their own, in the time zone of their aggregate. */
  readonly servers: ReadonlyMap<string, { readonly spans: readonly Span[]; readonly how: 'metadata' | 'tags' }>;
  readonly evacuationIgnoresWindows: boolean;
}

/** The names that windows are drawn for. */
export interface Windowed {
  readonly aggregates: readonly string[];
  readonly servers: readonly string[];
}

/**
 * The windows of a run; null: it has none. They have a source of their own: a run without windows is what it was before there were any.
 *
 * @param durationMs of the run, which begins at `beginMs`, ms since the epoch
 */
export function drawWindows(
  seed: number,
  { aggregates, servers }: Windowed,
  beginMs: number,
  durationMs: number,
): DrawnWindows | null {
  const chance = new Chance(`windows/${seed}`);
  if (!chance.flip(0.4)) return null;
  const usual = drawHours(chance, chance.pick(ZONES), beginMs, durationMs);
  const evacuationIgnoresWindows = chance.flip(0.5);
  const own = new Map<string, Hours>();
  for (const name of aggregates)
    if (chance.flip(0.4)) own.set(name, drawHours(chance, chance.pick(ZONES), beginMs, durationMs));
  const narrowed = new Map<string, { spans: Span[]; how: 'metadata' | 'tags' }>();
  for (const name of servers)
    if (chance.flip(0.2))
      // Nova's metadata has no room for many short ones.
      narrowed.set(name, { spans: drawSpans(chance, USUAL), how: chance.pick(['metadata', 'tags'] as const) });
  return { usual, own, servers: narrowed, evacuationIgnoresWindows };
}

/** As Nova keeps the windows of a server: a tag holds no comma, so each one has a tag. */
export function serverSettings(spans: readonly Span[], how: 'metadata' | 'tags') {
  const texts = spans.map(spanText);
  return how === 'metadata'
    ? { metadata: { 'kronos:window': texts.join(', ') } }
    : { tags: texts.map((text) => `kronos:window=${text}`) };
}

/** As the options of an aggregate. */
export const windowOptions = ({ zone, spans, blackouts }: Hours) => ({
  windows: spans.map(spanText),
  blackouts: blackouts.map(([from, to]) => `${from}/${to}`),
  timezone: zone,
});

/** When moves may start, as the checker asks it. */
export interface Openings {
  readonly evacuationIgnoresWindows: boolean;
  /** @param server its uuid; null: by the windows of the aggregate alone @param atMs ms since the epoch */
  open(aggregate: string, server: string | null, atMs: number): boolean;
}

/** @param nameOf the name that a server was created with, by its uuid */
export function openingsOf(drawn: DrawnWindows, nameOf: (uuid: string) => string | null): Openings {
  const { usual, own, servers, evacuationIgnoresWindows } = drawn;
  return {
    evacuationIgnoresWindows,
    open(aggregate, server, atMs) {
      const hours = own.get(aggregate) ?? usual;
      const spans = server === null ? [] : (servers.get(nameOf(server) ?? '')?.spans ?? []);
      return isOpen(hours, atMs) && isOpen({ zone: hours.zone, spans, blackouts: [] }, atMs);
    },
  };
}
