/** The field that goes anywhere: views, hosts, VMs, plans and commands, found while a person types. Keys choose, Enter goes there. */
import { againMs } from './again.js';
import { nowMs, read } from './api.js';
import { pauseFromPalette } from './commands.js';
import { html, nothing, render } from './lib/lit-html.js';
import { clockTime, link, usesUtc } from './parts.js';
import { address, kinds } from './results.js';
import { cycleAt } from './timeBar.js';
import { typedTime } from './times.js';

const SHOWN = 8;
/** A person who types on asks again: nothing is read before they rest this long. */
const REST_MS = 150;
/** The views that the page offers above all others. */
const views = [...document.querySelectorAll('nav a')].map((view) => [view.textContent, view.getAttribute('href')]);

const form = document.getElementById('search');
const field = form.querySelector('input');
const list = document.getElementById('found');

/** The choices: `{ label, note, go }`. `at`: the chosen one; -1: none, and Enter searches. */
let offered = [];
let at = -1;
let asked = 0;

const close = () => {
  asked++;
  answered(true);
  become([]);
};

/** Whether what is offered answers the whole text. */
const answered = (yes) => list.setAttribute('aria-busy', String(!yes));

function become(next) {
  // A chosen entry stays chosen where it is offered again; another entry in its place is not chosen.
  const chosen = offered[at];
  offered = next;
  at = chosen === undefined ? -1 : next.findIndex(({ label, note }) => label === chosen.label && note === chosen.note);
  draw();
}

function draw() {
  field.setAttribute('aria-expanded', String(offered.length > 0));
  if (at >= 0) field.setAttribute('aria-activedescendant', `found-${at}`);
  else field.removeAttribute('aria-activedescendant');
  list.hidden = offered.length === 0;
  render(
    offered.map(
      ({ label, note }, i) => html`<div id=${`found-${i}`} role="option" aria-selected=${String(i === at)}
        class=${i === at ? 'chosen' : nothing} @mousedown=${(event) => {
          event.preventDefault();
          take(i);
        }}><span>${label}</span> <span class="dim">${note}</span></div>`,
    ),
    list,
  );
}

function take(i) {
  const { go } = offered[i];
  field.value = '';
  close();
  field.blur();
  go();
}

const goTo = (hash) => () => {
  location.hash = hash;
};

/** Views and commands that begin with the text; an aggregate's name may follow "what if", "pause" or "resume". */
function own(text, results) {
  const lower = text.toLowerCase();
  const found = views
    .filter(([name]) => name.toLowerCase().startsWith(lower))
    .map(([name, hash]) => ({ label: name, note: 'view', go: goTo(hash) }));
  const aggregates = results.filter(({ kind }) => kind === 'aggregate').map(({ id }) => id);
  return [
    ...found,
    ...aggregates.flatMap((name) => [
      ...(lower.startsWith('what if ')
        ? [{ label: `What if: ${name}`, note: 'view', go: goTo(link.whatIf(name)) }]
        : []),
      ...pauseFromPalette(lower, name),
    ]),
  ];
}

/** The aggregate of the shown view; null: the view is of several. */
const shownAggregate = () => /^#\/aggregates\/([^/?]+)/.exec(location.hash)?.[1] ?? null;

/** A recorded moment: the last cycle of the aggregate by then. */
async function goToTime(name, ms) {
  try {
    const { times, snapshotIds } = await read(`/aggregates/${encodeURIComponent(name)}/imbalance`);
    location.hash = link.aggregate(name, snapshotIds[cycleAt(times, ms)]);
  } catch {
    // Its page says what is wrong.
    location.hash = link.aggregate(name);
  }
}

/** The shown aggregate, or each, at the time that the text is; nothing where it is none. */
async function moments(text) {
  const ms = typedTime(text, { nowMs: nowMs(), utc: usesUtc() });
  if (ms === null) return [];
  const own = shownAggregate();
  const names =
    own === null ? (await read('/aggregates')).aggregates.map(({ name }) => name) : [decodeURIComponent(own)];
  return names.map((name) => ({
    label: `${name} at ${clockTime(new Date(ms).toISOString())}`,
    note: 'moment',
    go: () => void goToTime(name, ms),
  }));
}

/** The part that names something, behind the words of a command. */
const sought = (text) => text.replace(/^(?:what if|pause|resume)\s+/i, '');

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Searches the ledger; `failed`: a part could not be read, and a later try may read it. */
async function lookUp(text) {
  let failed = false;
  const orElse = (none) => (error) => {
    failed ||= error.passes;
    return none;
  };
  const [past, { results }] = await Promise.all([
    moments(text).catch(orElse([])),
    read(`/search?limit=${SHOWN}&q=${encodeURIComponent(sought(text))}`).catch(orElse({ results: [] })),
  ]);
  return { past, results, failed };
}

const thingsOf = (results) =>
  results.map((one) => ({
    label: one.name,
    note: [kinds[one.kind], one.kind === 'aggregate' ? null : one.aggregate, one.host]
      .filter((part) => part != null)
      .join(' · '),
    go: goTo(address(one)),
  }));

async function find() {
  const text = field.value.trim();
  asked++;
  const mine = asked;
  // The choices answer an earlier text: Enter searches, until a person chooses again.
  at = -1;
  draw();
  if (text === '') return close();
  answered(false);
  await rest(REST_MS);
  // A failed read is tried again, while the palette is open with the same text.
  for (let failures = 1; mine === asked; failures++) {
    const { past, results, failed } = await lookUp(text);
    if (mine !== asked || document.activeElement !== field) return;
    const things = sought(text) === text ? thingsOf(results) : [];
    // A failed read does not take away the entry that a person has chosen meanwhile.
    if (!failed || at < 0) become([...past, ...own(text, results), ...things].slice(0, SHOWN));
    if (!failed) return answered(true);
    await rest(againMs(failures));
  }
}

field.addEventListener('input', () => void find());
field.addEventListener('blur', close);
field.addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step !== undefined && offered.length > 0) {
    event.preventDefault();
    at = (at + step + (at < 0 && step < 0 ? 1 : 0) + offered.length) % offered.length;
    draw();
  } else if (event.key === 'Enter' && at >= 0) {
    event.preventDefault();
    take(at);
  } else if (event.key === 'Escape') {
    field.value = '';
    close();
    field.blur();
  }
});
form.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = field.value.trim();
  close();
  if (text === '') return;
  location.hash = link.search(text);
  document.getElementById('content').focus({ preventScroll: true });
});

/** Puts the cursor into the field. */
export function openPalette() {
  field.focus();
  field.select();
}
