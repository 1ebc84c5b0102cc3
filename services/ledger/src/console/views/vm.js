import { nowMs, read, readOrRefused, tryRead } from '../api.js';
import { vmCommands } from '../commands.js';
import { journey } from '../journey.js';
import { html } from '../lib/lit-html.js';
import { planMarks } from '../marks.js';
import { indexOf, pastStory } from '../moment.js';
import {
  at,
  clockTime,
  eventsTable,
  facts,
  figures,
  link,
  missing,
  movesNow,
  named,
  near,
  pending,
  ratioText,
  said,
  section,
  table,
  when,
} from '../parts.js';
import { ratioAt } from '../ratio.js';
import { recorded } from '../recorded.js';
import { person } from '../session.js';
import { timeBar } from '../timeBar.js';
import { timeline } from '../timeline.js';
import { count, listed, memoryText, shareText } from '../words.js';
import { host } from './host.js';

const destination = ({ refusal, worsens, gain }) =>
  refusal !== null
    ? refusal.text
    : worsens.length > 0
      ? `allowed, but would worsen ${worsens.join(', ')}`
      : gain === null
        ? 'allowed'
        : gain > LEAST
          ? 'may go there: less imbalance'
          : gain < -LEAST
            ? 'allowed, but worsens the balance'
            : 'allowed, but changes nothing';
/** Smaller changes of an imbalance are not seen. */
const LEAST = 5e-4;

/** The imbalance of all policies without a move; undefined: it is not known. */
const todayOf = ({ combined, gain }) => (gain === null || combined + gain <= 0 ? undefined : combined + gain);

/** The figures of a verdict: a gain as a share of the imbalance, as the table of the destinations has it. */
function detailText({ bestGain, ...others } = {}, best) {
  const today = best.map(todayOf).find((one) => one !== undefined);
  if (bestGain === undefined) return figures(others);
  return today === undefined
    ? figures({ bestGain, ...others })
    : [`its best move takes ${shareText(bestGain / today, 1)} off the imbalance`, figures(others)]
        .filter((part) => part !== '')
        .join(', ');
}

/** The imbalance after the move, where that of today is 100 %. */
const leftOf = (one) => {
  const today = todayOf(one);
  return one.refusal !== null || today === undefined ? '' : shareText(one.combined / today, 1);
};

/** Whether it moves or stays, in one sentence. */
function fate(name, { waits, moving, steps, decision, verdict, past }) {
  if (waits !== null)
    return html`It moves to <a href=${link.host(name, waits.to)}>${waits.to}</a> when <a href=${link.plan(waits.planId, waits.sequence)}>the plan of ${clockTime(waits.decidedAt)}</a> is approved (step ${waits.step} of ${waits.of}).`;
  if (moving !== undefined)
    return html`It moves now, from <a href=${link.host(name, moving.from)}>${moving.from}</a> to <a href=${link.host(name, moving.destination)}>${moving.destination}</a>, by <a href=${link.plan(moving.planId)}>its plan</a>.`;
  if (steps.length > 0 && decision.outcome !== 'planned')
    return 'Decided again with this version, a plan moves it: no plan is recorded.';
  if (steps.length > 0)
    return html`<a href=${link.plan(decision.snapshotId, decision.sequence)}>The plan</a> ${past === null ? 'moves' : 'moved'} it.`;
  return html`It ${past === null ? 'stays' : 'stayed'}: ${said(verdict.text)}`;
}

/** Each policy's imbalance as a multiple of its threshold, at the moment of a decision. */
function ratiosAt({ snapshotIds, policies }, { snapshotId }) {
  const at = snapshotIds.indexOf(snapshotId);
  return policies.flatMap((own) => {
    const ratio = ratioAt(own, at);
    return ratio === null ? [] : [`${own.policy} ${ratioText(ratio)}`];
  });
}

/** Explains the 100 % of the destinations. */
function comparedWith({ assumed, destinations: { best } }, ratios) {
  if (best.length === 0) return '';
  const said = ratios.length === 0 ? '' : `: ${listed(ratios)}${ratios.length > 1 ? ', each by its weight' : ''}`;
  return html`<p class="dim">100 % is the imbalance ${assumed === null ? 'without a move' : 'there'}${said}. ${assumed === null ? 'Each row is this VM alone: the other moves of a plan change what is best.' : `Compared with ${assumed}, where it counts as being already.`}</p>`;
}

