import { read, readOrRefused } from '../api.js';
import { drawLines, drawn } from '../chart.js';
import { answerTo } from '../decider.js';
import { ref } from '../lib/directives/ref.js';
import { html, nothing } from '../lib/lit-html.js';
import {
  at,
  clockTime,
  figure,
  link,
  missing,
  near,
  pending,
  ratioText,
  said,
  section,
  table,
  usesUtc,
} from '../parts.js';
import { changesIn, changesNothing, NUMBERS, POLICY_FIELDS, SWITCHES, verdict } from '../question.js';
import { countedValues, ratioAfter, valuesAfter, worstText } from '../ratio.js';
import { recorded, recordedDecision } from '../recorded.js';
import { skyline, topOf } from '../skyline.js';
import { timeBar, withQuery } from '../timeBar.js';
import { count, memoryText, shareText } from '../words.js';

const HOURS = [1, 3, 6, 12];
const HOUR_MS = 3_600_000;

/** The last answer: it is of a range that is over, and is not asked for again while it is shown. */
let kept = { path: null, answer: Promise.resolve(null) };
function answerOf(path) {
  if (kept.path !== path) {
    const answer = readOrRefused(path);
    kept = { path, answer };
    // A refusal may pass.
    answer.then(
      ({ refused }) => {
        if (refused !== undefined && kept.answer === answer) kept = { ...kept, path: null };
      },
      () => undefined,
    );
  }
  return kept.answer;
}

function form(name, query, go) {
  const ask = (event) => {
    event.preventDefault();
    const { hours, sets } = Object.fromEntries(new FormData(event.target));
    const now = Date.now();
    const wanted = new URLSearchParams(query);
    wanted.set('since', new Date(now - hours * HOUR_MS).toISOString());
    wanted.set('until', new Date(now).toISOString());
    wanted.set('hours', hours);
    wanted.delete('set');
    for (const set of sets.split(/\s+/).filter((text) => text !== '')) wanted.append('set', set);
    go(link.whatIf(name, `?${wanted}`));
  };
  return html`<form class="tools" @submit=${ask}>
    <label>Range <select name="hours">${HOURS.map(
      (hours) =>
        html`<option value=${hours} ?selected=${query.get('hours') === String(hours)}>last ${count(hours, 'hour')}</option>`,
    )}</select></label>
    <label class="wide">Changed options <input name="sets" type="text" spellcheck="false" .value=${query.getAll('set').join(' ')}
      placeholder="engine.cooldown=0 engine.min_gain=0.01"></label>
    <button type="submit">Decide again</button>
  </form>`;
}

function outcome(late) {
  if (late === null) return pending('Every recorded snapshot is decided again …');
  if (late.refused !== undefined) return missing(late.refused);
  const { since, until, snapshots, complete, sets, times, recorded, simulated } = late;
  const rows = [
    ['Moves', ({ moves }) => moves],
    ['Mean imbalance', ({ meanImbalance }) => figure(meanImbalance)],
    ['Highest imbalance', ({ maxImbalance }) => figure(maxImbalance)],
    ['Imbalance at the end', ({ lastImbalance }) => figure(lastImbalance)],
    ['Broken rules of server groups at the end', ({ ruleBreaks }) => ruleBreaks],
  ];
  const lines = [
    { label: 'what happened', values: recorded.combined, colour: '--text', width: 2 },
    { label: 'what if', values: simulated.combined, colour: '--c0', width: 2, dash: [6, 3] },
  ];
  return html`
    <p>${count(snapshots, 'snapshot')} from ${clockTime(since)} to ${clockTime(until)}, ${sets.length === 0 ? 'with the options as they were' : html`with <code>${sets.join(' ')}</code>`}.
      ${complete ? '' : html`<strong class="warn">The time was up before the end of the range: kronos replay has no such limit.</strong>`}</p>
    ${table(
      'What happened and what if',
      [
        ['', ([what]) => what],
        ['What happened', ([, of]) => of(recorded.totals), 'number'],
        ['What if', ([, of]) => of(simulated.totals), 'number'],
      ],
      rows,
      '',
    )}
    <div class="chart" aria-hidden="true" ${ref(drawn((element) => drawLines(element, { times, lines, utc: usesUtc() })))}></div>
    <p class="dim">In the what if, every plan is carried out at once, also where the real one was a dry run or waited: the snapshot after it shows that. Nothing was moved.</p>`;
}

/** A number that people change; empty or as it was: it is not changed. `policy`: whose it is; the column names it. */
function numberField([, label, step, least, most], present, { query, key, change, policy }) {
  const shown = query.get(key) ?? '';
  const input = html`<input type="number" step=${step} min=${least} max=${most ?? nothing} .value=${shown === '' ? String(present ?? '') : shown}
    aria-label=${policy === undefined ? label : `${policy}: ${label}`} @change=${(event) => {
      const { value } = event.target;
      if (event.target.reportValidity()) change(key, value === '' || Number(value) === present ? null : value);
    }}>`;
  return html`<label class=${shown === '' ? '' : 'changed'}>${policy === undefined ? label : ''} ${input}${shown === '' ? '' : html` <small>in force: ${present}</small>`}</label>`;
}

