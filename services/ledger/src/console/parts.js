/** Small parts that every view uses. Text is never taken as HTML. */
import { nowMs } from './api.js';
import { moveCommands } from './commands.js';
import { repeat } from './lib/directives/repeat.js';
import { html, nothing } from './lib/lit-html.js';
import { person } from './session.js';
import { count } from './words.js';

const standings = {
  unplannable: ['bad', 'Not planned: the log holds an event that this version cannot read'],
  paused: ['warn', 'Paused'],
  waitingForApproval: ['warn', 'Waits for approval'],
  moving: ['move', 'Moving'],
  dryRun: ['warn', 'Dry run: a plan is not released'],
  coolingDown: ['dim', 'Cooling down'],
  outOfBalance: ['warn', 'Out of balance'],
  unmeasured: ['warn', 'Not measured: no policy has values'],
  idle: ['good', 'Balanced'],
  unknown: ['dim', 'Nothing decided yet'],
};
export const standingOf = (name) => standings[name];
/** Who paused an aggregate, alone or with all others; null: nobody. */
export const pauseOf = ({ paused }) => paused.here ?? paused.everywhere;

export const figure = (value, digits = 3) =>
  value === null || value === undefined ? 'unknown' : value.toFixed(digits);
/** A multiple of a threshold, such as 1.66×. */
export const ratioText = (ratio) => (ratio === null || ratio === undefined ? '' : `${ratio.toFixed(2)}×`);
/** The figures of a reason: `{ gain: 0.1, toZone: 'a' }` is "gain 0.1, to zone a". */
export const figures = (detail = {}) =>
  Object.entries(detail)
    .map(([key, value]) => {
      const words = key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
      return `${words} ${typeof value === 'number' ? Number(value.toPrecision(4)) : value}`;
    })
    .join(', ');
/** A recorded moment; null: now. */
export const at = (snapshot) => (snapshot == null ? '' : `?snapshot=${encodeURIComponent(snapshot)}`);
/** Asks a series for every cycle around that moment; null: now. */
export const near = (snapshot) => (snapshot === null ? '' : `?near=${encodeURIComponent(snapshot)}`);

export const link = {
  aggregate: (name, snapshot) => `#/aggregates/${encodeURIComponent(name)}${at(snapshot)}`,
  host: (aggregate, name, snapshot) =>
    `#/aggregates/${encodeURIComponent(aggregate)}/hosts/${encodeURIComponent(name)}${at(snapshot)}`,
  vm: (aggregate, id, snapshot) =>
    `#/aggregates/${encodeURIComponent(aggregate)}/vms/${encodeURIComponent(id)}${at(snapshot)}`,
  whatIf: (aggregate, query = '') => `#/aggregates/${encodeURIComponent(aggregate)}/what-if${query}`,
  drains: (aggregate, query = '') => `#/aggregates/${encodeURIComponent(aggregate)}/drains${query}`,
  search: (text) => `#/search?q=${encodeURIComponent(text)}`,
  runbook: (section) => `#/runbook/${encodeURIComponent(section)}`,
  plan: (id, sequence) => `#/plans/${encodeURIComponent(id)}${sequence === undefined ? '' : `?sequence=${sequence}`}`,
};

let utc = localStorage.getItem('kronos.zone') === 'utc';
export const usesUtc = () => utc;
export function useUtc(wanted) {
  utc = wanted;
  localStorage.setItem('kronos.zone', wanted ? 'utc' : 'local');
}
/** Day and time of day, in UTC or where the person is; the same form in every language. */
export function localTime(time) {
  const at = new Date(time);
  const shifted = utc ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  const [day, clock] = shifted.toISOString().slice(0, 19).split('T');
  return { day, time: clock };
}
/** A text of the log or of a decision, with its times shown as all others are, and its digests shortened. */
export const said = (text) =>
  text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => clockTime(time))
    .replaceAll(/(sha256:[0-9a-f]{12})[0-9a-f]{52}/g, '$1…');
export function clockTime(time) {
  const { day, time: clock } = localTime(time);
  return `${day} ${clock}`;
}

