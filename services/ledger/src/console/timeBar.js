/**
 * The time bar: imbalances over the recorded cycles, with marks of what happened, and the slider below it. It goes through the cycles by
 * the slider, single steps, playback, and a time that a person types; and it shows a part of them, which the address names.
 */
import { nowMs } from './api.js';
import { drawImbalance, drawn } from './chart.js';
import { ref } from './lib/directives/ref.js';
import { html, noChange } from './lib/lit-html.js';
import { momentOf, timesOf } from './moment.js';
import { clockTime, duration, usesUtc } from './parts.js';
import { following, isWhole, leastMs, nearestTo, partOf, partText, zoomed } from './range.js';
import { EXAMPLES, OFTEN, typedTime } from './times.js';

/** A cycle is shown for this long before the next one is asked for. */
const PLAY_MS = 700;
let playing = false;
let next = 0;
/** A person holds the thumb: the page follows it, and new cycles leave it where it is. */
let held = false;
const hold = () => {
  held = true;
  stopPlayback();
};
const letGo = () => {
  held = false;
};

/** The message about the typed time; the next step removes it. */
let note = '';

export function stopPlayback() {
  playing = false;
  note = '';
  clearTimeout(next);
}

/** People mean a whole minute. */
const MINUTE_MS = 60_000;
/** The index of the last cycle at a time, or the first one after it. */
export const cycleAt = (times, ms) =>
  Math.max(
    0,
    times.findLastIndex((time) => Date.parse(time) < ms + MINUTE_MS),
  );

/** Goes to a typed time, or says what is wrong with it. */
function goToTyped(field, text, times, step) {
  const ms = typedTime(text, { nowMs: nowMs(), utc: usesUtc() });
  field.setCustomValidity(ms === null ? `Write ${EXAMPLES}.` : '');
  if (ms === null) return field.reportValidity();
  field.value = '';
  const index = cycleAt(times, ms);
  step(index);
  if (Date.parse(times[index]) >= ms + MINUTE_MS)
    note = `The oldest cycle that is kept is shown: ${clockTime(new Date(ms).toISOString())} is before it.`;
}

/** A field for a time, and the times that people look for most. */
function typed(times, step) {
  const submit = (event) => {
    event.preventDefault();
    const field = event.target.elements.time;
    goToTyped(field, field.value, times, step);
  };
  return html`<form class="tools" @submit=${submit}>
    <span class="dim" role="status">${note}</span>
    <label>Go to <input name="time" data-key="Time" autocomplete="off" spellcheck="false" maxlength="40" size="26" placeholder="03:00, yesterday 14:00, 2h" aria-keyshortcuts="t"
      @input=${(e) => e.target.setCustomValidity('')} @keydown=${(e) => e.key === 'Escape' && e.target.blur()}></label>
    ${OFTEN.map(([label, text]) => html`<button type="button" @click=${(e) => goToTyped(e.target.form.elements.time, text, times, step)}>${label}</button>`)}</form>`;
}

/** The address of a moment: what else the address names stays. @param changes parts of the query; null: without it */
export function withQuery(query, changes) {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes))
    if (value == null) next.delete(name);
    else next.set(name, value);
  const text = String(next);
  return text === '' ? '' : `?${text}`;
}

/** The buttons: playback, to an end, to the plan before and after, one cycle, now. */
function buttons(series, at, goTo, step) {
  const { times, steps } = series;
  const last = times.length - 1;
  const shown = at === null ? last : at;
  if (playing && at !== null) {
    clearTimeout(next);
    // The view is rendered when its data has come, so playback never runs ahead of the ledger.
    if (at >= last) playing = false;
    else next = setTimeout(() => goTo(at + 1), PLAY_MS);
  }
  const toggle = () => {
    if (playing) step(shown);
    else {
      playing = true;
      goTo(at === null || at >= last ? 0 : at);
    }
  };
  const plans = steps.flatMap((n, i) => (n > 0 ? [i] : []));
  const previous = plans.findLast((i) => i < shown);
  const following = plans.find((i) => at !== null && i > at);
  const jump = (key, label, sign, to) =>
    html`<button type="button" data-key=${key} aria-label=${label} title=${label} ?disabled=${to === undefined} @click=${() => step(to)}>${sign}</button>`;
  return html`<button type="button" data-key="Play" aria-pressed=${playing} @click=${toggle}>${playing ? 'Pause' : 'Play'}</button>
    <span class="steps">${jump('Oldest', 'To the oldest cycle', '|◂', shown > 0 ? 0 : undefined)}
    ${jump('PreviousPlan', 'To the plan before', '◂◂', previous)}
    ${jump('Back', 'Back', '◂', shown > 0 ? shown - 1 : undefined)}
    ${jump('Forward', 'Forward', '▸', at !== null && at < last ? at + 1 : undefined)}
    ${jump('NextPlan', 'To the plan after', '▸▸', following)}</span>
    <button type="button" data-key="Now" ?disabled=${at === null} @click=${() => step(null)}>Now</button>
    <strong class="moment">${at === null ? 'Newest' : shown < 0 ? 'An older cycle' : clockTime(momentOf(series, shown).atMs)}</strong>`;
}