function controls({ decision, input }, query, changes, change) {
  const gated = decision.outcome === 'gated';
  const { policies } = input.snapshot;
  return html`<form @submit=${(event) => event.preventDefault()}>
    <div class="scroll" tabindex="0" role="region" aria-label="Options of the policies"><table class="options">
      <thead><tr><th scope="col">Policy</th>${POLICY_FIELDS.map(([, label]) => html`<th scope="col">${label}</th>`)}</tr></thead>
      <tbody>${policies
        .filter(({ enabled }) => enabled)
        .map(
          (policy) =>
            html`<tr><th scope="row">${policy.name}</th>${POLICY_FIELDS.map((field) => {
              const key = `policy.${policy.name}.${field[0]}`;
              return html`<td>${numberField(field, policy[field[0]], { query, key, change, policy: policy.name })}</td>`;
            })}</tr>`,
        )}</tbody></table></div>
    <div class="tools">${NUMBERS.map((field) => numberField(field, input.options[field[0]], { query, key: `option.${field[0]}`, change }))}</div>
    <div class="tools">${SWITCHES.map(([name, label]) => {
      const present = input.options[name];
      const shown = changes.options[name] ?? present;
      return html`<label class=${shown === present ? '' : 'changed'}><input type="checkbox" .checked=${shown}
        @change=${(event) => change(`option.${name}`, event.target.checked === present ? null : String(event.target.checked))}> ${label}</label>`;
    })}
      <label class=${changes.anyway ? 'changed' : ''}><input type="checkbox" .checked=${changes.anyway}
        @change=${(event) => change('anyway', event.target.checked === gated ? null : String(event.target.checked))}> Plan in spite of a pause, a cooldown or a plan that waits</label></div>
  </form>`;
}

/** The hosts by value: now, with the plan of the options in force, and with that of the changed ones where there are some. */
function skylines(picture, is, would, same) {
  const width = Math.max(200, Math.min(560, (Math.min(innerWidth, 3840) - 130) / 3));
  const small = innerWidth < 700;
  const own = { width: small ? Math.max(240, innerWidth - 60) : width, height: 96 };
  const all = [
    ['Before the plan', []],
    ['With the options in force', same ? would.steps : is.steps],
    ...(same ? [] : [['With the changed options', would.steps]]),
  ].map(([title, steps]) => ({ title, steps, left: ratioAfter(picture, steps) }));
  return picture.policies.flatMap((policy, i) => {
    const shown = all.map(({ steps }) => ({
      policy: policy.policy,
      threshold: policy.threshold,
      values: countedValues(picture, valuesAfter(picture, steps, i)),
    }));
    const scale = Math.max(...shown.map(topOf));
    return policy.participates
      ? [
          html`<h3>${policy.policy} <span class="dim">0 to ${shareText(scale)} of a host</span></h3><div class="compare">${all.map(
            (
              { title, left },
              n,
            ) => html`<figure><figcaption>${title} <strong class="ratio-now ${left.ratios[i] > 1 ? 'over-text' : ''}">${ratioText(left.ratios[i])}</strong></figcaption>
              ${skyline(shown[n], { ...own, scale })}</figure>`,
          )}</div>`,
        ]
      : [];
  });
}

const stepsTable = (name, snapshot, steps) =>
  table(
    'Moves with the changed options',
    [
      ['Step', (s) => s.step, 'number'],
      ['VM', (s) => html`<a href=${link.vm(name, s.serverId, snapshot)}>${s.serverName}</a>`],
      ['From', (s) => html`<a href=${link.host(name, s.from, snapshot)}>${s.from}</a>`],
      ['To', (s) => html`<a href=${link.host(name, s.to, snapshot)}>${s.to}</a>`],
      ['Size', (s) => memoryText(s.ramMb), 'number'],
    ],
    steps,
    '',
  );

function origin({ whole, digest }, { decision }, changes) {
  const searched = whole ? 'Decided in this browser.' : 'From a short search; the whole search goes on …';
  if (!whole || !changesNothing(changes) || changes.anyway || digest === null) return searched;
  return digest === decision.digest
    ? `${searched} It has the digest of the recorded decision.`
    : `${searched} It may differ from the recorded decision of planner version ${decision.plannerVersion}: the digests differ.`;
}