function relative(time) {
  const seconds = Math.round((Date.parse(time) - nowMs()) / 1000);
  const size = Math.abs(seconds);
  const [n, unit] =
    size < 90
      ? [size, 's']
      : size < 5400
        ? [size / 60, 'min']
        : size < 172_800
          ? [size / 3600, 'h']
          : [size / 86_400, 'd'];
  return seconds > 0 ? `in ${Math.round(n)} ${unit}` : `${Math.round(n)} ${unit} ago`;
}
export const when = (time) =>
  time === null ? '' : html`<time datetime=${time} title=${clockTime(time)}>${relative(time)}</time>`;

/** A browser may not allow it: the id is in the button's title, too. */
const copy = (text) => navigator.clipboard?.writeText(text).catch(() => undefined);

/** A name for people, with its uuid to copy. */
export const named = (name, id, href) => html`
  ${href === undefined ? name : html`<a href=${href}>${name}</a>`}
  <button class="copy" type="button" title=${id} aria-label=${`Copy the id of ${name}`}
    @click=${() => copy(id)}>id</button>`;

/** Tables of more columns are cards on a phone: no column is cut. */
const STACKED = 3;

/** A key per row, by what the row is about: a row that goes up or down keeps its elements, and with them the focus. */
function keyed(rows) {
  const times = new Map();
  return rows.map((row) => {
    const about = [row.id, row.sequence, row.serverId, row.step, row.name, row.host].join(' ');
    const n = times.get(about) ?? 0;
    times.set(about, n + 1);
    return { row, key: `${about} ${n}` };
  });
}

/** `columns`: heading, cell of a row, and its class. */
export function table(caption, columns, rows, empty) {
  if (rows.length === 0) return html`<p class="dim">${empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table class=${columns.length > STACKED ? 'stacks' : nothing}>
    <thead><tr>${columns.map(([head, , kind]) => html`<th scope="col" class=${kind ?? nothing}>${head}</th>`)}</tr></thead>
    <tbody>${repeat(
      keyed(rows),
      ({ key }) => key,
      ({ row }) =>
        html`<tr>${columns.map(([head, cell, kind]) => html`<td class=${kind ?? nothing} data-label=${head}>${cell(row)}</td>`)}</tr>`,
    )}</tbody>
  </table></div>`;
}

export const facts = (pairs) =>
  html`<dl>${pairs.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`;

export const section = (title, body, kind) =>
  html`<section aria-label=${title} class=${kind ?? nothing}><h2>${title}</h2>${body}</section>`;

/** A part that few people ask for: its heading says what is in it. */
export const folded = (title, summary, body) =>
  html`<section aria-label=${title} class="folded"><details><summary>${summary}</summary>${body}</details></section>`;

/** A part that takes longer than the rest of its view. */
export const pending = (text) => html`<p class="dim" data-state="loading">${text}</p>`;

/** A part that is not there: of a snapshot that is no longer kept, or of a thing that nothing is known about. */
export const missing = ({ status, message }) =>
  html`<p class=${status === 410 ? 'warn' : status === 404 ? 'dim' : 'bad'} data-state=${status === 410 ? 'gone' : 'missing'}>
    ${status === 410 ? 'The snapshot of this moment is no longer kept. The log still has the decision and its events.' : message}
  </p>`;

export const duration = (ms) => {
  const seconds = Math.round(ms / 1000);
  return seconds < 90
    ? `${seconds} s`
    : seconds < 5400
      ? `${Math.round(seconds / 60)} min`
      : `${(seconds / 3600).toFixed(1)} h`;
};

/** The rest of the course to the targets: moves, cycles, and about the time; empty where nothing is left. */
export const courseText = (course) =>
  course == null
    ? ''
    : `${count(course.moves, 'move')} in ${count(course.cycles, 'cycle')} left, about ${duration(course.seconds * 1000)}${course.reaches ? '' : ', not down to the targets'}`;

/** The expected duration, with an interval where enough former moves are known. */
export const expected = ({ expectedMs, interval }) =>
  `about ${duration(expectedMs)}${interval === null ? '' : ` (${duration(interval.lowMs)} to ${duration(interval.highMs)})`}`;
/** By which pace a duration is expected that is not measured. */
export const ASSUMED_PACE = 'assumed at 100 MiB/s';