/** The reasons of the last decision about it, or of the one at a recorded moment. */
function why({ name, past, series }, late, moving) {
  const the = past === null ? 'The last decision' : 'The decision of that moment';
  if (late === null) return pending(`${the} is made again …`);
  if (late.why.refused !== undefined) return missing(late.why.refused);
  const { decision, missing: gone, same, vm: of } = late.why;
  if (gone !== null) return html`<p class="warn" data-state="gone">${the} cannot be made again: ${gone}.</p>`;
  if (of === null) return html`<p class="dim" data-state="missing">${the} does not know this VM.</p>`;
  const { verdict, destinations, assumed, groups, weights, steps } = of;
  const { waits } = late.why;
  const detail = detailText(verdict.detail, destinations.best);
  const stays = waits === null && moving === undefined && steps.length === 0;
  const best = stays
    ? destinations.best.find((d) => d.refusal === null && d.worsens.length === 0 && d.gain > LEAST)
    : undefined;
  return html`
    <p><strong>${fate(name, { waits, moving, steps, decision, verdict, past })}</strong>
      ${stays ? html`<span class="dim">${detail}</span> <code>${verdict.code}</code>` : ''}</p>
    <p class="dim">By the decision of ${clockTime(decision.time)} (${said(decision.reason.text).replace(/\.$/, '')})${same === false ? '. Made again, it differs from the recorded one' : ''}.</p>
    ${facts([
      [
        'Weighs',
        Object.entries(weights)
          .map(([policy, value]) => `${policy} ${shareText(value, 1)} of its host`)
          .join(', ') || 'nothing',
      ],
      ['Server groups', groups.join(', ') || 'none'],
      ...(assumed === null ? [] : [['Assumed to be on', html`<a href=${link.host(name, assumed)}>${assumed}</a>`]]),
      ['Possible destinations', `${destinations.legal} of ${destinations.all}`],
    ])}
    ${table(
      'Destinations',
      [
        ['If it went to', (d) => html`<a href=${link.host(name, d.host)}>${d.host}</a>`],
        ['Imbalance then', leftOf, 'number'],
        [
          'Verdict',
          (d) =>
            waits?.to === d.host
              ? html`<strong>the waiting plan moves it there</strong>`
              : moving?.destination === d.host
                ? html`<strong>it moves there now</strong>`
                : d === best
                  ? html`<strong>the best: may go there</strong>`
                  : best !== undefined && d.refusal === null && d.gain !== null && best.gain - d.gain < LEAST
                    ? 'as good as the best'
                    : destination(d),
        ],
      ],
      destinations.best,
      'There is no other host.',
    )}${comparedWith(of, ratiosAt(series, decision))}`;
}

const quarantined = ({ text, until }) => html`${text} until ${until === null ? 'it is released' : when(until)}`;

/** The reasons that keep it from moving now. `called`: what the page calls it. */
const held = ({ name, id, called, known, seen }) =>
  html`${facts([
    ['Quarantine', known?.quarantine == null ? 'none' : quarantined(known.quarantine)],
    ['Cooling down until', known?.coolingDownUntil == null ? 'not cooling down' : when(known.coolingDownUntil)],
    ['Excluded by', seen?.optedOutBy ?? 'nothing'],
    ['Locked', seen === undefined ? 'unknown' : seen.locked ? 'yes' : 'no'],
    [
      'Last failure',
      known?.lastFailure == null
        ? 'none'
        : html`${known.lastFailure.errorType}: ${known.lastFailure.text} ${when(known.lastFailure.at)}`,
    ],
  ])}${vmCommands(name, id, known?.quarantine != null, called)}`;

/** Where it is, and its values; at a recorded moment: where it was then. */
function place(name, vms, past) {
  const [seen] = vms.vms ?? [];
  if (vms.refused !== undefined) return missing(vms.refused);
  if (seen === undefined)
    return html`<p class="dim" data-state="missing">The ${past === null ? 'newest' : 'recorded'} snapshot of ${name} has no such VM.</p>`;
  return facts([
    ['Host', html`<a href=${link.host(name, seen.host, past)}>${seen.host}</a>`],
    ['Status', seen.taskState === null ? seen.status : `${seen.status}, ${seen.taskState}`],
    [
      'Flavor',
      `${seen.flavor ?? 'unknown'}: ${count(seen.vcpus, 'vCPU')}, ${memoryText(seen.ramMb)}${seen.diskGb > 0 ? `, ${seen.diskGb} GiB` : ''}`,
    ],
    ...vms.policies.map((policy, i) => [policy, `${shareText(seen.values[i], 1)} of its host`]),
    ['Measured', past === null ? when(vms.snapshot.time) : clockTime(vms.snapshot.time)],
  ]);
}

const CELL_STATES = {
  stays: 'It cannot move.',
  dryRun: 'Dry run: nothing moves.',
  notReleased: 'Not released.',
  waitsForApproval: 'Waits for approval.',
  expired: 'Expired: nobody approved it.',
  rejected: 'Rejected.',
  leftOut: 'Its step was not approved.',
  windowClosed: 'Its window had closed before the approval.',
  approved: 'Approved.',
  waitsForPerson: 'Verified: a person confirms or reverts it.',
  ended: 'Ended.',
};

