import { alarmLine, alarmsOf } from '../alarms.js';
import { nowMs, read, tryRead } from '../api.js';
import { stillWaits } from '../approval.js';
import { columns, columnsAreNamed, rows } from '../blocks.js';
import { aggregateCommands, meanings } from '../commands.js';
import { isAbout } from '../concerns.js';
import { around, happened } from '../happened.js';
import { heatmap } from '../heatmap.js';
import { layout } from '../layout.js';
import { html } from '../lib/lit-html.js';
import { marksOf } from '../marks.js';
import { momentOf, pastStory } from '../moment.js';
import { openPlan } from '../openPlan.js';
import { leaving, stepsLeft } from '../pairs.js';
import {
  at,
  clockTime,
  courseText,
  link,
  missing,
  moves,
  near,
  pauseOf,
  ratioText,
  said,
  section,
  standingOf,
  switches,
  when,
} from '../parts.js';
import { ratioOf, worstPolicy, worstText } from '../ratio.js';
import { recorded } from '../recorded.js';
import { pairList } from '../ribbons.js';
import { cellTargets } from '../session.js';
import { balanceLegend } from '../skyline.js';
import { timeBar } from '../timeBar.js';
import { timeline } from '../timeline.js';
import { count, withoutDomain } from '../words.js';

/** Events this near to a recorded moment are shown with it. */
const AROUND_MS = 1_800_000;

/** The data of now, kept while a person looks at a recorded moment of the same aggregate; it is read again when events come. */
let present = { name: null, readMs: 0, data: null };
const PRESENT_MS = 5_000;

/** Of a recorded moment, what is older is kept this long while it is read again. */
const KEPT_MS = 60_000;

/** @param snapshot the one around which no cycle is left out; null: the newest ones */
async function readPresent(name, snapshot) {
  const base = `/aggregates/${encodeURIComponent(name)}`;
  const own = `aggregate=${encodeURIComponent(name)}`;
  const [page, series, recent, history, moved, { alarms }] = await Promise.all([
    read(base),
    read(`${base}/imbalance${near(snapshot)}`),
    read(`/decisions?${own}&limit=200`),
    read(`/history?${own}&limit=200`),
    read(`${base}/moves?limit=40`),
    read('/alarms'),
  ]);
  present = { name, readMs: Date.now(), data: { page, series, recent, history, moved, alarms } };
  return present.data;
}

/** Whether it is read again behind a recorded moment. */
let reading = false;
async function presentOf(name, snapshot) {
  const past = snapshot !== null;
  const ageMs = present.name === name ? Date.now() - present.readMs : Number.POSITIVE_INFINITY;
  const has = past && ageMs < KEPT_MS && present.data.series.snapshotIds.includes(snapshot);
  if (has && ageMs < PRESENT_MS) return present.data;
  if (!has) return readPresent(name, snapshot);
  // The time bar is dragged: it does not wait for what it shows already.
  if (!reading) {
    reading = true;
    void readPresent(name, snapshot)
      .catch(() => undefined)
      .finally(() => {
        reading = false;
      });
  }
  return present.data;
}

/** How far the plans under way are together. */
function progress({ plans }) {
  const under = plans.filter(({ state }) => state === 'released');
  const sum = (what) => under.reduce((total, plan) => total + plan[what], 0);
  return under.length === 0 ? '' : ` · ${sum('completed')} of ${sum('steps')} completed`;
}

function doing(page) {
  const { paused, waitingPlan, cooldown, standing, movesInFlight, slots, unreadable, lastDecision } = page;
  const by = pauseOf(page);
  if (unreadable !== null) return `event ${unreadable.sequence} (${unreadable.claimedType})`;
  if (by !== null) return html`by ${by.by} ${when(by.at)}${paused.here === null ? ' (all aggregates)' : ''}`;
  if (waitingPlan !== null)
    return html`<a href=${link.plan(waitingPlan.planId)}>${count(waitingPlan.steps, 'move')}</a>, ${stillWaits(waitingPlan, nowMs()) ? 'expires' : 'expired'} ${when(waitingPlan.expiresAt)}`;
  if (standing === 'moving')
    return slots === movesInFlight
      ? `${count(slots, 'move')} under way${progress(page)}`
      : `${count(movesInFlight, 'move')} in flight, ${slots} of them under way${progress(page)}`;
  if (standing === 'dryRun')
    return html`<a href=${link.plan(lastDecision.snapshotId, lastDecision.sequence)}>${said(lastDecision.reason.text)}</a>`;
  if (cooldown !== null) return html`planned again ${when(cooldown.until)}`;
  return lastDecision === null ? '' : said(lastDecision.reason.text);
}