/** ` by ada` of what a person did; nothing where a service did it. */
export function byPerson({ by }) {
  const who = /^(?:operator|custodian) (.+)$/.exec(by ?? '')?.[1];
  return who === undefined ? '' : ` by ${who}`;
}

export const phases = { spread: 'balance', cell: 'to another cell', evacuate: 'empty its host' };
export const statuses = { started: 'under way' };
/** How far a move is. */
function moveStatus({ status, attempt, started }) {
  if (started?.verifying != null) return `on ${started.verifying.host}, waits to be confirmed`;
  return statuses[status] ?? (status === 'retryPending' ? `attempt ${attempt} to come` : status);
}

export const moves = (rows, aggregateOf) =>
  table(
    'Moves',
    [
      ['VM', (m) => named(m.serverName, m.serverId, link.vm(aggregateOf(m), m.serverId))],
      ['From', (m) => html`<a href=${link.host(aggregateOf(m), m.from)}>${m.from}</a>`],
      // The host of another cell is none of this aggregate.
      [
        'To',
        (m) =>
          m.phase === 'cell'
            ? m.destination
            : html`<a href=${link.host(aggregateOf(m), m.destination)}>${m.destination}</a>`,
      ],
      ['Why', (m) => phases[m.phase] ?? m.phase],
      ['Status', moveStatus],
      ['Started', (m) => (m.started === null ? '' : when(m.started.at)), 'when'],
      [
        'Last failure',
        (m) => (m.lastFailure === null ? '' : `${m.lastFailure.errorType}: ${said(m.lastFailure.reason.text)}`),
      ],
      ['Plan', (m) => html`<a href=${link.plan(m.planId)}>plan</a>`],
      ...(person() === null ? [] : [['Commands', moveCommands]]),
    ],
    rows,
    'Nothing moves now.',
  );

/** The moves of a host or VM, where there are some; none of now belongs to a recorded moment. */
export const movesNow = (known, name, past) =>
  past !== null || known === undefined || known.moves.length === 0
    ? ''
    : section(
        'Moves in flight',
        moves(known.moves, () => name),
      );

export const eventsTable = (events) =>
  table(
    'Events',
    [
      ['When', (e) => (e.time === null ? '' : when(e.time)), 'when'],
      ['What', (e) => said(e.text)],
      ['Event', (e) => html`<code>${e.type}</code>`],
      ['By', (e) => e.by ?? ''],
      ['Sequence', (e) => e.sequence, 'number'],
    ],
    events.toReversed(),
    'No event yet.',
  );

/** The compute service of a host, in words. */
export const serviceText = (service) => {
  const { disabledReason } = service;
  return disabledReason === null ? closedBy(service) : `${closedBy(service)}: ${disabledReason}`;
};

/** The state of a compute service in one word. */
export const closedBy = ({ status, state, forcedDown }) =>
  forcedDown ? 'forced down' : state === 'up' ? status : state;

/** A value's place in its policy's threshold band: the middle half of the scale is inside the band. */
export function heat(value, { lowest, highest, threshold }) {
  if (value === null || lowest === null) return '';
  const middle = (lowest + highest) / 2;
  const place = (value - middle) / Math.max(threshold, 1e-9);
  const size = Math.abs(place);
  const level = size <= 0.25 ? 0 : size <= 0.5 ? 1 : size <= 1 ? 2 : 3;
  return level === 0 ? 'even' : `${place < 0 ? 'cold' : 'warm'}-${level}`;
}
/** The same in words, for those who do not see colours. */
export const heatWords = (kind) =>
  ({
    'cold-3': 'far below the band',
    'cold-2': 'below the band',
    'cold-1': 'low, inside the band',
    even: 'inside the band',
    'warm-1': 'high, inside the band',
    'warm-2': 'above the band',
    'warm-3': 'far above the band',
  })[kind] ?? 'no value';

/** A choice between few: one of them is pressed. The last may be a link to another page, as a template. */
export const switches = (label, options, chosen, choose) =>
  html`<div class="switch" role="group" aria-label=${label}>${options.map((option) =>
    Array.isArray(option)
      ? html`<button type="button" aria-pressed=${String(option[0] === chosen)} @click=${() => choose(option[0])}>${option[1]}</button>`
      : option,
  )}</div>`;
