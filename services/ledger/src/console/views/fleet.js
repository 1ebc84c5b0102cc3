import { alarmLine, alarmsOf, urgent } from '../alarms.js';
import { nowMs, read, readOrRefused } from '../api.js';
import { stillWaits } from '../approval.js';
import { fleetCommands, meanings, planCommands, resumeCommand } from '../commands.js';
import { repeat } from '../lib/directives/repeat.js';
import { html } from '../lib/lit-html.js';
import {
  courseText,
  duration,
  expected,
  link,
  moves,
  pauseOf,
  ratioText,
  section,
  standingOf,
  table,
  when,
} from '../parts.js';
import { worstOf } from '../ratio.js';
import { balanceLegend, bandOf, sideOf, skyline, sparkline, topOf } from '../skyline.js';
import { count, shareText } from '../words.js';

/** Aggregates that need a person come first, then those that act, then those that rest. */
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

/** Whether a person has to act: a dry run without a plan needs nobody. */
const FOR_PEOPLE = ['unplannable', 'waitingForApproval', 'dryRun', 'paused'];
const needsPerson = ({ standing }) => FOR_PEOPLE.includes(standing);
const byNeed = (a, b) => NEED.indexOf(a.standing) - NEED.indexOf(b.standing) || (b.ratio ?? -1) - (a.ratio ?? -1);

const gib = (ramMb) => (ramMb == null ? '' : ` · ${Math.round(ramMb / 1024)} GiB of memory`);
const time = (plan) => (plan?.time == null ? '' : ` · ${expected(plan.time)}${plan.time.measured ? '' : ' (assumed)'}`);
/** How long a plan still waits for a person. */
const left = (waiting) =>
  stillWaits(waiting, nowMs())
    ? html`<time datetime=${waiting.expiresAt}>${duration(Date.parse(waiting.expiresAt) - nowMs())} left</time>`
    : html`expired ${when(waiting.expiresAt)}`;
/** The effect of the plan on the ratio, its time, and the memory that it copies. */
const effect = ({ ratio, plan }) =>
  html`${plan?.ratioAfter == null ? 'The ratio after it is not known' : `${ratioText(ratio)} of the threshold becomes ${ratioText(plan.ratioAfter)}${plan.ratioAfter > 1 ? ', still above it' : ''}`}${time(plan)}${gib(plan?.ramMb)}`;

/** One card: which aggregate, how far it is above its threshold, what to do, and what that is about. */
const cardOf = (a, { aside = '', todo, about, commands, kind = '' }) => html`<li class="card ${kind}"><div>
  <p><span><strong><a href=${link.aggregate(a.name)}>${a.name}</a></strong> <span class="dim">${worstOf(a.lastDecision?.policies ?? [])?.policy ?? ''}</span> <span class="ratio ${a.ratio > 1 ? 'over' : ''}">${ratioText(a.ratio)}</span></span> <span class="dim">${aside}</span></p>
  <p class="todo">${todo}</p>
  <p class="dim about">${about}</p>
  ${commands}</div></li>`;

function card(a) {
  const { name, plan, standing, waitingPlan } = a;
  const href = plan === null ? link.aggregate(name) : link.plan(plan.planId, plan.sequence);
  if (standing === 'waitingForApproval' && !stillWaits(waitingPlan, nowMs()))
    return cardOf(a, { aside: left(waitingPlan), todo: 'Nothing moves', about: 'The plan has expired.', commands: '' });
  if (standing === 'waitingForApproval')
    return cardOf(a, {
      aside: left(waitingPlan),
      todo: `Approve or reject ${count(waitingPlan.steps, 'move')}`,
      about: html`${effect(a)}. Without an answer the plan expires, and nothing moves.`,
      commands: html`<div class="commands"><a class="button primary" data-key="Review" href=${href}>Review the plan</a>${planCommands(waitingPlan.planId)}</div>`,
    });
  if (standing === 'dryRun')
    return cardOf(a, {
      aside: 'dry run',
      todo: `Read the plan of ${count(plan?.moves ?? 0, 'move')}: nothing is released`,
      about: html`${effect(a)}. Plans are released from [engine] dry_run = false on.`,
      commands: html`<div class="commands"><a class="button" href=${href}>See the plan</a></div>`,
      kind: `is-${standing}`,
    });
  if (standing === 'paused') {
    const { by, at, comment } = pauseOf(a);
    return cardOf(a, {
      aside: html`paused ${when(at)}`,
      todo: 'Resume it, or leave it paused',
      about: `${by}${comment === null ? '' : `: ${comment}`}`,
      commands: a.paused.here === null ? '' : resumeCommand(name),
      kind: `is-${standing}`,
    });
  }
  return cardOf(a, {
    todo: 'Not planned: skip the event, or upgrade',
    about: 'The log holds an event that this version cannot read.',
    commands: html`<div class="commands"><a class="button" href=${link.aggregate(name)}>Show it</a></div>`,
    kind: 'bad-edge',
  });
}