/** The size of the aggregate, and facts that are shown only when they are unusual. */
function facts({ quarantined, brokenHosts, drains, planner, course }, { hosts = null }) {
  return [
    ...(hosts === null
      ? []
      : [
          `${count(hosts.length, 'host')} · ${count(
            hosts.reduce((sum, { vms }) => sum + vms, 0),
            'VM',
          )}`,
        ]),
    ...(course === null ? [] : [courseText(course)]),
    ...(planner === null ? [] : [planner.dryRun ? 'dry run' : `approval ${planner.approval}`]),
    ...(quarantined > 0 ? [`${count(quarantined, 'VM')} in quarantine`] : []),
    ...(brokenHosts.length > 0 ? [`no destination: ${brokenHosts.map(({ host }) => host).join(', ')}`] : []),
    ...drains.map(({ host, text }) => `${host}: ${text}`),
  ].join(' · ');
}

const next = (list) =>
  list.length === 0
    ? html`<p class="dim">Nothing is known to happen.</p>`
    : html`<ul class="plain">${list.map(({ at: time, text }) => html`<li>${time === null || Date.parse(time) <= nowMs() ? '' : html`<span class="dim">${when(time)}:</span> `}${said(text)}</li>`)}</ul>`;

/** The VMs that move and the hosts that are drained. */
const happeningNow = ({ moves: under, drains }) => ({
  running: new Set(under.filter(({ started }) => started !== null).map(({ serverId }) => serverId)),
  draining: new Set(drains.map(({ host }) => host)),
});
/** Of a recorded moment, nothing of now is shown. */
const nothingNow = { running: new Set(), draining: new Set() };

/** The planner counts moves under way as done, and the picture does not: where they differ, both are said. */
function asDone({ lastDecision }, { policies, snapshot }) {
  if (lastDecision === null || lastDecision.snapshotId !== snapshot.id) return '';
  const decided = worstText(lastDecision.policies);
  return decided === '' || decided === worstText(policies) ? '' : ` · ${decided} when the moves under way are done`;
}

const policySwitch = (policies, policy, choose) =>
  policies.length < 2
    ? ''
    : switches(
        'Policy',
        policies.map((p, i) => [i, `${p.policy} ${ratioText(ratioOf(p))}`]),
        policy,
        choose,
      );

