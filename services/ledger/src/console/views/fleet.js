import { read } from '../api.js';
import { fleetCommands } from '../commands.js';
import { html } from '../lib/lit-html.js';
import { count, figure, link, moves, section, standing, table, when } from '../parts.js';

const alarmLine = ({ severity, about, text, remedy, runbook, explains }) => html`
  <li class=${severity === 'alarm' ? 'bad' : 'dim'}>
    <strong>${about}</strong>: ${text}${explains.length === 0 ? '' : ` (explains ${explains.length} more)`}
    <span class="dim">${remedy} <a href=${link.runbook(runbook.replace(/^.*#/, ''))}>Runbook</a></span>
  </li>`;

const policyText = ({ policy, imbalance, threshold, detected }) =>
  html`<span class=${detected ? 'warn' : ''}>${policy} ${figure(imbalance)} of ${threshold}</span> `;

/** Every aggregate, the alarms, and what moves now. */
export const fleet = {
  title: () => 'Fleet',
  concerns: () => true,
  load: async () => {
    const [{ aggregates }, alarms, tasks] = await Promise.all([
      read('/aggregates'),
      read('/alarms'),
      read('/tasks?limit=50'),
    ]);
    return { aggregates, alarms, tasks };
  },
  show: ({ aggregates, alarms, tasks }) => html`
    <h1>Fleet</h1>
    ${section('Alarms', alarms.alarms.length === 0 ? html`<p class="good">No alarm.</p>` : html`<ul class="alarms">${alarms.alarms.map(alarmLine)}</ul>`)}
    ${section(
      'Aggregates',
      html`${table(
        'Aggregates',
        [
          ['Aggregate', (a) => html`<a href=${link.aggregate(a.name)}>${a.name}</a>`],
          ['Doing', (a) => standing(a.standing)],
          ['Combined imbalance', (a) => figure(a.lastDecision?.combined), 'number'],
          ['Policies', (a) => a.lastDecision?.policies.map(policyText) ?? ''],
          ['Moves', (a) => a.movesInFlight, 'number'],
          ['In quarantine', (a) => a.quarantined, 'number'],
          ['Last decision', (a) => (a.lastDecision === null ? 'none' : when(a.lastDecision.time)), 'when'],
        ],
        aggregates,
        'No aggregate yet: name them in [engine] aggregates.',
      )}${fleetCommands()}`,
    )}
    ${section(
      'Moving now',
      html`${moves(tasks.tasks, ({ aggregate }) => aggregate)}
        ${tasks.total > tasks.tasks.length ? html`<p class="dim">${count(tasks.total - tasks.tasks.length, 'more task')}.</p>` : ''}`,
    )}`,
};