/** How long its moves in flight still take. */
const timeLeft = ({ movesTime }) =>
  movesTime === null ? '' : `${expected(movesTime)} left${movesTime.measured ? '' : ' (assumed)'}`;

/** A pause ends no move that has started. */
const goOn = ({ slots }) =>
  slots === 0 ? '' : ` · ${count(slots, 'move')} under way ${slots === 1 ? 'goes' : 'go'} on`;

/** The second line of an aggregate: who, why, until when. */
function more(a) {
  const { standing, waitingPlan, plan, cooldown, drains, movesInFlight, lastDecision, course } = a;
  if (standing === 'waitingForApproval') return html`${count(waitingPlan.steps, 'move')} · ${left(waitingPlan)}`;
  if (standing === 'dryRun')
    return html`a plan of <a href=${link.plan(plan.planId, plan.sequence)}>${count(plan.moves, 'move')}</a> is not released`;
  if (standing === 'paused') {
    const { by, comment } = pauseOf(a);
    return `by ${by}${comment === null ? '' : ` · ${comment}`}${goOn(a)}`;
  }
  const draining = drains.length === 0 ? '' : `draining ${drains.map(({ host }) => host).join(', ')}`;
  if (standing === 'moving')
    return [`${movesInFlight} in flight`, timeLeft(a), courseText(course), draining]
      .filter((part) => part !== '')
      .join(' · ');
  if (draining !== '') return draining;
  if (cooldown !== null)
    return html`plans again ${when(cooldown.until)}${course === null ? '' : ` · ${courseText(course)}`}`;
  if (course !== null) return courseText(course);
  return standing === 'outOfBalance' ? (lastDecision?.reason.text ?? '') : '';
}

/** The hottest host, where it is above the band, and how many others are: of many hosts, the values are quantiles. */
function hottest({ name, hosts }, { values, threshold, highest }) {
  const [most] = values;
  const band = bandOf(values, threshold);
  if (most === undefined || sideOf(most, band) !== 'warm') return '';
  const others = values.filter((value) => sideOf(value, band) === 'warm').length - 1;
  const more =
    others === 0 || values.length > hosts ? '' : hosts > values.length * 2 ? ', and others' : `, ${others} more`;
  return html`<small><a href=${link.host(name, highest)}>${highest}</a> ${shareText(most)}${more}</small>`;
}

/** The policy that the ratio is of. The planner counts moves under way as done: said where the skyline shows otherwise. */
function policyOf({ lastDecision, skylines, standing, ratio }) {
  const policy = worstOf(lastDecision?.policies ?? [])?.policy ?? '';
  const seen = skylines.find((one) => one.policy === policy);
  if (standing !== 'moving' || seen === undefined) return policy;
  const now = (seen.values[0] - seen.values.at(-1)) / seen.threshold;
  return Math.abs(now - ratio) > 0.05 ? `${policy}, moves done` : policy;
}

/** The alarms of an aggregate: its row does not look well while it has one. */
const wrong = (name, alarms) =>
  alarms.length === 0
    ? ''
    : html`<small class="bad">alarm: ${alarms[0].about === name ? '' : `${alarms[0].about}: `}${alarms[0].text}${alarms.length === 1 ? '' : ` (and ${alarms.length - 1} more)`}</small>`;

