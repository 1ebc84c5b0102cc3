/** Lists of events of an aggregate: the newest ones, and those around a recorded moment. */
import { repeat } from './lib/directives/repeat.js';
import { html } from './lib/lit-html.js';
import { momentOfEvent } from './marks.js';
import { byPerson, clockTime, link, pending, ratioText, said, switches } from './parts.js';
import { count } from './words.js';

/** Events that others tell better. */
const QUIET = new Set(['cycle.decided', 'migration.observed', 'migration.started']);

/** The filters of the list of events: plans, ends of moves, or acts of people. */
const KINDS = [
  ['all', 'all'],
  ['plans', 'plans'],
  ['moves', 'moves'],
  ['people', 'people'],
];

const ofKind = {
  all: () => true,
  plans: ({ kind }) => kind === 'plan',
  moves: ({ kind }) => kind.startsWith('migration.'),
  people: ({ person }) => person,
};

/** Older rows are shown when a person asks for them. */
const FIRST = 12;

const MOST = 60;

/** Why a plan was made: which policies had been above their thresholds for long enough. */
function causeOf({ policies }) {
  const above = policies.filter(({ detected }) => detected);
  return above.length === 0
    ? ''
    : html`, as ${above.map(({ policy, sustainedCycles }) => `${policy} was above its threshold for ${count(sustainedCycles, 'cycle')}`).join(' and ')}`;
}

/** Decisions and events as one list, newest first; equal neighbours are one row. */
export function happened(name, { series, recent, history }, chosen, choose) {
  const rowsOf = [
    ...recent.decisions.map((d) => ({
      time: d.time,
      kind: d.steps > 0 ? 'plan' : 'decision',
      person: false,
      key: d.steps > 0 ? `plan ${d.sequence}` : d.reason.text,
      text:
        d.steps > 0
          ? html`<a href=${link.plan(d.snapshotId, d.sequence)}>Plan of ${count(d.steps, 'move')}</a> ${{ released: 'released', proposed: 'proposed', dryRun: 'recorded: dry run', none: 'not released' }[d.release]}: ${ratioText(d.ratio)} → ${ratioText(d.ratioAfter)}${causeOf(d)}`
          : html`<span class="dim">${said(d.reason.text)}</span>`,
    })),
    ...history.events
      .filter(({ type, time }) => !QUIET.has(type) && time !== null)
      .map((e) => ({
        time: e.time,
        kind: e.type.startsWith('plan.') ? 'plan' : e.type,
        person: byPerson(e) !== '',
        key: `event ${e.sequence}`,
        text: `${said(e.text)}${byPerson(e)}`,
      })),
  ]
    .filter(ofKind[chosen.kind])
    .toSorted((a, b) => (a.time < b.time ? 1 : -1));
  const runs = [];
  for (const row of rowsOf) {
    const last = runs.at(-1);
    if (last?.key === row.key) runs[runs.length - 1] = { ...last, from: row.time, n: last.n + 1 };
    else runs.push({ ...row, from: row.time, n: 1 });
  }
  const shown = runs.slice(0, chosen.older ? MOST : FIRST);
  return html`<div class="tools in-heading">${switches('Of what happened', KINDS, chosen.kind, (kind) => choose({ ...chosen, kind }))}</div>
    ${shown.length === 0 ? html`<p class="dim">Nothing of that kind is in memory.</p>` : ''}
    <table><tbody>${repeat(
      shown,
      ({ key, from }) => `${key} ${from}`,
      ({
        time,
        from,
        n,
        text,
      }) => html`<tr><td class="when"><a class="quiet" href=${momentOfEvent(name, series, from)}>${n > 1 ? `${clockTime(from).slice(11)} – ${clockTime(time).slice(11)}` : clockTime(time).slice(11)}</a></td>
      <td>${n > 1 ? html`${n} decisions, all alike: ` : ''}${text}</td></tr>`,
    )}</tbody></table>
    ${shown.length === Math.min(MOST, runs.length) ? '' : html`<p class="commands"><button type="button" @click=${() => choose({ ...chosen, older: true })}>Show ${Math.min(MOST, runs.length) - shown.length} older</button></p>`}`;
}

/** The events up to half an hour before and after the moment. */
export function around({ series, index }, events) {
  if (events === null)
    return index < 0
      ? html`<p class="dim">The cycle is older than what the ledger has in memory.</p>`
      : pending('The log is read …');
  const rows = events.filter(({ type, planId }) => !QUIET.has(type) || (type === 'cycle.decided' && planId !== null));
  if (rows.length === 0) return html`<p class="dim">Nothing but cycles in the half hour before and after.</p>`;
  const own = series.times[index];
  const row = (e) =>
    html`<tr><td class="when dim">${clockTime(e.time).slice(11)}</td><td>${e.type === 'cycle.decided' ? html`<a href=${link.plan(e.planId, e.sequence)}>${said(e.text)}</a>` : said(e.text)}${byPerson(e)}</td></tr>`;
  const part = (title, some) =>
    some.length === 0 ? '' : html`<tr><th colspan="2" scope="colgroup">${title}</th></tr>${some.toReversed().map(row)}`;
  return html`<table><tbody>${part(
    'After it',
    rows.filter(({ time }) => time > own),
  )}${part(
    'Up to then',
    rows.filter(({ time }) => time <= own),
  )}</tbody></table>`;
}
