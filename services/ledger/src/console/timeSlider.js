/** Goes through the recorded cycles: a slider, single steps, and playback. */
import { html, noChange } from './lib/lit-html.js';
import { clockTime, usesUtc } from './parts.js';

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

export function stopPlayback() {
  playing = false;
  clearTimeout(next);
}

/** The index of the last cycle at a time that a person has typed, or the first one after it. */
function nearest(times, typed) {
  const ms = Date.parse(usesUtc() ? `${typed}Z` : typed);
  return Math.max(
    0,
    times.findLastIndex((time) => Date.parse(time) < ms + 60_000),
  );
}

/** @param at index of the cycle that is shown; null: now; -1: one that is older than what the ledger has in memory */
export function timeSlider({ times, steps = [] }, at, goTo) {
  const last = times.length - 1;
  if (last < 0) return '';
  const shown = at === null ? last : at;
  const step = (index) => {
    stopPlayback();
    goTo(index);
  };
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
  return html`<div class="tools">
    ${jump('Oldest', 'To the oldest cycle', '|◂', shown > 0 ? 0 : undefined)}
    ${jump('PreviousPlan', 'To the plan before', '◂◂', previous)}
    <button type="button" data-key="Back" ?disabled=${shown <= 0} @click=${() => step(shown - 1)}>Back</button>
    <button type="button" data-key="Play" aria-pressed=${playing} @click=${toggle}>${playing ? 'Pause' : 'Play'}</button>
    <button type="button" data-key="Forward" ?disabled=${at === null || at >= last} @click=${() => step(at + 1)}>Forward</button>
    ${jump('NextPlan', 'To the plan after', '▸▸', following)}
    <input type="range" min="0" max=${held ? noChange : last} .value=${held ? noChange : String(Math.max(0, shown))} aria-label="Recorded cycle"
      aria-valuetext=${shown < 0 ? 'older' : clockTime(times[shown])} @pointerdown=${hold} @pointerup=${letGo}
      @pointercancel=${letGo} @input=${(e) => step(Number(e.target.value))}>
    <span>${at === null ? 'Now' : shown < 0 ? 'An older cycle' : clockTime(times[shown])}</span>
    <label>At <input type="datetime-local" @change=${(e) => e.target.value !== '' && step(nearest(times, e.target.value))}></label>
    <button type="button" data-key="Now" ?disabled=${at === null} @click=${() => step(null)}>Now</button>
  </div>`;
}