const row = (a, { policies, scales }, alarms) => html`<tr>
  <th scope="row"><a href=${link.aggregate(a.name)}>${a.name}</a>
    <small>${a.hosts === null ? 'not seen yet' : `${count(a.hosts, 'host')} · ${count(a.vms, 'VM')}`}</small></th>
  <td><span class="state ${standingOf(a.standing)[0]} is-${a.standing}"><span class="words">${standingOf(a.standing)[1]}</span></span><small>${more(a)}</small>${wrong(a.name, alarms)}</td>
  ${policies.map((policy) => {
    const own = a.skylines.find((one) => one.policy === policy);
    return html`<td class="picture" data-label=${policy}>${own === undefined ? html`<span class="dim">not used</span>` : html`${skyline(own, { scale: scales.get(policy) })}${hottest(a, own)}`}</td>`;
  })}
  <td class="number ratio ${a.ratio !== null && a.ratio > 1 ? 'over' : ''}">${ratioText(a.ratio)}${a.ratio === null ? '' : html`<small>${policyOf(a)}</small>`}</td>
  <td class="picture wide-only">${sparkline(a.trend, a.promised)}${a.promised > 0 ? html`<small>dashed: moves done</small>` : ''}</td>
  <td class="number">${a.movesInFlight > 0 ? `${a.movesInFlight} moving` : ''}${a.quarantined > 0 ? html` <a href="#/held">${a.quarantined} in quarantine</a>` : ''}</td>
</tr>`;

/** Each aggregate is counted once: the numbers add up to all of them. */
const PILLS = [
  ['unplannable', 'not planned'],
  ['waitingForApproval', 'to approve'],
  ['paused', 'paused'],
  ['dryRun', 'dry run'],
  ['outOfBalance', 'out of balance'],
  ['unmeasured', 'not measured'],
  ['moving', 'moving'],
  ['coolingDown', 'cooling down'],
  ['unknown', 'not decided yet'],
  ['idle', 'balanced'],
];

function headline(aggregates, alarms) {
  const waiting = aggregates.filter(needsPerson);
  const beside = alarms.length === 0 ? '' : count(alarms.length, 'alarm');
  if (waiting.length > 0) {
    const who =
      waiting.length === 1 ? `${waiting[0].name} waits for a person` : `${waiting.length} aggregates wait for a person`;
    return beside === '' ? who : `${who}, and ${beside}`;
  }
  if (beside !== '') return `${beside}: no aggregate waits for a person`;
  if (aggregates.length === 0) return 'No aggregate yet';
  if (aggregates.every(({ ratio }) => ratio !== null && ratio <= 1))
    return aggregates.length === 1
      ? `${aggregates[0].name} is balanced`
      : `All ${aggregates.length} aggregates are balanced`;
  return 'Nothing waits for a person';
}

function chips(aggregates) {
  const pill = ([standing, text]) => {
    const n = aggregates.filter((a) => a.standing === standing).length;
    return n === 0
      ? ''
      : html`<li class=${standing === 'waitingForApproval' ? 'amber' : ''}><span class="state ${standingOf(standing)[0]} is-${standing}"><span class="words">${n} ${text}</span></span></li>`;
  };
  const draining = aggregates.reduce((total, { drains }) => total + drains.length, 0);
  // A paused aggregate may have moves too.
  const moving = aggregates.filter(({ movesInFlight }) => movesInFlight > 0).length;
  const sum = (what) => aggregates.reduce((total, a) => total + (a[what] ?? 0), 0);
  return html`<ul class="chips">
    ${PILLS.map(pill)}
    <li class="plain-chip">${count(aggregates.length, 'aggregate')} · ${count(sum('hosts'), 'host')}${draining === 0 ? '' : `, ${draining} of them draining`} · ${count(sum('vms'), 'VM')}${moving === 0 ? '' : ` · ${count(sum('movesInFlight'), 'move')} in flight in ${count(moving, 'aggregate')}`}</li></ul>`;
}

/** The aggregates and the alarms that wait for a person, each with its remedy. */
function needs(aggregates, alarms) {
  const cards = aggregates.filter(needsPerson).map(card);
  if (cards.length + alarms.length === 0) return '';
  const rest = cards.length - CARDS;
  return html`<section class="needs" aria-label="Needs you">${cards.length === 0 ? '' : html`<ul class="cards">${cards.slice(0, CARDS)}</ul>`}
    ${rest > 0 ? html`<details><summary>${count(rest, 'more aggregate')}</summary><ul class="cards">${cards.slice(CARDS)}</ul></details>` : ''}
    ${alarms.length === 0 ? '' : html`<ul class="lines">${alarms.map(alarmLine)}</ul>`}</section>`;
}

