/** The console: shows the view that the URL names, and reads it again when the ledger folds an event that concerns it. */
import './keys.js';
import { follow, nowMs, Refused } from './api.js';
import { html, render } from './lib/lit-html.js';
import { drawAccount } from './logIn.js';
import { clockTime, duration, usesUtc, useUtc } from './parts.js';
import { load, onSession } from './session.js';
import { stopPlayback } from './timeBar.js';
import { aggregate } from './views/aggregate.js';
import { drains } from './views/drains.js';
import { fleet } from './views/fleet.js';
import { held } from './views/held.js';
import { host } from './views/host.js';
import { moves } from './views/moves.js';
import { plan } from './views/plan.js';
import { plans } from './views/plans.js';
import { runbook } from './views/runbook.js';
import { search } from './views/search.js';
import { vm } from './views/vm.js';
import { whatIf } from './views/whatIf.js';

const routes = [
  ['/', fleet],
  ['/aggregates/:name', aggregate],
  ['/aggregates/:name/hosts/:host', host],
  ['/aggregates/:name/vms/:id', vm],
  ['/aggregates/:name/what-if', whatIf],
  ['/aggregates/:name/drains', drains],
  ['/plans', plans],
  ['/plans/:id', plan],
  ['/moves', moves],
  ['/held', held],
  ['/search', search],
  ['/runbook/:section', runbook],
];
/** Events come in bursts: the view waits for this time before it reads again. */
const BURST_MS = 300;
/** Alarms and snapshots change without an event. */
const REFRESH_MS = 15_000;

const content = document.getElementById('content');
const freshness = document.getElementById('freshness');
const age = document.getElementById('age');
const zone = document.getElementById('zone');

const searchField = document.querySelector('#search input');

const nothingShown = { route: null, view: {}, data: null, late: null, error: null, readAt: null };
/**
 * The current view: the route, the person's choices in it, the newest data, the data that takes longer and is read after it
 * (null: not read yet), and the error of the last try.
 */
let shown = nothingShown;
/** The read under way: of which route, since when, and whether something happened meanwhile; null: none. */
let reading = null;
/** The read under way of the slow part of a view; null: none. */
let readingLate = null;

