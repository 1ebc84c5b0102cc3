/** The console: reads the ledger's JSON interface every few seconds and shows it. Changes nothing. */
import { chart, policiesOf } from './chart.js';

const REFRESH_MS = 5000;
const $ = (id) => document.getElementById(id);

const standings = {
  unplannable: ['bad', 'Not planned: the log holds an event that this version cannot read'],
  paused: ['warn', 'Paused'],
  waitingForApproval: ['warn', 'Waits for approval'],
  moving: ['good', 'Moving'],
  coolingDown: ['dim', 'Cooling down'],
  idle: ['good', 'Nothing to do'],
  unknown: ['dim', 'Nothing decided yet'],
};
const releases = { released: 'released', proposed: 'proposed', dryRun: 'dry run', none: 'not released' };
/** The chart begins with the first decision there is, but is never narrower than this. */
const LEAST_SPAN_MS = 300_000;
const count = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

/** An element with text or elements in it; text is never taken as HTML. */
function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** `3 min ago`, `in 40 s`. */
function relative(time, nowMs) {
  const seconds = Math.round((Date.parse(time) - nowMs) / 1000);
  const size = Math.abs(seconds);
  const text =
    size < 90
      ? `${size} s`
      : size < 5400
        ? `${Math.round(size / 60)} min`
        : size < 172_800
          ? `${Math.round(size / 3600)} h`
          : `${Math.round(size / 86_400)} d`;
  return seconds > 0 ? `in ${text}` : `${text} ago`;
}
const when = (time, nowMs) =>
  el('time', { datetime: time, title: new Date(time).toLocaleString() }, relative(time, nowMs));
const figure = (value) => (value === null || value === undefined ? 'unknown' : value.toFixed(3));

function table(headings, rows, empty) {
  if (rows.length === 0) return el('p', { class: 'dim' }, empty);
  const head = el('tr', {}, ...headings.map((text) => el('th', { scope: 'col' }, text)));
  const body = rows.map((cells) =>
    el('tr', {}, ...cells.map(([content, kind]) => el('td', kind ? { class: kind } : {}, content))),
  );
  return el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, head), el('tbody', {}, ...body)));
}

async function read(path) {
  const answer = await fetch(`/api/v1${path}`, { signal: AbortSignal.timeout(10_000) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

const chosen = () => decodeURIComponent(location.hash.slice(1));

function showNavigation(aggregates, name) {
  const links = aggregates.map((aggregate) => {
    const [kind, text] = standings[aggregate.standing];
    const link = el('a', { href: `#${encodeURIComponent(aggregate.name)}`, title: text });
    if (aggregate.name === name) link.setAttribute('aria-current', 'page');
    link.append(el('span', { class: `dot ${kind}` }), aggregate.name);
    return link;
  });
  $('aggregates').replaceChildren(...links);
}

function showSummary(page, nowMs) {
  const [kind, text] = standings[page.standing];
  $('name').textContent = page.name;
  const details = [];
  const paused = page.paused.here ?? page.paused.everywhere;
  if (paused !== null)
    details.push(` by ${paused.by}, `, when(paused.at, nowMs), page.paused.here === null ? ' (all aggregates)' : '');
  else if (page.waitingPlan !== null)
    details.push(`: ${count(page.waitingPlan.steps, 'move')}, expires `, when(page.waitingPlan.expiresAt, nowMs));
  else if (page.standing === 'moving')
    details.push(`: ${page.movesInFlight} in flight, ${page.slots} under way in Nova`);
  else if (page.cooldown !== null) details.push(`, planned again `, when(page.cooldown.until, nowMs));
  else if (page.standing === 'idle') details.push(`: ${page.lastDecision.reason.text}`);
  if (page.unreadable !== null) details.push(` (event ${page.unreadable.sequence}: ${page.unreadable.claimedType})`);
  $('standing').replaceChildren(el('span', { class: kind }, text), ...details);
  const figures = [
    ['Combined imbalance', page.lastDecision === null ? 'unknown' : figure(page.lastDecision.combined)],
    ['Last decision', page.lastDecision === null ? 'none' : when(page.lastDecision.time, nowMs)],
    ['Last release', page.lastRelease === null ? 'never' : when(page.lastRelease.at, nowMs)],
    ['In quarantine', count(page.quarantined, 'VM')],
    [
      'Hosts out as destinations',
      page.brokenHosts.length === 0 ? 'none' : page.brokenHosts.map((b) => b.host).join(', '),
    ],
    [
      'Hosts being drained',
      page.drains.length === 0 ? 'none' : page.drains.map((d) => `${d.host}: ${d.text}`).join('; '),
    ],
    ['Mode', page.planner === null ? 'unknown' : page.planner.dryRun ? 'dry run' : `approval ${page.planner.approval}`],
    ['Planner', page.planner === null ? 'unknown' : page.planner.version],
  ];
  $('figures').replaceChildren(
    ...figures.map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value))),
  );
}

