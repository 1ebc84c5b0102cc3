import { nowMs, read, tryRead } from '../api.js';
import { stillWaits, waitsForPerson } from '../approval.js';
import { bound } from '../bound.js';
import { byHand, meanings, pauseCommand, planCommands } from '../commands.js';
import { dependencies } from '../graph.js';
import { html } from '../lib/lit-html.js';
import { leaving } from '../pairs.js';
import {
  ASSUMED_PACE,
  duration,
  eventsTable,
  expected,
  facts,
  figure,
  folded,
  heat,
  heatWords,
  link,
  missing,
  ratioText,
  said,
  section,
  switches,
  table,
  when,
} from '../parts.js';
import { shortOf, statusOf, steps } from '../planSteps.js';
import { ratioAfter, worstPolicy } from '../ratio.js';
import { ribbons } from '../ribbons.js';
import { copiedMb } from '../sizes.js';
import { timeTogether } from '../times.js';
import { count, othersText, shareText } from '../words.js';

/** Steps that wait for one of these wait for it in vain when it is left out: they are left out too. */
function withDependants(steps, left) {
  const out = new Set(left);
  for (const { step, dependsOn } of steps)
    if (dependsOn.some((id) => out.has(Number(id.replace(/^.*-s/, ''))))) out.add(step);
  return out;
}

/** The class of a ribbon: how far its move is. */
const progressOf = (page) => (step) =>
  ({ completed: 'done', failed: 'failed', skipped: 'failed', started: 'running' })[
    statusOf(step.taskId, page.tasks, page.events)
  ] ?? '';

