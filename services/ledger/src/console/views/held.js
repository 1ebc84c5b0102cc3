import { read } from '../api.js';
import { byHand, releaseCommand } from '../commands.js';
import { html } from '../lib/lit-html.js';
import { link, named, pauseOf, section, table, when } from '../parts.js';
import { person } from '../session.js';
import { count } from '../words.js';

const aggregateLink = ({ aggregate }) => html`<a href=${link.aggregate(aggregate)}>${aggregate}</a>`;
const vmLink = ({ aggregate, serverId, serverName }) =>
  named(serverName ?? serverId, serverId, link.vm(aggregate, serverId));
const causes = { released: 'a plan was released', rejected: 'a plan was rejected', expired: 'a plan expired' };

/** A part that has rows; without one, `nothingElse` says so. */
const part = (title, columns, rows, after = '') =>
  rows.length === 0 ? '' : section(title, html`${table(title, columns, rows, '')}${after}`);

/** VMs that cool down, by their aggregates. */
const byAggregate = (vms) =>
  [...Map.groupBy(vms, ({ aggregate }) => aggregate)].map(([aggregate, own]) => ({ aggregate, vms: own }));

/** More names than these are behind a fold. */
const NAMES = 6;
const listed = (vms) => vms.map((vm) => html`<span class="listed">${vmLink(vm)}</span> `);
const namesOf = ({ vms }) =>
  vms.length <= NAMES
    ? listed(vms)
    : html`${listed(vms.slice(0, NAMES))}<details><summary>${count(vms.length - NAMES, 'more VM')}</summary>${listed(vms.slice(NAMES))}</details>`;

/** When it may move again, or the last of them. */
function untilOf({ vms }) {
  const last = vms
    .map(({ until }) => until)
    .toSorted()
    .at(-1);
  return vms.length === 1 ? when(last) : html`the last ${when(last)}`;
}

/** The kinds of holds that hold nothing now, in one line. */
function nothingElse({ quarantine, paused, vms, aggregates, hosts }) {
  const none = [
    [paused, 'No aggregate is paused.'],
    [quarantine, 'No VM is in quarantine.'],
    [vms, 'No VM cools down.'],
    [aggregates, 'No aggregate cools down.'],
    [hosts, 'No host is out because of failed moves.'],
  ].flatMap(([rows, text]) => (rows.length === 0 ? [text] : []));
  return html`<p class="dim">${none.join(' ')} A disabled or draining host takes no VM either.</p>`;
}

/** VMs, hosts and aggregates that Kronos plans no move of, and until when: pauses, quarantines and cooldowns. */
export const held = {
  title: () => 'Held',
  concerns: () => true,
  async load() {
    const [{ quarantine }, cooldowns, all] = await Promise.all([
      read('/quarantine'),
      read('/cooldowns'),
      read('/aggregates'),
    ]);
    return { quarantine, cooldowns, paused: all.aggregates.filter((one) => pauseOf(one) !== null) };
  },
  show: ({ quarantine, paused, cooldowns: { aggregates, hosts, vms, total } }) => html`
    <h1>Held: what Kronos plans no moves of now</h1>
    ${part(
      'Paused aggregates',
      [
        ['Aggregate', ({ name }) => aggregateLink({ aggregate: name })],
        ['Why', (a) => pauseOf(a).comment ?? ''],
        ['By', (a) => pauseOf(a).by],
        ['Since', (a) => when(pauseOf(a).at), 'when'],
        ['Until', () => 'it is resumed'],
      ],
      paused,
    )}
    ${part(
      'Quarantine',
      [
        ['VM', vmLink],
        ['Aggregate', aggregateLink],
        ['Why', (q) => q.text],
        ['By', (q) => q.by],
        ['Since', (q) => when(q.since), 'when'],
        ['Until', (q) => (q.until === null ? 'it is released' : when(q.until)), 'when'],
        ...(person() === null ? [] : [['Commands', (q) => releaseCommand(q.serverId, q.serverName ?? q.serverId)]]),
      ],
      quarantine,
      byHand('kronos quarantine release VM'),
    )}
    ${part(
      'Cooldown of VMs',
      [
        ['Aggregate', aggregateLink],
        ['VMs', ({ vms: own }) => own.length, 'number'],
        ['Names', namesOf],
        ['Until', untilOf, 'when'],
      ],
      byAggregate(vms),
      html`${total > vms.length ? html`<p class="dim">${count(total - vms.length, 'more VM')}.</p>` : ''}
        <p class="dim">No new plan moves them. The moves of a plan that is released go on.</p>`,
    )}
    ${part(
      'Cooldown of aggregates',
      [
        ['Aggregate', aggregateLink],
        ['Why', (c) => causes[c.cause]],
        ['Since', (c) => when(c.since), 'when'],
        ['Until', (c) => when(c.until), 'when'],
      ],
      aggregates,
    )}
    ${part(
      'Hosts out as destinations',
      [
        ['Host', (h) => html`<a href=${link.host(h.aggregate, h.host)}>${h.host}</a>`],
        ['Aggregate', aggregateLink],
        ['Until', (h) => when(h.until), 'when'],
      ],
      hosts,
    )}
    ${nothingElse({ quarantine, paused, vms, aggregates, hosts })}`,
};
