import { nowMs, read } from '../api.js';
import { fleetCommands, planCommands, resumeCommand } from '../commands.js';
import { repeat } from '../lib/directives/repeat.js';
import { html } from '../lib/lit-html.js';
import { count, courseText, duration, expected, link, moves, ratioText, section, standingOf, when } from '../parts.js';
import { skyline, sparkline } from '../skyline.js';

/** What needs a person comes first, then what happens, then what rests. */
const NEED = [
  'unplannable',
  'waitingForApproval',
  'dryRun',
  'paused',
  'outOfBalance',
  'unmeasured',
  'moving',
  'unknown',
  'coolingDown',
  'idle',
];
/** More cards than these hide the table. */
const CARDS = 4;

const pauseOf = ({ paused }) => paused.here ?? paused.everywhere;
/** Whether a person has to act: a dry run without a plan needs nobody. */
const needsPerson = ({ standing }) => ['unplannable', 'waitingForApproval', 'dryRun', 'paused'].includes(standing);
const byNeed = (a, b) => NEED.indexOf(a.standing) - NEED.indexOf(b.standing) || (b.ratio ?? -1) - (a.ratio ?? -1);

const gib = (ramMb) => (ramMb === null ? '' : ` · ${Math.round(ramMb / 1024)} GiB`);
const time = (plan) => (plan?.time == null ? '' : ` · ${expected(plan.time)}${plan.time.measured ? '' : ' (assumed)'}`);
const left = (time) => html`<time datetime=${time}>${duration(Math.max(0, Date.parse(time) - nowMs()))} left</time>`;
const effect = ({ ratio, plan }) =>
  plan?.ratioAfter == null
    ? `${ratioText(ratio)} of its threshold`
    : html`<strong>${ratioText(ratio)}</strong> of its threshold → <strong>${ratioText(plan.ratioAfter)}</strong>`;

function card(a) {
  const { name, plan, standing, waitingPlan } = a;
  const href = plan === null ? link.aggregate(name) : link.plan(plan.planId, plan.sequence);
  if (standing === 'waitingForApproval')
    return html`<li class="card"><p><strong>${name}: ${count(waitingPlan.steps, 'move')}</strong> <span class="dim">${left(waitingPlan.expiresAt)}</span></p>
      <p class="dim">${effect(a)}${time(plan)}${gib(plan?.ramMb ?? null)}</p>
      <div class="commands"><a class="button primary" data-key="Review" href=${href}>Review the plan</a>${planCommands(waitingPlan.planId)}</div></li>`;
  if (standing === 'dryRun')
    return html`<li class="card"><p><strong>${name}: dry run</strong></p>
      <p class="dim">${effect(a)}. Kronos would make ${count(plan?.moves ?? 0, 'move')}; nothing is released.</p>
      <div class="commands"><a class="button" href=${href}>See the plan</a></div></li>`;
  if (standing === 'paused') {
    const { by, at, comment } = pauseOf(a);
    return html`<li class="card"><p><strong>${name}: paused</strong> <span class="dim">${when(at)}</span></p>
      <p class="dim">${by}${comment === null ? '' : `: ${comment}`}. ${ratioText(a.ratio)}${a.ratio === null ? '' : ' of its threshold.'}</p>
      ${a.paused.here === null ? '' : resumeCommand(name)}</li>`;
  }
  return html`<li class="card bad-edge"><p><strong>${name}: not planned</strong></p>
    <p class="dim">The log holds an event that this version cannot read.</p>
    <div class="commands"><a class="button" href=${link.aggregate(name)}>Show it</a></div></li>`;
}

const alarmCard = ({ about, text, remedy, runbook, explains, since }) => html`<li class="card bad-edge">
  <p><strong>${about}</strong> <span class="dim">for ${duration(Math.max(0, nowMs() - Date.parse(since)))}</span>${explains.length === 0 ? '' : html` <span class="dim">explains ${explains.length} more</span>`}</p>
  <p class="dim">${text}. ${remedy}</p>
  <div class="commands"><a class="button" href=${link.runbook(runbook.replace(/^.*#/, ''))}>Runbook</a></div></li>`;

/** What an aggregate does, in a second line: who, why, until when. */
function more(a) {
  const { standing, waitingPlan, plan, cooldown, drains, movesInFlight, lastDecision, course } = a;
  if (standing === 'waitingForApproval')
    return html`${count(waitingPlan.steps, 'move')} · ${left(waitingPlan.expiresAt)}`;
  if (standing === 'dryRun')
    return html`a plan of <a href=${link.plan(plan.planId, plan.sequence)}>${count(plan.moves, 'move')}</a> is not released`;
  if (standing === 'paused') {
    const { by, comment } = pauseOf(a);
    return `by ${by}${comment === null ? '' : ` · ${comment}`}`;
  }
  if (standing === 'moving') return `${movesInFlight} in flight${course === null ? '' : ` · ${courseText(course)}`}`;
  if (drains.length > 0) return `draining ${drains.map(({ host }) => host).join(', ')}`;
  if (cooldown !== null)
    return html`plans again ${when(cooldown.until)}${course === null ? '' : ` · ${courseText(course)}`}`;
  if (course !== null) return courseText(course);
  return standing === 'outOfBalance' ? (lastDecision?.reason.text ?? '') : '';
}