function showChart(decisions, nowMs) {
  const names = policiesOf(decisions);
  const first = decisions.length === 0 ? nowMs : Date.parse(decisions[0].time);
  const fromMs = Math.max(nowMs - Number($('span').value) * 1000, Math.min(first, nowMs - LEAST_SPAN_MS));
  $('chart').replaceChildren(chart(decisions, fromMs, nowMs, Math.max(300, $('chart').clientWidth)));
  $('legend').replaceChildren(
    ...names.map((policy, i) => el('span', { class: `k${i % 6}` }, policy)),
    el('span', { class: 'combined' }, 'combined'),
    el('small', { class: 'dim' }, 'dashed: threshold, upright: plan'),
  );
}

function showMoves(moves, nowMs) {
  const rows = moves.map((m) => [
    [el('span', { title: m.serverId }, m.serverName)],
    [`${m.from} → ${m.destination}`],
    [m.phase],
    [m.status === 'retryPending' ? `attempt ${m.attempt} to come` : m.status],
    [m.started === null ? '' : when(m.started.at, nowMs), 'when'],
    [m.lastFailure === null ? '' : `${m.lastFailure.errorType}: ${m.lastFailure.reason.text}`],
  ]);
  $('moves').replaceChildren(table(['VM', 'Move', 'Phase', 'Status', 'Started', 'Last failure'], rows, 'None.'));
}

function showDecisions(decisions, nowMs) {
  const rows = decisions
    .slice(-30)
    .reverse()
    .map((d) => [
      [when(d.time, nowMs), 'when'],
      [d.outcome],
      [d.steps === 0 ? '' : `${count(d.steps, 'move')}, ${releases[d.release]}`],
      [d.combinedAfter === null ? figure(d.combined) : `${figure(d.combined)} → ${figure(d.combinedAfter)}`, 'number'],
      [el('span', {}, d.reason.text, ' ', el('code', { class: 'dim' }, d.reason.code))],
    ]);
  $('decisions').replaceChildren(table(['When', 'Outcome', 'Plan', 'Combined', 'Reason'], rows, 'No decision yet.'));
}

function showEvents(events, nowMs) {
  const rows = events
    .slice(-40)
    .reverse()
    .map((e) => [
      [e.time === null ? '' : when(e.time, nowMs), 'when'],
      [el('code', {}, e.type)],
      [e.text],
      [e.by ?? ''],
      [String(e.sequence), 'number'],
    ]);
  $('events').replaceChildren(table(['When', 'Event', 'What', 'By', 'Sequence'], rows, 'No event yet.'));
}

/** What is wrong, one line per cause, with what to do. */
function showAlarms({ alarms }) {
  const lines = alarms.map(({ severity, about, text, remedy, explains }) =>
    el(
      'li',
      { class: severity === 'alarm' ? 'bad' : 'dim' },
      el('strong', {}, about),
      `: ${text}${explains.length === 0 ? '' : ` (explains ${explains.length} more)`} `,
      el('small', { class: 'dim' }, remedy),
    ),
  );
  $('alarms').hidden = lines.length === 0;
  $('alarms').replaceChildren(el('ul', {}, ...lines));
}

function fresh(text, lost = false) {
  $('freshness').textContent = text;
  $('freshness').className = lost ? 'lost' : '';
}

async function refresh() {
  try {
    const [{ aggregates, sequence, time }, alarms] = await Promise.all([read('/aggregates'), read('/alarms')]);
    showAlarms(alarms);
    const name = aggregates.some((a) => a.name === chosen()) ? chosen() : aggregates[0]?.name;
    showNavigation(aggregates, name);
    if (name === undefined) {
      fresh('no aggregate yet');
      return;
    }
    const encoded = encodeURIComponent(name);
    const [page, { decisions }, { events }] = await Promise.all([
      read(`/aggregates/${encoded}`),
      read(`/decisions?aggregate=${encoded}`),
      read(`/history?aggregate=${encoded}&limit=40`),
    ]);
    // Ages are told by the ledger's clock: the browser's may differ.
    const nowMs = Date.parse(time);
    $('main').hidden = false;
    showSummary(page, nowMs);
    showChart(decisions, nowMs);
    showMoves(page.moves, nowMs);
    showDecisions(decisions, nowMs);
    showEvents(events, nowMs);
    fresh(`log sequence ${sequence}, ${new Date(time).toLocaleTimeString()}`);
  } catch (error) {
    fresh(`the ledger does not answer (${error.message}); trying again`, true);
  }
}

/** One refresh after the other: a slow ledger is not asked twice at once. */
let running = refresh();
const again = () => {
  running = running.then(refresh);
};
addEventListener('hashchange', again);
$('span').addEventListener('change', again);
setInterval(() => {
  if (!document.hidden) again();
}, REFRESH_MS);
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) again();
});