function effect({ aggregate, policies, hosts }) {
  // The band moves with the hosts: what is after the plan is judged by the band after it.
  const scaleOf = (valuesOf) =>
    policies.map(({ threshold }, i) => {
      const values = hosts.flatMap((host) => valuesOf(host)[i] ?? []);
      return { threshold, lowest: values.length === 0 ? null : Math.min(...values), highest: Math.max(...values) };
    });
  const [scaleBefore, scaleAfter] = [scaleOf(({ before }) => before), scaleOf(({ after }) => after)];
  const cell = (value, scale) => {
    const kind = heat(value, scale);
    return html`<td class="number cell ${kind}" title=${heatWords(kind)}>${shareText(value, 1)}</td>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Hosts before and after"><table class="heat">
    <thead><tr><th scope="col">Host</th><th scope="col" class="number">VMs</th>
      ${policies.map(({ policy }) => html`<th scope="col" class="number">${policy} before</th><th scope="col" class="number">after</th>`)}</tr></thead>
    <tbody>${hosts.map(
      (host) => html`<tr><th scope="row"><a href=${link.host(aggregate, host.name)}>${host.name}</a></th>
        <td class="number">${host.vmsBefore} → ${host.vmsAfter}</td>
        ${policies.map((_, i) => html`${cell(host.before[i], scaleBefore[i])}${cell(host.after[i], scaleAfter[i])}`)}</tr>`,
    )}</tbody></table></div>`;
}

const share = (value) => (value === null ? 'unknown' : `${Math.floor(value * 100)} %`);

/** The steps of a plan under way that have not ended. */
function stepsLeft({ plan: known, tasks }, steps) {
  if (known?.state !== 'released') return steps;
  const open = new Set(tasks.filter(({ ended }) => ended === null).map(({ id }) => id));
  return steps.filter(({ taskId }) => open.has(taskId));
}

/** How long it took, will take, or still takes. The sum over the steps is longer: moves off different hosts run at the same time. */
function timeOf(page, made, kept) {
  const { plan: known, stepTimes } = page;
  if (known?.endedAt != null && known.releasedAt !== null)
    return html`took <strong>${duration(Date.parse(known.endedAt) - Date.parse(known.releasedAt))}</strong>`;
  const left = stepsLeft(page, kept);
  const time = timeTogether(left, (step) => stepTimes[made.steps.indexOf(step)]);
  if (time === null) return html`<strong>no move</strong> is left`;
  const how = [
    ...(left.length > 1 ? ['moves off one host follow each other'] : []),
    ...(time.measured ? [] : [ASSUMED_PACE]),
  ];
  return html`<strong>${expected(time)}</strong> ${known?.state === 'released' ? `for the ${count(left.length, 'move')} left` : 'of moving'}${how.length === 0 ? '' : html` <small>(${how.join('; ')})</small>`}`;
}

/** A multiple above 1, which is not written as 1.00. */
const aboveText = (ratio) => (ratio < 1.005 ? 'just over 1.00×' : ratioText(ratio));

/** The policies above their thresholds, each with how far: `cpu 1.50×`. */
const stillAbove = ({ policies }, { above, ratios }) =>
  policies.flatMap(({ policy }, i) => (above.includes(policy) ? [`${policy} ${aboveText(ratios[i])}`] : [])).join(', ');

/** The rest of the course after this plan; empty where the plan reaches the targets itself. */
const courseOf = (course) =>
  course === undefined
    ? ''
    : html`<li><strong>${count(course.moves, 'move')} in ${count(course.cycles, 'cycle')}</strong>
        ${course.reaches ? 'until every policy is at its target' : 'to the best that was found'}</li>`;

function refusals(refused) {
  const sum = refused.reduce((all, { candidates }) => all + candidates, 0);
  const why = table(
    'Refused',
    [
      ['Why', ({ text, code }) => html`${text} <code class="dim">${code}</code>`],
      ['Candidates', ({ candidates }) => candidates, 'number'],
    ],
    refused,
    '',
  );
  return folded('Refused', `Not chosen: ${count(sum, 'candidate')} refused`, why);
}

/** How far a plan is, until when it waits and who approved it. */
const progressFacts = (known) => [
  ['Moves', `${known.completed} of ${known.steps} completed, ${known.failed} failed, ${known.skipped} skipped`],
  ...(known.expiresAt == null ? [] : [[stillWaits(known, nowMs()) ? 'Expires' : 'Expired', when(known.expiresAt)]]),
  ...(known.approvedBy == null ? [] : [['Approved by', known.approvedBy]]),
];

/** How the planner came to it. */
function summary(id, known, decision) {
  const made = decision?.data.plan ?? null;
  const aggregate = decision?.aggregate ?? known.aggregate;
  return html`<p>${decision === null ? 'Its decision is no longer in memory.' : said(decision.data.reason.text)}</p>
    ${facts([
      ['Aggregate', html`<a href=${link.aggregate(aggregate)}>${aggregate}</a>`],
      ['State', known?.state ?? decision?.data.release ?? 'unknown'],
      ...(known === null ? [] : progressFacts(known)),
      ...(made === null
        ? []
        : [
            [
              'Combined imbalance (weighted sum of the policies)',
              `${figure(decision.data.before.combined)} → ${figure(made.after.combined)}`,
            ],
            [`No plan of ${count(made.budget, 'move')} can be below`, figure(made.lowerBound)],
            ['Of what these moves could gain', share(made.shareOfPossible)],
          ]),
      ['Plan id', html`<code>${id}</code>`],
    ])}
    ${made === null ? '' : bound(decision.data.before.combined, made.after.combined, made.lowerBound)}`;
}

/** The commands that answer a plan which waits. */
const answers = ({ id, waits, kept, out }) =>
  waits
    ? byHand(
        ...(kept.length === 0
          ? []
          : [`kronos approve ${id}${out.size === 0 ? '' : ` --step ${kept.map(({ step }) => step).join(',')}`}`]),
        `kronos reject ${id}`,
      )
    : '';

/** The moves of the plan, in one sentence. */
function sentence({ id, page, picture, made, kept, before, after }) {
  if (made === null) return `Plan ${id}`;
  const aggregate = page.decision.aggregate;
  if (after === null || before.ratio === null) return `${count(made.steps.length, 'move')} of ${aggregate}`;
  // The policy that is the worst after it may be another one than before: each is compared with itself.
  const worst = new Set([before, after].map(({ ratios }) => worstPolicy(picture.policies, ratios)));
  const changes = [...worst].map(
    (i) => `from ${picture.policies[i].policy} ${ratioText(before.ratios[i])} to ${ratioText(after.ratios[i])}`,
  );
  return `${count(kept.length, 'move')} ${kept.length === 1 ? 'takes' : 'take'} ${aggregate} ${changes.join(' and ')}`;
}

const underWay = ({ tasks }) => {
  const started = tasks.filter(({ started: slot, ended }) => slot !== null && ended === null).length;
  return started === 0 ? '' : `, ${started} under way`;
};

/** The state of a plan that waits for nobody, in a few words. */
function stateText({ plan: known, decision }) {
  if (known === null) return decision?.data.release ?? 'unknown';
  if (known.state === 'proposed') return html`expired ${when(known.expiresAt)}: nothing moves`;
  if (known.state !== 'released') return known.state;
  return known.dispatchedAt === null
    ? 'released · not handed to the executors yet'
    : `running · ${known.completed} of ${count(known.steps, 'move')} completed`;
}

const gib = (steps, mbOf) => Math.round(steps.reduce((sum, step) => sum + mbOf(step), 0) / 1024);

/** The figures that a person needs to approve it: the gain, the memory to copy, the time. */
function figuresOf({ page, picture, made, kept, after }) {
  const { plan: known, decision } = page;
  return html`<ul class="figures">
    <li><strong>${made.shareOfPossible === null ? 'unknown' : `at least ${share(made.shareOfPossible)}`}</strong> of the best that any ${count(made.budget, 'move')} could do</li>
    <li><strong>${gib(kept, copiedMb)} GiB</strong> copied${kept.every(({ diskGb }) => diskGb === 0) ? '' : html` <small>(${gib(kept, ({ ramMb }) => ramMb)} GiB of it memory)</small>`}</li>
    <li>${timeOf(page, made, kept)}</li>${courseOf(decision.data.course)}
    ${after === null ? '' : html`<li><strong>${after.above.length === 0 ? 'every policy' : stillAbove(picture, after)}</strong> ${after.above.length === 0 ? 'at its threshold or below' : 'still above the threshold'}</li>`}
    ${known === null || known.state === 'proposed' ? '' : html`<li><strong>${known.completed} of ${known.steps}</strong> completed${underWay(page)}${othersText(known)}</li>`}
  </ul>`;
}

/** The sentence, how far it is, the answers that a person can give, and the figures. */
function lead(shown) {
  const { id, page, made, waits, out, kept } = shown;
  const { plan: known } = page;
  return html`<div class="headline"><h1>${sentence(shown)}</h1>
      <p class="chip ${waits ? 'amber' : ''}">${waits ? html`waits for approval · expires ${when(known.expiresAt)}, and nothing moves` : stateText(page)}</p>
      <span class="push"></span>
      ${known?.state === 'released' ? html`${pauseCommand(known.aggregate)}${meanings('pause', 'cancel', 'abort', 'close')}` : ''}
      ${waits ? planCommands(id, { steps: out.size === 0 ? null : kept.map(({ step }) => step), all: made?.steps.length, first: true }) : ''}
    </div>
    ${made === null ? '' : figuresOf(shown)}`;
}

const FORMS = [
  ['picture', 'picture'],
  ['table', 'table'],
];

/** The touched hosts before and after the plan: the picture, or the numbers. */
function beforeAndAfter({ page, hosts, picture, drawn, kept }, chosen, choose) {
  const policies = drawn && picture.policies.length > 1 ? picture.policies : [];
  const tools = html`<div class="tools"><strong class="who-moves">${kept.length === 0 ? 'No VM leaves its host' : leaving(kept, shortOf(picture))}</strong>
    ${
      policies.length === 0
        ? ''
        : switches(
            'Policy',
            policies.map(({ policy }, i) => [i, policy]),
            chosen.policy,
            (policy) => choose({ ...chosen, policy }),
          )
    }
    <span class="push"></span>
    <span class="dim">${drawn ? html`measured ${when(picture.snapshot.time)}` : ''}</span>
    ${switches('Form', FORMS, chosen.form, (form) => choose({ ...chosen, form }))}</div>`;
  const ribbonsOf = () =>
    ribbons(picture, {
      steps: kept,
      policy: Math.min(chosen.policy, picture.policies.length - 1),
      aggregate: page.decision.aggregate,
      statusOf: progressOf(page),
    });
  return section(
    'Hosts before and after',
    html`${drawn ? tools : ''}
      ${drawn && chosen.form === 'picture' ? ribbonsOf() : hosts.refused === undefined ? effect(hosts) : missing(hosts.refused)}`,
  );
}

/** The steps, which a person may leave out while the plan waits, and which of them wait for others. */
function stepsPart({ page, picture, made, waits, drawn, out, kept, before }, chosen, choose) {
  const toggle = (step) =>
    choose({
      ...chosen,
      out: chosen.out.includes(step) ? chosen.out.filter((one) => one !== step) : [...chosen.out, step],
    });
  const how = { picture: drawn ? picture : null, before, kept, out, toggle: waits ? toggle : null };
  return html`${section('Steps', steps(page.decision, page, how))}
    ${made.steps.every(({ dependsOn }) => dependsOn.length === 0) ? '' : section('Dependencies', dependencies(made.steps))}`;
}

/** One plan: what it changes, its steps with their reasons, what was refused. */
export const plan = {
  title: ({ id }) => `Plan ${id}`,
  decidedAt: ({ page }) => page.decision?.data.snapshotTime ?? null,
  concerns: (_, __, data) => data.page.plan?.endedAt === null,
  async load({ id }, query) {
    const sequence = query.get('sequence') === null ? '' : `?sequence=${query.get('sequence')}`;
    const path = `/plans/${encodeURIComponent(id)}`;
    const [page, hosts] = await Promise.all([read(`${path}${sequence}`), tryRead(`${path}/hosts${sequence}`)]);
    const aggregate = page.decision?.aggregate ?? page.plan?.aggregate;
    const picture =
      page.decision === null
        ? { refused: true }
        : await tryRead(
            `/aggregates/${encodeURIComponent(aggregate)}/picture?snapshot=${encodeURIComponent(page.decision.data.snapshotId)}`,
          );
    return { id, page, hosts, picture };
  },
  show({ id, page, hosts, picture }, { view, choose }) {
    const { plan: known, decision, refused, events } = page;
    const made = decision?.data.plan ?? null;
    const waits = waitsForPerson(known, nowMs());
    const drawn = picture.refused === undefined && picture.policies.length > 0 && made !== null;
    const chosen = { out: [], policy: drawn ? worstPolicy(picture.policies) : 0, form: 'picture', ...view };
    const all = made?.steps ?? [];
    const out = withDependants(all, waits ? chosen.out : []);
    const kept = all.filter(({ step }) => !out.has(step));
    const before = drawn ? ratioAfter(picture, []) : null;
    const after = drawn ? ratioAfter(picture, kept) : null;
    const shown = { id, page, hosts, picture, made, waits, drawn, out, kept, before, after };
    return html`
      ${lead(shown)}
      ${beforeAndAfter(shown, chosen, choose)}
      ${made === null ? '' : stepsPart(shown, chosen, choose)}
      ${answers(shown)}
      ${refused.length === 0 ? '' : refusals(refused)}
      ${folded('Summary', made === null ? 'State' : `Planner: ${made.planner}, ${count(made.candidatesEvaluated, 'candidate')}`, summary(id, known, decision))}
      ${folded('Events', `Log: ${count(events.length, 'event')}`, eventsTable(events))}`;
  },
};