/** The alarms that need nobody. */
const notes = (alarms) =>
  alarms.length === 0
    ? ''
    : html`<section class="needs" aria-label="Notes"><ul class="lines">${alarms.map(
        ({
          about,
          text,
          runbook,
        }) => html`<li class="card note alarm"><p><span><strong>${about}</strong>: ${text}</span>
          <a class="button" href=${link.runbook(runbook.replace(/^.*#/, ''))}>Runbook</a></p></li>`,
      )}</ul></section>`;

/** The aggregates of a region by their standing, in words: those that need a person come first. */
function regionText({ seen, problem }) {
  if (seen === null) return html`<span class="bad">${problem}</span>`;
  const waiting = FOR_PEOPLE.flatMap((standing) => {
    const n = seen.standings[standing] ?? 0;
    return n === 0 ? [] : [`${n} ${standingOf(standing)[1]}`];
  });
  const alarms = seen.alarms === 0 ? [] : [count(seen.alarms, 'alarm')];
  return [...alarms, ...waiting].join(' · ') || 'Nothing waits for a person';
}

const sizeOf = ({ aggregates, hosts, vms }) =>
  `${count(aggregates, 'aggregate')} · ${count(hosts, 'host')} · ${count(vms, 'VM')}`;

/** Installations elsewhere: each link leads to a console of its own. */
const regionsTable = (regions) =>
  table(
    'The other regions',
    [
      ['Region', ({ name, url }) => html`<a href=${url}>${name}</a>`],
      ['Size', ({ seen }) => (seen === null ? 'not known' : sizeOf(seen))],
      ['State', regionText],
      ['Worst imbalance ÷ threshold', ({ seen }) => ratioText(seen?.ratio ?? null), 'number'],
      ['Moving', ({ seen }) => (seen?.moves > 0 ? seen.moves : ''), 'number'],
    ],
    regions,
  );

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
  // A region that does not answer delays nothing else.
  late: () => readOrRefused('/regions'),
  show({ aggregates, alarms, tasks }, { late }) {
    const all = aggregates.flatMap(({ skylines }) => skylines);
    const scales = new Map();
    for (const one of all) scales.set(one.policy, Math.max(scales.get(one.policy) ?? 0, topOf(one)));
    const policies = [...scales.keys()];
    return html`
      <div class="headline"><h1>${headline(aggregates, urgent(alarms))}</h1>${chips(aggregates)}<span class="push"></span>${fleetCommands()}${meanings('pause', 'evaluate', 'record')}</div>
      ${needs(aggregates, urgent(alarms))}
      <section aria-label="Aggregates" class="flush">${
        aggregates.length === 0
          ? html`<p class="dim">Name them in [engine] aggregates.</p>`
          : html`<div class="scroll" tabindex="0" role="region" aria-label="Table of the aggregates"><table class="fleet">
            <thead><tr><th scope="col">Aggregate</th><th scope="col">State</th>
              ${policies.map((policy) => html`<th scope="col">${policy}, by host<small>0 to ${shareText(scales.get(policy))}</small></th>`)}
              <th scope="col" class="number">Imbalance ÷ threshold</th><th scope="col" class="wide-only">Up to 6 hours back</th><th scope="col" class="number">Moving</th></tr></thead>
            <tbody>${repeat(
              aggregates,
              ({ name }) => name,
              (a) => row(a, { policies, scales }, alarmsOf(alarms, a.name)),
            )}</tbody></table></div>`
      }</section>
      ${balanceLegend()}
      ${aggregates.some(needsPerson) ? html`<p class="dim">Order: approvals, then dry runs and pauses, then what no person waits for; of each, the highest imbalance first.</p>` : ''}
      ${notes(alarms.filter(({ severity }) => severity === 'info'))}
      ${late?.regions?.length > 0 ? section('Other regions', regionsTable(late.regions)) : ''}
      ${
        tasks.tasks.length === 0
          ? ''
          : section(
              'Moving now',
              html`${moves(tasks.tasks, ({ aggregate }) => aggregate)}
                ${tasks.total > tasks.tasks.length ? html`<p class="dim">${count(tasks.total - tasks.tasks.length, 'more task')}.</p>` : ''}`,
            )
      }
`;
  },
};
