import { nowMs, read } from '../api.js';
import { stillWaits } from '../approval.js';
import { planCommands } from '../commands.js';
import { html } from '../lib/lit-html.js';
import { link, section, table, when } from '../parts.js';
import { person } from '../session.js';
import { count, othersText } from '../words.js';

const columns = [
  ['Aggregate', (p) => html`<a href=${link.aggregate(p.aggregate)}>${p.aggregate}</a>`],
  ['Plan', (p) => html`<a href=${link.plan(p.id, p.sequence)}>${count(p.steps, 'move')}</a>`],
  ['State', (p) => p.state],
  ['Decided', (p) => when(p.decidedAt), 'when'],
  ['Moves', (p) => `${p.completed} completed${othersText(p)}`],
];

/** Every plan that waits, runs, or ended recently. */
export const plans = {
  title: () => 'Plans',
  concerns: () => true,
  load: () => read('/plans?limit=200'),
  show({ plans: all }) {
    const waiting = all.filter(({ state }) => state === 'proposed');
    const running = all.filter(({ state }) => state === 'released');
    const over = all.filter(({ endedAt }) => endedAt !== null);
    return html`
      <h1>Plans</h1>
      ${section(
        'Waiting for approval',
        table(
          'Waiting for approval',
          [
            ...columns.slice(0, 2),
            ['Decided', (p) => when(p.decidedAt), 'when'],
            [
              'Expires',
              (p) => (stillWaits(p, nowMs()) ? when(p.expiresAt) : html`expired ${when(p.expiresAt)}`),
              'when',
            ],
            ...(person() === null ? [] : [['Commands', (p) => (stillWaits(p, nowMs()) ? planCommands(p.id) : '')]]),
          ],
          waiting,
          'No plan waits for approval.',
        ),
      )}
      ${section('Under way', table('Under way', columns, running, 'No plan is under way.'))}
      ${section('Ended', table('Ended', [...columns, ['Ended', (p) => when(p.endedAt), 'when']], over, 'No plan has ended recently.'))}
      <p class="dim">Older plans, and those of a dry run: <code>kronos plans --since all</code>.</p>`;
  },
};