/** The picture, and what it needs to be read: of many hosts, which VMs go where. */
function drawnHosts({ page, picture, steps }, shown, { shape, policy, how }) {
  const named = shape === 'rows' || columnsAreNamed(shown.hosts, how.width) || steps.length === 0;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Picture of the hosts">${shape === 'rows' ? rows(shown, how) : columns(shown, how)}</div>
    ${named ? '' : pairList(steps, { aggregate: page.name, short: shown.short })}
    ${balanceLegend({ band: shown.band, planned: shown.bandAfter, policy: picture.policies[policy], digits: shown.digits })}`;
}

/** The moves in words, and how the picture shows them. */
const movesText = ({ steps, past, plan, picture }, withPlan) =>
  steps.length === 0
    ? ''
    : html`<p><strong class="who-moves">${leaving(steps, withoutDomain(picture.hosts.map((host) => host.name)))}</strong> <span class="dim">${past ? `by the plan of ${clockTime(plan.atMs).slice(11)} · ` : plan.runs ? '' : 'if the plan is carried out · '}<span class="swatch move"></span> ${withPlan ? 'they are where they go' : 'they are where they are now, dashed where they go'}</span></p>`;

/** How old the picture is. */
const hint = ({ page, picture, past }) =>
  html`<span class="dim">${past ? '' : html`measured ${when(picture.snapshot.time)} · `}one block is a VM${past ? '' : asDone(page, picture)}</span>`;

/** The hosts as they are, with the plan, or with another one. */
function momentSwitch({ page, steps, past, snapshot }, chosen, choose) {
  const moment = snapshot ?? page.lastDecision?.snapshotId;
  const moments = [
    [false, past ? 'then' : 'now'],
    ...(steps.length === 0 ? [] : [[true, 'with the plan']]),
    html`<a data-key="WhatIf" href=${link.whatIf(page.name, at(moment))}>what if …</a>`,
  ];
  return switches('Moment', moments, chosen.plan && steps.length > 0, (plan) => choose({ ...chosen, plan }));
}

const FORMS = ['columns', 'rows', 'table'].map((form) => [form, form]);

/** The hosts of the moment: pictures, or the table with the numbers. */
function hostsPart(data, chosen, choose) {
  const { page, picture, steps, past, snapshot } = data;
  if (picture.refused !== undefined) return missing(picture.refused);
  const policies = picture.policies;
  const policy = Math.min(chosen.policy < 0 ? worstPolicy(policies) : chosen.policy, policies.length - 1);
  const width = Math.max(280, Math.min(innerWidth, 3840) - 64);
  const withPlan = chosen.plan && steps.length > 0;
  const shape = chosen.shape ?? (innerWidth < 700 || picture.hosts.length > 60 ? 'rows' : 'columns');
  const how = {
    aggregate: page.name,
    width,
    snapshot: past ? snapshot : undefined,
    ...(past ? nothingNow : happeningNow(page)),
  };
  return html`<div class="tools">
      ${policySwitch(policies, policy, (value) => choose({ ...chosen, policy: value }))}
      ${hint(data)}
      <span class="push"></span>
      ${momentSwitch(data, chosen, choose)}
      ${switches('Form', FORMS, shape, (value) => choose({ ...chosen, shape: value }))}
    </div>
    ${movesText(data, withPlan)}
    ${
      policies.length === 0
        ? html`<p class="dim">No policy is evaluated.</p>`
        : shape === 'table'
          ? heatmap(picture, chosen, choose, past)
          : drawnHosts(data, layout(picture, policy, steps, withPlan), { shape, policy, how })
    }`;
}

/** The marks of what was read: the same ones for every moment that is looked at. */
let marked = { series: null, marks: [] };
function marks(name, { series, history, moved }) {
  if (marked.series !== series)
    marked = { series, marks: marksOf(name, series, { history: history.events, moves: moved.moves }) };
  return marked.marks;
}

/** The name of the aggregate, its standing, and the commands. */
function headline({ page, series, picture, index, past, plan, snapshot }) {
  const { name } = page;
  const [kind, words] = standingOf(page.standing);
  return html`<section aria-label="State" class="headline plain-section"><h1>${name}</h1>
        ${
          past
            ? html`<p class="chip amber" data-state="past" data-moment=${snapshot}>As it was at ${index < 0 ? 'an older cycle' : clockTime(momentOf(series, index).atMs)} · <a href=${link.aggregate(name)}>back to now</a> <kbd>Esc</kbd></p>`
            : html`<p class="chip ${kind === 'warn' ? 'amber' : ''}" data-state="standing"><span class="state ${kind} is-${page.standing}"><span class="words">${words}</span></span>${[worstText(page.lastDecision?.policies ?? []), doing(page)].filter((part) => part !== '').map((part) => html` · ${part}`)}</p>`
        }
        <span class="push"></span>
        ${plan === null ? '' : html`<a class=${page.standing === 'waitingForApproval' && !past ? 'button primary' : 'button'} data-key="Review" href=${link.plan(plan.id, plan.sequence)}>${past ? `The plan of ${clockTime(plan.atMs).slice(11)}` : page.standing === 'waitingForApproval' ? 'Review the plan' : 'See the plan'}</a>`}
        ${past ? pastStory(series, index, picture) : aggregateCommands(page)}
        ${past ? '' : html`<div class="second"><span class="dim push">${facts(page, picture)}</span> <a href=${link.drains(name)}>Rolling maintenance</a>${meanings('pause', 'evaluate', 'record', ...(cellTargets(name).length === 0 ? [] : ['cells']))}</div>`}
      </section>`;
}

/** The alarms of the aggregate. */
const wrong = (alarms) =>
  alarms.length === 0
    ? ''
    : html`<section class="needs" aria-label="Alarms"><ul class="lines">${alarms.map(alarmLine)}</ul></section>`;

/** One aggregate, now or at a recorded moment (`?snapshot=`). */
export const aggregate = {
  title: ({ name }) => name,
  concerns(change, { name }) {
    const concerned = isAbout(change, name);
    // The kept data of now is no longer true.
    if (concerned) present = { ...present, readMs: present.readMs - PRESENT_MS };
    return concerned;
  },
  decidedAt: ({ page }) => page.lastDecision?.time ?? null,
  async load({ name }, query) {
    const snapshot = query.get('snapshot');
    const base = `/aggregates/${encodeURIComponent(name)}`;
    const past = snapshot !== null;
    const path = `${base}/picture${at(snapshot)}`;
    const known = presentOf(name, snapshot);
    const [now, picture, { plan, steps, doneAt }] = await Promise.all([
      known,
      past ? recorded(path) : tryRead(path),
      known.then((data) => openPlan(data, snapshot)),
    ]);
    const index = past ? now.series.snapshotIds.indexOf(snapshot) : -1;
    const left = past && picture.refused === undefined ? stepsLeft(steps, picture, doneAt) : steps;
    return { ...now, picture, steps: left, plan, index, past, snapshot };
  },
  /** The events around a recorded moment are read when the person rests at it. */
  async late({ name }, { query, data }) {
    if (!query.has('snapshot') || data.index < 0) return null;
    const atMs = Date.parse(data.series.times[data.index]);
    const since = encodeURIComponent(new Date(atMs - AROUND_MS).toISOString());
    const { events } = await read(`/history?aggregate=${encodeURIComponent(name)}&since=${since}&limit=200`);
    return events.filter(({ time }) => time !== null && Date.parse(time) <= atMs + AROUND_MS);
  },
  show(data, { view, choose, go, late, query }) {
    const { page, series, recent, moved, index, past } = data;
    const { name } = page;
    const goTo = (moment) => go(`${link.aggregate(name)}${moment}`);
    const chosen = { filter: '', sort: -1, policy: -1, plan: false, shape: null, kind: 'all', older: false, ...view };
    const decided = past ? recent.decisions.find(({ snapshotId }) => snapshotId === data.snapshot) : undefined;
    return html`
      ${headline(data)}
      ${past ? '' : wrong(alarmsOf(data.alarms, name))}
      ${section(past ? 'Hosts at that moment' : 'Hosts', hostsPart(data, chosen, choose), past ? 'past' : undefined)}
      ${section(
        'Time',
        html`${series.times.length === 0 ? html`<p class="dim">No decision yet.</p>` : timeBar(series, past ? index : null, { query, go: goTo, marks: marks(name, data) })}
          ${decided === undefined ? '' : html`<p class="dim">Decision: ${decided.steps > 0 ? html`<a href=${link.plan(decided.snapshotId, decided.sequence)}>planned ${count(decided.steps, 'move')}</a>: ` : ''}${said(decided.reason.text)}</p>`}`,
        past ? 'past' : undefined,
      )}
      ${
        past
          ? section('Around then', around(data, late), 'past')
          : html`${
              page.moves.length === 0
                ? ''
                : section(
                    'Moves in flight',
                    html`${moves(page.moves, () => name)}${meanings('cancel', 'abort', 'close')}`,
                  )
            }
        <div class="two">${section('What happened', happened(name, data, chosen, choose))}${section('Next', next(page.next))}</div>
        ${timeline(moved, nowMs())}`
      }`;
  },
};
