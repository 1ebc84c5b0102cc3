/**
 * The time bar: imbalances over the recorded cycles, with marks of what happened, and the slider below it. It goes through the cycles by
 * the slider, single steps, playback, and a time that a person types.
 */
import { nowMs } from './api.js';
import { drawImbalance, drawn } from './chart.js';
import { ref } from './lib/directives/ref.js';
import { html, noChange } from './lib/lit-html.js';
import { clockTime, usesUtc } from './parts.js';
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

/** What is said of the typed time; it is gone with the next step. */
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

/** The buttons: playback, to an end, to the plan before and after, one cycle, now. */
function buttons({ times, steps }, at, goTo, step) {
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
    <strong class="moment">${at === null ? 'Newest' : shown < 0 ? 'An older cycle' : clockTime(times[shown])}</strong>`;
}

const NO_MARKS = [];
const MARKED = html`<span><span class="swatch plan-mark"></span> plan</span> <span><span class="swatch moved-mark"></span> move</span>
  <span><span class="swatch pause-mark"></span> pause, approval or drain</span> <span>A mark leads to why.</span>`;

/**
 * @param at index of the cycle that is shown; null: now; -1: one that is older than what the ledger has in memory
 * @param marks what the chart marks, see `marksOf`
 */
export function timeBar(series, at, goTo, marks = NO_MARKS) {
  const { times } = series;
  const last = times.length - 1;
  if (last < 0) return '';
  const shown = at === null ? last : at;
  const step = (index) => {
    stopPlayback();
    goTo(index);
  };
  return html`<div class="timebar">
    <div class="tools">${buttons(series, at, goTo, step)}<span class="push"></span>${typed(times, step)}</div>
    <div class="chart small" aria-hidden="true" ${ref(drawn((element) => drawImbalance(element, series, usesUtc(), { at, goTo, marks })))}></div>
    <input type="range" min="0" max=${held ? noChange : last} .value=${held ? noChange : String(Math.max(0, shown))} aria-label="Recorded cycle"
      aria-valuetext=${shown < 0 ? 'older' : clockTime(times[shown])} @pointerdown=${hold} @pointerup=${letGo}
      @pointercancel=${letGo} @input=${(e) => step(Number(e.target.value))}>
    <p class="dim legend"><span>Imbalance ÷ threshold: balanced at 1.00× or less</span> ${marks === NO_MARKS ? '' : MARKED} <span>kept since ${clockTime(times[0])}</span></p></div>`;
}
