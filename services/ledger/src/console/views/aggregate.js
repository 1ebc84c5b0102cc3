import { nowMs, read, tryRead } from '../api.js';
import { drawImbalance, drawn } from '../chart.js';
import { aggregateCommands } from '../commands.js';
import { heatmap } from '../heatmap.js';
import { ref } from '../lib/directives/ref.js';
import { html } from '../lib/lit-html.js';
import {
  at,
  count,
  eventsTable,
  facts,
  figure,
  link,
  missing,
  moves,
  said,
  section,
  standing,
  table,
  usesUtc,
  when,
} from '../parts.js';
import { person } from '../session.js';
import { timeline } from '../timeline.js';
import { timeSlider } from '../timeSlider.js';

const outcomes = { planned: 'planned', quiet: 'no plan', gated: 'blocked' };
const releases = { released: 'released', proposed: 'proposed', dryRun: 'dry run', none: 'not released' };

function doing({ paused, waitingPlan, cooldown, standing: now, movesInFlight, slots, unreadable, lastDecision }) {
  const by = paused.here ?? paused.everywhere;
  if (unreadable !== null) return html`: event ${unreadable.sequence} (${unreadable.claimedType})`;
  if (by !== null) return html` by ${by.by} ${when(by.at)}${paused.here === null ? ' (all aggregates)' : ''}`;
  if (waitingPlan !== null)
    return html`: <a href=${link.plan(waitingPlan.planId)}>${count(waitingPlan.steps, 'move')}</a>, expires ${when(waitingPlan.expiresAt)}`;
  if (now === 'moving') return html`: ${movesInFlight} in flight, ${slots} under way in Nova`;
  if (cooldown !== null) return html`, planned again ${when(cooldown.until)}`;
  return lastDecision === null ? '' : html`: ${said(lastDecision.reason.text)}`;
}

const next = (rows) =>
  rows.length === 0
    ? html`<p class="dim">Nothing is known to happen.</p>`
    : html`<ul class="plain">${rows.map(({ at, text }) => html`<li>${at === null ? '' : html`<span class="dim">${when(at)}:</span> `}${said(text)}</li>`)}</ul>`;

const decisions = (rows) =>
  table(
    'Decisions',
    [
      ['When', (d) => when(d.time), 'when'],
      ['Outcome', (d) => outcomes[d.outcome]],
      [
        'Plan',
        (d) =>
          d.steps === 0
            ? ''
            : html`<a href=${link.plan(d.snapshotId, d.sequence)}>${count(d.steps, 'move')}</a> ${releases[d.release]}`,
      ],
      [
        'Combined imbalance',
        (d) => (d.combinedAfter === null ? figure(d.combined) : `${figure(d.combined)} → ${figure(d.combinedAfter)}`),
        'number',
      ],
      ['Reason', (d) => html`${said(d.reason.text)} <code class="dim">${d.reason.code}</code>`],
    ],
    rows.toReversed(),
    'No decision yet.',
  );

const figures = (page) =>
  facts([
    ['Combined imbalance', figure(page.lastDecision?.combined)],
    ['Last decision', page.lastDecision === null ? 'none' : when(page.lastDecision.time)],
    ['Last release', page.lastRelease === null ? 'never' : when(page.lastRelease.at)],
    ['In quarantine', count(page.quarantined, 'VM')],
    ['Hosts out as destinations', page.brokenHosts.map(({ host }) => host).join(', ') || 'none'],
    ['Hosts being drained', page.drains.map(({ host, text }) => `${host}: ${text}`).join('; ') || 'none'],
    ['Mode', page.planner === null ? 'unknown' : page.planner.dryRun ? 'dry run' : `approval ${page.planner.approval}`],
    ['Planner', page.planner?.version ?? 'unknown'],
  ]);

/** One aggregate, now or at a recorded moment (`?snapshot=`). */
export const aggregate = {
  title: ({ name }) => name,
  concerns: (change, { name }) => change.aggregate === name || change.aggregate === '_all_',
  async load({ name }, query) {
    const base = `/aggregates/${encodeURIComponent(name)}`;
    const own = `aggregate=${encodeURIComponent(name)}`;
    const snapshot = query.get('snapshot');
    const [page, series, hosts, recent, history, moved] = await Promise.all([
      read(base),
      read(`${base}/imbalance`),
      tryRead(`${base}/hosts${at(snapshot)}`),
      read(`/decisions?${own}&limit=20`),
      read(`/history?${own}&limit=30`),
      read(`${base}/moves?limit=40`),
    ]);
    const index = snapshot === null ? -1 : series.snapshotIds.indexOf(snapshot);
    const decided = index < 0 ? null : await read(`/history?${own}&since=${series.sequences[index]}&limit=1`);
    return { page, series, hosts, recent, history, moved, index, decided, past: snapshot !== null };
  },
  show({ page, series, hosts, recent, history, moved, index, decided, past }, { view, choose, go }) {
    const { name } = page;
    const goTo = (to) => go(link.aggregate(name, to === null ? null : series.snapshotIds[to]));
    const chosen = { filter: '', sort: -1, ...view };
    return html`
      <h1>${name}</h1>
      ${section(
        past ? 'State now' : 'State',
        html`<p>${standing(page.standing)}${doing(page)}</p>${figures(page)}${aggregateCommands(page)}
        <p><a href=${link.whatIf(name)}>What if the options were others?</a>
          ${person() === null ? '' : html`<a href=${link.drains(name)}>Drain several hosts in turn</a>`}</p>`,
      )}
      ${section(past ? 'What happens next, from now' : 'What happens next', next(page.next))}
      ${section(
        'Time',
        html`${timeSlider(series, past ? index : null, goTo)}
          ${
            decided === null || decided.events.length === 0
              ? ''
              : html`<p data-state="past">${said(decided.events[0].text)}
            ${series.steps[index] > 0 ? html`<a href=${link.plan(series.snapshotIds[index], series.sequences[index])}>Show the plan</a>` : ''}</p>`
          }
          ${series.times.length === 0 ? html`<p class="dim">No decision yet.</p>` : html`<div class="chart" aria-hidden="true" ${ref(drawn((element) => drawImbalance(element, series, usesUtc())))}></div>`}`,
        past ? 'past' : undefined,
      )}
      ${section(past ? 'Hosts at that moment' : 'Hosts', hosts.refused === undefined ? heatmap(hosts, chosen, choose, past) : missing(hosts.refused))}
      ${section(
        past ? 'Moves in flight now' : 'Moves in flight',
        moves(page.moves, () => name),
      )}
      ${timeline(moved, nowMs())}
      ${section('Recent decisions', decisions(recent.decisions))}
      ${section('Recent events', eventsTable(history.events))}`;
  },
};