/** One plan between cells: what it says of the VM, and what became of the move. */
const cellPlan = ({ aggregate, to, planId, proposedAt, approvalUntil, state, step, reason, events }) => html`
  <h3><code>${planId}</code> ${aggregate} → ${to}, ${when(proposedAt)}</h3>
  <p>${
    step === null
      ? ''
      : html`From ${step.from} to ${step.to} by ${step.method === 'migrate' ? 'cold migration' : `resize ${step.oldFlavor} → ${step.newFlavor}`}. `
  }<strong>${CELL_STATES[state]}</strong>
    ${state === 'waitsForApproval' ? html`Until ${when(approvalUntil)}.` : ''} ${reason?.text ?? ''}</p>
  ${events.length === 0 ? '' : eventsTable(events)}`;

/** Its journey, as a picture and as a table. */
const ranOn = (name, ran, current) =>
  html`${journey({ aggregate: name, ran, current }, nowMs())}${table(
    'Hosts where it ran',
    [
      ['Host', (r) => html`<a href=${link.host(name, r.host)}>${r.host}</a>`],
      ['Since', (r) => (r.since === null ? 'before that' : when(r.since)), 'when'],
      ['Until', (r) => (r.until === null ? 'now' : when(r.until)), 'when'],
    ],
    ran.toReversed(),
    'No move of it has ended recently.',
  )}`;

/** The time bar; nothing where there is no cycle. */
const time = (name, series, index, how) =>
  series.times.length === 0 ? '' : section('Time', timeBar(series, index, { ...how, marks: planMarks(name, series) }));

/** Its move under way; none belongs to a recorded moment. */
const movingNow = (known, past) => (past === null ? known?.moves[0] : undefined);

/** Its move under way, its former moves and its events. */
const story = ({ name, log, moved, past }, known) =>
  html`${person() === null ? '' : movesNow(known, name, past)}
    ${timeline(moved, nowMs())}
    ${past !== null || !log.cells?.length ? '' : section('Moves between cells', html`${log.cells.map(cellPlan)}`)}
    ${section('Recent events', log.refused === undefined ? eventsTable(log.events) : html`<p class="dim">The log says nothing recent about it.</p>`)}`;

/** One VM, now or at a recorded moment (`?snapshot=`): where it is, what holds it there, what happened to it. */
export const vm = {
  title: ({ id }) => `VM ${id}`,
  concerns: host.concerns,
  async load({ name, id }, query) {
    const base = `/aggregates/${encodeURIComponent(name)}`;
    const past = query.get('snapshot');
    const [vms, series, log, moved, hosts] = await Promise.all([
      tryRead(
        `${base}/vms?id=${encodeURIComponent(id)}${past === null ? '' : `&snapshot=${encodeURIComponent(past)}`}`,
      ),
      read(`${base}/imbalance${near(past)}`),
      tryRead(`/vms/${encodeURIComponent(id)}`),
      read(`${base}/moves?limit=20&vm=${encodeURIComponent(id)}`),
      past === null ? null : recorded(`${base}/hosts${at(past)}`),
    ]);
    return { name, id, vms, series, log, moved, hosts, past };
  },
  late: async ({ name, id }, { query }) => ({
    why: await readOrRefused(
      `/aggregates/${encodeURIComponent(name)}/vms/${encodeURIComponent(id)}/why${at(query.get('snapshot'))}`,
    ),
  }),
  show({ name, id, vms, series, log, moved, hosts, past }, { late, go, query }) {
    const [seen] = vms.vms ?? [];
    const known = log.aggregates?.find((one) => one.aggregate === name);
    const called = seen?.name ?? known?.moves[0]?.serverName ?? id;
    const index = indexOf(series, past);
    const goTo = (moment) => go(`${link.vm(name, id)}${moment}`);
    return html`
      <div class="headline"><h1>${called}</h1>
        <span class="push">in <a href=${link.aggregate(name, past)}>${name}</a> · ${named(id, id)}</span>${pastStory(series, index, hosts)}</div>
      ${past === null ? section('Now', place(name, vms, past)) : section('At that moment', place(name, vms, past), 'past')}
      ${section(past === null ? 'Why it moves or stays' : 'Why it moved or stayed', why({ name, past, series }, late, movingNow(known, past)))}
      ${time(name, series, index, { query, go: goTo })}
      ${section('Hosts where it ran', ranOn(name, log.ran ?? [], seen?.host ?? null))}
      ${past === null ? section('What holds it', held({ name, id, called, known, seen })) : ''}
      ${story({ name, log, moved, past }, known)}`;
  },
};