function momentAnswer(data, changes, { answer, error }) {
  const { picture, made } = data;
  if (error !== null) return html`<p class="bad" role="alert">The browser could not decide: ${error}.</p>`;
  if (answer === null) return pending('The moment is decided again in this browser …');
  const { is, would } = answer;
  const ratio = (steps) => (picture.refused === undefined ? ratioAfter(picture, steps).ratio : null);
  const named = (steps) =>
    picture.refused === undefined ? worstText(picture.policies, ratioAfter(picture, steps).ratios) : 'unknown';
  const same = changesNothing(changes);
  const sentence = verdict(
    { steps: is.steps, ratio: ratio(is.steps) },
    { steps: would.steps, ratio: ratio(would.steps), reason: said(would.reason.text) },
  );
  return html`
    <p class="verdict" role="status">${same ? html`<span class="dim">Nothing is changed.</span> ` : ''}${same && would.steps.length > 0 ? `${count(would.steps.length, 'move')}: ${named([])} becomes ${named(would.steps)}.` : sentence}
      ${would.course === undefined ? '' : `${count(would.course.moves, 'move')} in ${count(would.course.cycles, 'cycle')} are left in all.`}</p>
    ${picture.refused === undefined ? skylines(picture, is, would, same) : missing(picture.refused)}
    <p class="dim" data-state=${answer.whole ? 'whole' : 'short'}>${origin(answer, made, changes)} Multiples are of the thresholds in force. A changed threshold counts as if it had been so for long enough. Nothing is moved.</p>`;
}

/** The moves that the changed options make; nothing while they are not known. */
const movesOf = ({ name, made }, { answer }) =>
  answer === null || answer.would.steps.length === 0
    ? ''
    : section('Moves', stepsTable(name, made.decision.snapshotId, answer.would.steps));

/** The moment with other options: what they do comes first, then what can be changed. */
function moment(data, query, { go, redraw }) {
  const { name, series, made, index } = data;
  const goTo = (to) => go(link.whatIf(name, to));
  const time = section('Time', timeBar(series, index === series.times.length - 1 ? null : index, { query, go: goTo }));
  if (made.refused !== undefined) return html`${section('Plan', missing(made.refused))}${time}`;
  if (made.input === null)
    return html`${section('Plan', html`<p class="warn" data-state="gone">The decision cannot be made again: ${made.missing}.</p>`)}${time}`;
  const changes = changesIn(query, made.input, made.decision.outcome === 'gated');
  const change = (field, value) => go(link.whatIf(name, withQuery(query, { [field]: value })));
  const key = JSON.stringify([made.decision.sequence, changes]);
  const answer = answerTo(key, { input: made.input, recorded: made.steps, changes }, redraw);
  return html`${section('Plan', momentAnswer(data, changes, answer))}
    ${section(
      'Options',
      html`${controls(made, query, changes, change)}
        <p class="commands"><button type="button" ?disabled=${changesNothing(changes)} @click=${() => go(link.whatIf(name, at(made.decision.snapshotId)))}>Options in force</button>
          ${changesNothing(changes) ? '' : html`<span class="dim">Nothing is changed by this page. To have them in force: thresholds, weights and moves of a policy in policies.yaml, the rest under [engine] of kronos.conf.</span>`}</p>`,
    )}
    ${time}
    ${movesOf(data, answer)}`;
}

/** The moments that can be chosen, while other options are tried. */
let stay = { name: null, readMs: 0, series: null };
const STAY_MS = 60_000;

/** Other options: for one moment, decided in the browser; and over a recorded range, beside what happened. */
export const whatIf = {
  title: ({ name }) => `What if: ${name}`,
  concerns: () => false,
  /** A newer cycle does not take away the moment that is asked about. */
  still: true,
  async load({ name }, query) {
    const base = `/aggregates/${encodeURIComponent(name)}`;
    const asked = query.get('snapshot');
    const has = stay.name === name && (asked === null || stay.series.snapshotIds.includes(asked));
    if (!has || Date.now() - stay.readMs > STAY_MS)
      stay = { name, readMs: Date.now(), series: await read(`${base}/imbalance${near(asked)}`) };
    const { series } = stay;
    const snapshot = asked ?? series.snapshotIds.at(-1) ?? null;
    const [made, picture] =
      snapshot === null
        ? [null, null]
        : await Promise.all([
            recordedDecision(`${base}/decision${at(snapshot)}`),
            recorded(`${base}/picture${at(snapshot)}`),
          ]);
    return { name, series, made, picture, index: series.snapshotIds.indexOf(snapshot) };
  },
  async late({ name }, { query }) {
    if (!query.has('since')) return null;
    const asked = new URLSearchParams(query.getAll('set').map((set) => ['set', set]));
    for (const field of ['since', 'until']) if (query.has(field)) asked.set(field, query.get(field));
    return await answerOf(`/aggregates/${encodeURIComponent(name)}/what-if?${asked}`);
  },
  show: (data, { go, late, redraw, query }) => {
    const { name, made } = data;
    return html`
    <h1>What if: <a href=${link.aggregate(name)}>${name}</a></h1>
    ${made === null ? html`<p class="dim">Nothing was decided yet.</p>` : moment(data, query, { go, redraw })}
    ${section(
      'Recorded range',
      html`${form(name, query, go)}<p class="dim">Decides every snapshot of the last hours again, with other options beside what happened. Options are written as in kronos.conf, with their section: engine.cooldown=0.</p>`,
    )}
    ${query.has('since') ? section('Answer', outcome(late)) : ''}`;
  },
};