function routeOf(hash) {
  const [path, query = ''] = (hash.slice(1) || '/').split('?');
  const given = path.split('/');
  for (const [pattern, page] of routes) {
    const wanted = pattern.split('/');
    if (wanted.length !== given.length) continue;
    const params = {};
    const fits = wanted.every((part, i) => {
      if (!part.startsWith(':')) return part === given[i];
      params[part.slice(1)] = decode(given[i]);
      return params[part.slice(1)] !== null;
    });
    if (fits) return { page, params, query: new URLSearchParams(query), path };
  }
  return null;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

const problem = (error) => html`
  <h1>${error.status === 404 ? 'There is no such thing' : 'This view cannot be shown'}</h1>
  <section data-state="error"><p class="bad">${error.message}</p><p><a href="#/">To the fleet</a></p></section>`;

/** After this time the page says that the ledger has not answered. */
const LATE_MS = 4_000;
/** Whether the ledger streams its events. */
let streaming = true;

/** Whether a recorded moment is looked at. */
const isPast = () => shown.route?.query.has('snapshot') === true;

/** The age of the data that is shown, in words. `late`: the ledger takes long to answer. */
function freshText({ data, error, readAt }, { stale, late }) {
  const known = readAt === null ? '' : ` Shown is what was known at ${clockTime(readAt)}.`;
  if (stale && error !== null) return `Stale: ${error.message}.${known} Trying again.`;
  if (stale) return `Stale: the ledger has not answered yet.${known}`;
  if (error !== null) return 'Not shown';
  if (data !== null) return isPast() ? 'A past moment' : 'Live';
  return late ? 'The ledger has not answered yet' : 'Reading the ledger';
}

/** Shows how old the data is, always: an open page may outlive its ledger. */
function drawFreshness() {
  const { data, error, readAt } = shown;
  const late = reading !== null && Date.now() - reading.sinceMs > LATE_MS;
  const stale = data !== null && (error !== null || late);
  freshness.className = stale ? 'stale' : data === null ? '' : isPast() ? 'past' : streaming ? 'live' : 'slow';
  const text = freshText(shown, { stale, late });
  // An unchanged text is not announced again.
  if (freshness.textContent !== text) freshness.textContent = text;
  age.textContent = data === null || stale ? '' : ageText(readAt);
}

/** The age of the newest decision that the view shows, or of its data. */
function ageText(readAt) {
  if (isPast()) return '';
  const decided = shown.route?.page.decidedAt?.(shown.data) ?? null;
  const seconds = Math.max(
    0,
    Math.round(((decided === null ? Date.now() : nowMs()) - Date.parse(decided ?? readAt)) / 1000),
  );
  return decided === null ? `· read ${duration(seconds * 1000)} ago` : `· decided ${duration(seconds * 1000)} ago`;
}

/** The zone of the person: "UTC+5:30". */
function zoneName() {
  const minutes = -new Date().getTimezoneOffset();
  const [hours, rest] = [Math.trunc(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  if (minutes === 0) return 'UTC';
  return `UTC${minutes < 0 ? '−' : '+'}${hours}${rest === 0 ? '' : `:${String(rest).padStart(2, '0')}`}`;
}

function draw() {
  const { route, data, late, error, view } = shown;
  drawFreshness();
  zone.textContent = usesUtc() ? 'UTC' : `Local time (${zoneName()})`;
  content.setAttribute('aria-busy', String(data === null && error === null));
  /** `read`: what was chosen needs other data. */
  const choose = (wanted, { read = false } = {}) => {
    shown = read ? { ...shown, view: wanted, late: null } : { ...shown, view: wanted };
    draw();
    if (read) void refresh();
  };
  const go = (hash) => {
    history.replaceState(null, '', hash);
    void navigate();
  };
  render(
    data !== null
      ? route.page.show(data, { view, choose, go, late, redraw: draw, query: route.query })
      : error !== null
        ? problem(error)
        : html`<p class="dim" data-state="loading">Reading the ledger …</p>`,
    content,
  );
}

const refusedBy = (error) => (error instanceof Refused ? error : new Refused(0, String(error)));

/**
 * Reads the shown view again, one read at a time: a ledger that does not answer is not asked more and more, and its error is shown.
 * An answer that comes after the person went elsewhere is dropped.
 */
async function refresh() {
  const { route } = shown;
  if (route === null) return;
  if (reading !== null && reading.route.path === route.path) {
    reading.again = true;
    return;
  }
  const own = { route, again: false, sinceMs: Date.now() };
  reading = own;
  let result;
  try {
    result = { data: await route.page.load(route.params, route.query), error: null, readAt: new Date().toISOString() };
  } catch (error) {
    result = { error: refusedBy(error) };
    // A thing that no longer exists is not shown as stale.
    if (result.error.status === 404) result.data = null;
  }
  if (reading !== own) return;
  reading = null;
  const moved = shown.route !== route;
  // The person has chosen another moment of the view since: the error of this one does not matter.
  if (!moved || result.error === null) {
    shown = { ...shown, ...result };
    draw();
  }
  if (moved || own.again) await refresh();
  else if (route.page.late !== undefined && shown.data !== null && result.error === null) await readLate();
}

/** A person who goes on to another moment within this time does not read what happened around this one. */
const REST_MS = 300;
/** When the last moment of the same view was chosen. */
let choseMs = Number.NEGATIVE_INFINITY;
const rested = () => new Promise((resolve) => setTimeout(resolve, Math.max(0, choseMs + REST_MS - performance.now())));

/** Reads the slow part of the shown view. Events come faster than it is answered: it is read once at a time, and again after that. */
async function readLate() {
  const { route, view, data } = shown;
  if (readingLate?.route === route && readingLate.view === view) {
    readingLate.again = true;
    return;
  }
  const own = { route, view, again: false };
  readingLate = own;
  await rested();
  if (shown.route !== route || shown.view !== view) {
    if (readingLate === own) readingLate = null;
    return;
  }
  let result;
  try {
    result = { late: await route.page.late(route.params, { query: route.query, view, data }) };
  } catch (error) {
    // The rest of the view stays, and is read again with this part.
    result = { error: refusedBy(error) };
  }
  if (readingLate === own) readingLate = null;
  if (shown.route !== route || shown.view !== view) return;
  shown = { ...shown, ...result };
  draw();
  if (own.again) await readLate();
}

function navigate() {
  const route = routeOf(location.hash);
  // Another moment of the same view keeps what is shown until its data has come.
  const same = route !== null && route.path === shown.route?.path;
  shown = same ? { ...shown, route, late: null } : { ...nothingShown, route };
  if (same) choseMs = performance.now();
  else stopPlayback();
  if (route?.page !== search) searchField.value = '';
  if (route === null) shown.error = new Refused(404, `The console has no view ${location.hash}`);
  document.title = route === null ? 'Kronos' : `${route.page.title(route.params)} · Kronos`;
  for (const a of document.querySelectorAll('nav a'))
    if (a.getAttribute('href') === `#${route?.path}`) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  if (!same || (route.page.still && shown.data !== null)) draw();
  return refresh();
}

addEventListener('hashchange', () => {
  const before = shown.route?.path;
  void navigate();
  if (shown.route?.path !== before) {
    content.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
});
zone.addEventListener('click', () => {
  useUtc(!usesUtc());
  draw();
});

/** Whether it is read again without a person: a view that is `still` only while it has not been read. */
const rereads = ({ route, data, error }) => !route?.page.still || data === null || error !== null;

let waiting = false;
function later() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    if (!document.hidden && rereads(shown)) void refresh();
  }, BURST_MS);
}
follow(
  (change) => {
    const { route, data } = shown;
    if (change === null || (data !== null && route.page.concerns(change, route.params, data))) later();
  },
  (connected) => {
    streaming = connected;
    drawFreshness();
  },
);
setInterval(drawFreshness, 1000);
setInterval(later, REFRESH_MS);
document.addEventListener('visibilitychange', later);
addEventListener('resize', () => shown.data !== null && draw());
onSession(() => {
  drawAccount();
  if (shown.data !== null) draw();
});
void load();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => shown.data !== null && draw());
void navigate();
