/** The part of the recorded time that the time bar shows. Times in ms. Pure. */

/** Events within this time of each other belong together. */
const TOGETHER_MS = 300_000;
/** A moment that is further from all that happened is shown with as much around it. */
const AROUND_MS = 1_800_000;
/**
 * A range is cut into this many equal parts. What happened is spread over the range if at least `LEAST_PARTS` of them have some of it:
 * otherwise the chart shows a flat line, with all marks in one place.
 */
const PARTS = 50;
const LEAST_PARTS = 5;
/** A part that is at least this share of the whole is shown as the whole. */
const NEARLY = 0.6;
/** A part shows at least this many cycles. */
const LEAST_CYCLES = 12;

const middle = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
/** The usual time between two cycles near a moment. */
function interval(times, ms) {
  const at = Math.max(0, nearestTo(times, ms) - LEAST_CYCLES);
  const near = times.slice(at, at + 2 * LEAST_CYCLES + 1);
  return near.length < 2 ? 60_000 : middle(near.slice(1).map((time, i) => time - near[i]));
}
/** No part around the moment is shorter. */
export const leastMs = (times, ms) => LEAST_CYCLES * interval(times, ms);

/** Groups of events that belong together. @param happened ascending */
export function episodesOf(happened) {
  const found = [];
  for (const ms of happened) {
    const last = found.at(-1);
    if (last !== undefined && ms - last.toMs <= TOGETHER_MS) last.toMs = ms;
    else found.push({ fromMs: ms, toMs: ms });
  }
  return found;
}

const wholeOf = (times, nowMs) => ({ fromMs: times[0], toMs: Math.max(times.at(-1), nowMs, times[0] + 1) });
const within = (part, whole) => {
  const width = Math.min(part.toMs - part.fromMs, whole.toMs - whole.fromMs);
  const fromMs = Math.max(whole.fromMs, Math.min(part.fromMs, whole.toMs - width));
  return { fromMs, toMs: fromMs + width };
};
const orWhole = (part, whole) =>
  part.toMs - part.fromMs >= NEARLY * (whole.toMs - whole.fromMs) ? whole : within(part, whole);

/** Whether what happened is spread over the part. */
function fills({ fromMs, toMs }, happened) {
  const parts = happened
    .filter((ms) => ms >= fromMs && ms <= toMs)
    .map((ms) => Math.floor(((ms - fromMs) / (toMs - fromMs)) * PARTS));
  return new Set(parts).size >= LEAST_PARTS;
}

const distance = ({ fromMs, toMs }, ms) => Math.max(0, fromMs - ms, ms - toMs);

/** Up to now: the longest part in which what happened is spread. Where there is none: the whole. */
function untilNow(whole, happened, least) {
  for (let part = whole; part.toMs - part.fromMs >= least; ) {
    if (fills(part, happened)) return part;
    part = { fromMs: part.toMs - (part.toMs - part.fromMs) / 3, toMs: part.toMs };
  }
  return whole;
}

/**
 * The part that is shown until a person chooses: the events around a moment; now, the newest events.
 *
 * @param times of the cycles, ascending; not empty
 * @param happened plans, starts and ends of moves, ascending
 * @param atMs null: now
 */
export function usualPart({ times, happened, nowMs }, atMs) {
  const whole = wholeOf(times, nowMs);
  if (happened.length === 0) return whole;
  if (atMs === null) return untilNow(whole, happened, leastMs(times, whole.toMs));
  const [near] = episodesOf(happened).toSorted((a, b) => distance(a, atMs) - distance(b, atMs));
  const far = distance(near, atMs) > AROUND_MS;
  const [fromMs, toMs] = far
    ? [atMs - AROUND_MS, atMs + AROUND_MS]
    : [Math.min(near.fromMs, atMs), Math.max(near.toMs, atMs)];
  const room = Math.max(0.3 * (toMs - fromMs), (leastMs(times, atMs) - (toMs - fromMs)) / 2);
  return orWhole({ fromMs: fromMs - room, toMs: toMs + room }, whole);
}

/** The part that an address names (`all`, or seconds `FROM-TO`); else the usual one. */
export function partOf(text, known, atMs) {
  const whole = wholeOf(known.times, known.nowMs);
  if (text === 'all') return whole;
  const [, from, to] = /^(\d{1,12})-(\d{1,12})$/.exec(text ?? '') ?? [];
  if (from === undefined || Number(to) <= Number(from)) return usualPart(known, atMs);
  return within({ fromMs: from * 1000, toMs: to * 1000 }, whole);
}

/** The part as an address names it. */
export const partText = ({ fromMs, toMs }) => `${Math.floor(fromMs / 1000)}-${Math.ceil(toMs / 1000)}`;

export const isWhole = ({ fromMs, toMs }, { times, nowMs }) => {
  const whole = wholeOf(times, nowMs);
  return fromMs <= whole.fromMs && toMs >= whole.toMs;
};

/** A part `factor` times as long, with the moment in its middle as far as the whole allows. */
export function zoomed({ fromMs, toMs }, factor, middleMs, known) {
  const width = Math.max(leastMs(known.times, middleMs), (toMs - fromMs) * factor);
  const whole = wholeOf(known.times, known.nowMs);
  if (width >= whole.toMs - whole.fromMs) return whole;
  return within({ fromMs: middleMs - width / 2, toMs: middleMs + width / 2 }, whole);
}

/** The same part where it has the moment; else one as long around it. */
export const following = (part, ms, known) =>
  ms >= part.fromMs && ms <= part.toMs ? part : zoomed(part, 1, ms, known);

/** The cycle next to a time. */
export function nearestTo(times, ms) {
  const after = times.findIndex((time) => time >= ms);
  if (after < 0) return times.length - 1;
  return after > 0 && ms - times[after - 1] < times[after] - ms ? after - 1 : after;
}
