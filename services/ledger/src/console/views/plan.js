import { read, tryRead } from '../api.js';
import { planCommands } from '../commands.js';
import { bound, dependencies } from '../graph.js';
import { html } from '../lib/lit-html.js';
import {
  clockTime,
  count,
  eventsTable,
  facts,
  figure,
  figures,
  heat,
  heatWords,
  link,
  missing,
  named,
  said,
  section,
  table,
  when,
} from '../parts.js';

/** How a task ended, by its last event; a task that is over has left the state. */
const ENDS = new Set(['migration.completed', 'migration.failed', 'migration.skipped']);
const statusOf = (taskId, tasks, events) =>
  tasks.find(({ id }) => id === taskId)?.status ??
  events.findLast((event) => event.taskId === taskId && ENDS.has(event.type))?.type.replace('migration.', '') ??
  '';

const steps = ({ aggregate, data }, tasks, events) =>
  table(
    'Steps',
    [
      ['Step', (s) => s.step, 'number'],
      ['VM', (s) => named(s.serverName, s.serverId, link.vm(aggregate, s.serverId))],
      ['From', (s) => html`<a href=${link.host(aggregate, s.from)}>${s.from}</a>`],
      ['To', (s) => html`<a href=${link.host(aggregate, s.to)}>${s.to}</a>${s.parking ? ' (parking)' : ''}`],
      ['Phase', (s) => s.phase],
      [
        'Why',
        (s) =>
          s.why === undefined
            ? html`<span class="dim">the details are no longer kept</span>`
            : html`${s.why.text} <span class="dim">${figures(s.why.detail)}</span>`,
      ],
      ['After', (s) => s.dependsOn.map((id) => id.replace(/^.*-s/, 'step ')).join(', ')],
      ['Status', (s) => statusOf(s.taskId, tasks, events)],
    ],
    data.plan.steps,
    'No step.',
  );

function effect({ aggregate, policies, hosts }) {
  const scale = policies.map(({ threshold }, i) => {
    const values = hosts.flatMap(({ before, after }) => [before[i], after[i]]).filter((value) => value !== null);
    return { threshold, lowest: values.length === 0 ? null : Math.min(...values), highest: Math.max(...values) };
  });
  const cell = (value, i) => {
    const kind = heat(value, scale[i]);
    return html`<td class="number cell ${kind}" title=${heatWords(kind)}>${figure(value)}</td>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Hosts before and after"><table class="heat">
    <thead><tr><th scope="col">Host</th><th scope="col" class="number">VMs</th>
      ${policies.map(({ policy }) => html`<th scope="col" class="number">${policy} before</th><th scope="col" class="number">after</th>`)}</tr></thead>
    <tbody>${hosts.map(
      (host) => html`<tr><th scope="row"><a href=${link.host(aggregate, host.name)}>${host.name}</a></th>
        <td class="number">${host.vmsBefore} → ${host.vmsAfter}</td>
        ${policies.map((_, i) => html`${cell(host.before[i], i)}${cell(host.after[i], i)}`)}</tr>`,
    )}</tbody></table></div>`;
}

const share = (value) => (value === null ? 'unknown' : `${Math.round(value * 100)} %`);

/** One plan: what it changes, its steps with their reasons, what was refused. */
export const plan = {
  title: ({ id }) => `Plan ${id}`,
  concerns: (_, __, data) => data.page.plan?.endedAt === null,
  async load({ id }, query) {
    const sequence = query.get('sequence') === null ? '' : `?sequence=${query.get('sequence')}`;
    const path = `/plans/${encodeURIComponent(id)}`;
    const [page, hosts] = await Promise.all([read(`${path}${sequence}`), tryRead(`${path}/hosts${sequence}`)]);
    return { id, page, hosts };
  },
  show({ id, page, hosts }) {
    const { plan: known, decision, tasks, refused, events } = page;
    const made = decision?.data.plan ?? null;
    return html`
      <h1>Plan of ${decision === null ? id : clockTime(decision.data.snapshotTime)}</h1>
      ${section(
        'Summary',
        html`<p>${decision === null ? 'Its decision is no longer in memory.' : said(decision.data.reason.text)}</p>
        ${facts([
          [
            'Aggregate',
            html`<a href=${link.aggregate(decision?.aggregate ?? known.aggregate)}>${decision?.aggregate ?? known.aggregate}</a>`,
          ],
          ['State', known?.state ?? decision?.data.release ?? 'unknown'],
          ...(known === null
            ? []
            : [
                [
                  'Moves',
                  `${known.completed} of ${known.steps} completed, ${known.failed} failed, ${known.skipped} skipped`,
                ],
              ]),
          ...(known?.expiresAt == null ? [] : [['Expires', when(known.expiresAt)]]),
          ...(known?.approvedBy == null ? [] : [['Approved by', known.approvedBy]]),
          ...(made === null
            ? []
            : [
                ['Combined imbalance', `${figure(decision.data.before.combined)} → ${figure(made.after.combined)}`],
                ['No plan can be below', figure(made.lowerBound)],
                ['Share of what is possible', share(made.shareOfPossible)],
                ['Planner', `${made.planner}, ${count(made.candidatesEvaluated, 'candidate')}, budget ${made.budget}`],
              ]),
          ['Plan id', html`<code>${id}</code>`],
        ])}
        ${made === null ? '' : bound(decision.data.before.combined, made.after.combined, made.lowerBound)}
        ${known?.state === 'proposed' ? planCommands(id) : ''}`,
      )}
      ${section('Hosts before and after', hosts.refused === undefined ? effect(hosts) : missing(hosts.refused))}
      ${made === null ? '' : section('Steps', steps(decision, tasks, events))}
      ${made === null ? '' : section('Dependencies', dependencies(made.steps))}
      ${
        decision === null
          ? ''
          : section(
              'Refused',
              table(
                'Refused',
                [
                  ['Why', ({ text, code }) => html`${text} <code class="dim">${code}</code>`],
                  ['Candidates', ({ candidates }) => candidates, 'number'],
                ],
                refused,
                'No candidate was refused.',
              ),
            )
      }
      ${section('Events', eventsTable(events))}`;
  },
};
