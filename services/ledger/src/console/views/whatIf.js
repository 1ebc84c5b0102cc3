import { read, readOrRefused } from '../api.js';
import { drawLines, drawn } from '../chart.js';
import { ref } from '../lib/directives/ref.js';
import { html } from '../lib/lit-html.js';
import { clockTime, count, figure, link, missing, pending, section, table, usesUtc } from '../parts.js';

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
    const wanted = new URLSearchParams({
      since: new Date(now - hours * HOUR_MS).toISOString(),
      until: new Date(now).toISOString(),
      hours,
    });
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
    <div class="chart" aria-hidden="true" ${ref(drawn((element) => drawLines(element, times, lines, usesUtc())))}></div>
    <p class="dim">Every plan is carried out at once, also where the real one was a dry run or waited for approval. Nothing was moved.</p>`;
}

/** Changed options over a recorded range, beside what happened. */
export const whatIf = {
  title: ({ name }) => `What if: ${name}`,
  concerns: () => false,
  async load({ name }, query) {
    await read(`/aggregates/${encodeURIComponent(name)}`);
    return { name, query };
  },
  async late({ name }, { query }) {
    if (!query.has('since')) return null;
    const asked = new URLSearchParams(query);
    asked.delete('hours');
    return await answerOf(`/aggregates/${encodeURIComponent(name)}/what-if?${asked}`);
  },
  show: ({ name, query }, { go, late }) => html`
    <h1>What if: <a href=${link.aggregate(name)}>${name}</a></h1>
    ${section('Question', form(name, query, go))}
    ${query.has('since') ? section('Answer', outcome(late)) : ''}`,
};