/** How much of the time is shown, and the buttons that change it. */
function zoom({ part, known, middleMs }, show) {
  const whole = isWhole(part, known);
  const width = part.toMs - part.fromMs;
  const to = (factor) => () => show(zoomed(part, factor, middleMs, known));
  return html`<span class="steps zoom">
    <button type="button" data-key="ZoomIn" ?disabled=${width <= leastMs(known.times, middleMs)} @click=${to(0.5)}>Zoom in</button>
    <button type="button" data-key="ZoomOut" ?disabled=${whole} @click=${to(2)}>Zoom out</button>
    <button type="button" data-key="Whole" ?disabled=${whole} @click=${() => show(null)}>Whole range</button></span>
    <span class="dim">${duration(width)}${whole ? ', all that is kept' : ` of ${duration(known.nowMs - known.times[0])}`}</span>`;
}

/** Keys of the slider: one cycle, not one second. */
const KEYS = {
  ArrowLeft: (shown) => shown - 1,
  ArrowDown: (shown) => shown - 1,
  ArrowRight: (shown) => shown + 1,
  ArrowUp: (shown) => shown + 1,
  PageDown: (shown) => shown - 10,
  PageUp: (shown) => shown + 10,
  Home: () => 0,
  End: () => Number.POSITIVE_INFINITY,
};

/** The slider under the chart, from the first cycle that is shown to the last. */
function slider(times, { part, shown, said, first, last, starts }, step) {
  const atMs = (index) => starts[index] - starts[first];
  const byKey = (event) => {
    const to = KEYS[event.key]?.(shown);
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step(Math.max(0, Math.min(times.length - 1, to)));
  };
  const drag = (event) => {
    const to = nearestTo(starts, starts[first] + Number(event.target.value));
    if (to !== shown) step(to);
  };
  const placed = shown >= 0 && starts[shown] >= part.fromMs && starts[shown] <= part.toMs ? atMs(shown) : 0;
  return html`<input type="range" min="0" step="any" max=${held ? noChange : String(Math.max(1, atMs(last)))} .value=${held ? noChange : String(placed)} aria-label="Recorded cycle"
      aria-valuetext=${said} @pointerdown=${hold} @pointerup=${letGo}
      @pointercancel=${letGo} @keydown=${byKey} @input=${drag}>`;
}

const NO_MARKS = [];
const MARKED = html`<span><span class="swatch plan-mark"></span> plan</span> <span><span class="swatch moved-mark"></span> move</span>
  <span><span class="swatch pause-mark"></span> pause, approval or drain</span> <span>A mark is a link to what happened. A number stands for several marks: click it to zoom in.</span>`;

/**
 * @param at index of the cycle that is shown; null: now; -1: one that is older than what the ledger has in memory
 * @param how `query`: of the address; `go`: shows another moment, given the query of its address; `marks`: what the chart marks, see
 *   `marksOf`
 */
export function timeBar(series, at, { query, go: goToMoment, marks = NO_MARKS }) {
  const { times, snapshotIds } = series;
  if (times.length === 0) return '';
  const { starts, happened, promised } = timesOf(series);
  const known = { times: starts, happened, nowMs: nowMs() };
  const shown = at === null ? times.length - 1 : at;
  const part = partOf(query.get('time'), known, at === null || at < 0 ? null : starts[at]);
  /** @param index null: now; @param time the part that is shown; null: the usual one */
  const go = (index, time) =>
    goToMoment(withQuery(query, { snapshot: index === null ? null : snapshotIds[index], time }));
  /** A step stays in the part that is seen, and takes it along beyond its ends. Now ends it. */
  const goTo = (index) => {
    if (index === null) return go(null, null);
    const kept = isWhole(part, known) ? 'all' : partText(following(part, starts[index], known));
    return go(index, kept);
  };
  const step = (index) => {
    stopPlayback();
    goTo(index);
  };
  /** A time that is typed is shown with what happened around it. */
  const jump = (index) => {
    stopPlayback();
    go(index, null);
  };
  const show = (wanted) => {
    stopPlayback();
    go(at === null ? null : shown, wanted === null || isWhole(wanted, known) ? 'all' : partText(wanted));
  };
  const said = shown < 0 ? 'older' : clockTime(momentOf(series, shown).atMs);
  const inside = starts.flatMap((ms, i) => (ms >= part.fromMs && ms <= part.toMs ? [i] : []));
  const [first, last] = [inside[0] ?? 0, inside.at(-1) ?? times.length - 1];
  const middleMs = at === null || at < 0 ? part.toMs : starts[at];
  return html`<div class="timebar">
    <div class="tools">${buttons(series, at, goTo, step)}<span class="push"></span>${typed(times, jump)}</div>
    <div class="chart small" aria-hidden="true" ${ref(drawn((element) => drawImbalance(element, series, usesUtc(), { at, goTo, marks, part, ends: [starts[first], starts[last]], open: (found) => go(found.index, partText(found.part)) })))}></div>
    ${slider(times, { part, shown, said, first, last, starts }, step)}
    <div class="tools">${zoom({ part, known, middleMs }, show)}</div>
    <p class="dim legend"><span>Imbalance ÷ threshold: balanced at 1.00× or less</span> ${promised.includes(true) ? html`<span>Dashed: as if the moves under way were done</span>` : ''} ${marks === NO_MARKS ? '' : MARKED} <span>kept since ${clockTime(times[0])}</span></p></div>`;
}