const row = (a, policies) => html`<tr>
  <th scope="row"><a href=${link.aggregate(a.name)}>${a.name}</a>
    <small>${a.hosts === null ? 'not seen yet' : `${count(a.hosts, 'host')} · ${count(a.vms, 'VM')}`}</small></th>
  <td><span class="state ${standingOf(a.standing)[0]}">${standingOf(a.standing)[1]}</span><small>${more(a)}</small></td>
  ${policies.map((policy) => {
    const own = a.skylines.find((one) => one.policy === policy);
    return html`<td class="picture" data-label=${policy}>${own === undefined ? '' : skyline(own)}</td>`;
  })}
  <td class="number ratio ${a.ratio !== null && a.ratio > 1 ? 'over' : ''}">${ratioText(a.ratio)}</td>
  <td class="picture wide-only">${sparkline(a.trend)}</td>
  <td class="number">${a.movesInFlight > 0 ? `${a.movesInFlight} moving` : ''}${a.quarantined > 0 ? html` <a href="#/held">${a.quarantined} held</a>` : ''}</td>
</tr>`;

const chip = (n, text, kind = '') => (n === 0 ? '' : html`<li class=${kind}><strong>${n}</strong> ${text}</li>`);

function headline(aggregates, alarms) {
  const waiting = aggregates.filter(needsPerson).length + alarms.length;
  if (waiting > 0) return waiting === 1 ? '1 thing waits for a person' : `${waiting} things wait for a person`;
  if (aggregates.length === 0) return 'No aggregate yet';
  if (aggregates.every(({ ratio }) => ratio !== null && ratio <= 1))
    return aggregates.length === 1
      ? `${aggregates[0].name} is balanced`
      : `All ${aggregates.length} aggregates are balanced`;
  return 'Nothing waits for a person';
}

function chips(aggregates) {
  const of = (standing) => aggregates.filter((a) => a.standing === standing).length;
  const sum = (what) => aggregates.reduce((total, a) => total + (a[what] ?? 0), 0);
  return html`<ul class="chips">
    ${chip(of('waitingForApproval'), 'to approve', 'amber')}${chip(of('paused'), 'paused', 'amber')}
    ${chip(of('dryRun'), 'dry run', 'amber')}${chip(of('moving'), 'moving')}
    ${chip(aggregates.filter(({ drains }) => drains.length > 0).length, 'draining')}
    ${chip(aggregates.filter(({ ratio }) => ratio !== null && ratio <= 1).length, 'balanced')}
    <li class="plain-chip">${count(aggregates.length, 'aggregate')} · ${count(sum('hosts'), 'host')} · ${count(sum('vms'), 'VM')}</li></ul>`;
}

function needs(aggregates, alarms) {
  const cards = [...alarms.map(alarmCard), ...aggregates.filter(needsPerson).map(card)];
  if (cards.length === 0) return '';
  const rest = cards.length - CARDS;
  return html`<section class="needs" aria-label="Needs you"><ul>${cards.slice(0, CARDS)}</ul>
    ${rest > 0 ? html`<details><summary>${count(rest, 'more thing')}</summary><ul>${cards.slice(CARDS)}</ul></details>` : ''}</section>`;
}

/** Every aggregate, sorted by what needs a person, and what moves now. */
export const fleet = {
  title: () => 'Fleet',
  concerns: () => true,
  decidedAt: ({ aggregates }) =>
    aggregates.reduce(
      (newest, { lastDecision: d }) => (d !== null && (newest === null || d.time > newest) ? d.time : newest),
      null,
    ),
  load: async () => {
    const [{ aggregates }, { alarms }, tasks] = await Promise.all([
      read('/fleet'),
      read('/alarms'),
      read('/tasks?limit=50'),
    ]);
    return { aggregates: aggregates.toSorted(byNeed), alarms, tasks };
  },
  show({ aggregates, alarms, tasks }) {
    const policies = [...new Set(aggregates.flatMap(({ skylines }) => skylines.map(({ policy }) => policy)))];
    return html`
      <div class="headline"><h1>${headline(
        aggregates,
        alarms.filter(({ severity }) => severity === 'alarm'),
      )}</h1>${chips(aggregates)}</div>
      ${needs(
        aggregates,
        alarms.filter(({ severity }) => severity === 'alarm'),
      )}
      ${alarms.filter(({ severity }) => severity === 'info').map(({ about, text }) => html`<p class="dim">${about}: ${text}</p>`)}
      <section aria-label="Aggregates" class="flush">${
        aggregates.length === 0
          ? html`<p class="dim">Name them in [engine] aggregates.</p>`
          : html`<div class="scroll" tabindex="0" role="region" aria-label="Table of the aggregates"><table class="fleet">
            <thead><tr><th scope="col">Aggregate</th><th scope="col">State</th>
              ${policies.map((policy) => html`<th scope="col">${policy}, by host</th>`)}
              <th scope="col" class="number">Imbalance ÷ threshold</th><th scope="col" class="wide-only">last 6 hours</th><th scope="col" class="number">Moving</th></tr></thead>
            <tbody>${repeat(
              aggregates,
              ({ name }) => name,
              (a) => row(a, policies),
            )}</tbody></table></div>`
      }</section>
      <p class="dim legend">Each bar is a host: <span class="swatch warm"></span> above and <span class="swatch cold"></span> below the band that the threshold allows. A flat skyline is a balanced aggregate.</p>
      ${
        tasks.tasks.length === 0
          ? ''
          : section(
              'Moving now',
              html`${moves(tasks.tasks, ({ aggregate }) => aggregate)}
                ${tasks.total > tasks.tasks.length ? html`<p class="dim">${count(tasks.total - tasks.tasks.length, 'more task')}.</p>` : ''}`,
            )
      }
      ${fleetCommands()}`;
  },
};
