import { read } from '../api.js';
import { byHand, releaseCommand } from '../commands.js';
import { html } from '../lib/lit-html.js';
import { count, link, named, section, table, when } from '../parts.js';
import { person } from '../session.js';

const aggregateLink = ({ aggregate }) => html`<a href=${link.aggregate(aggregate)}>${aggregate}</a>`;
const vmLink = ({ aggregate, serverId, serverName }) =>
  named(serverName ?? serverId, serverId, link.vm(aggregate, serverId));
const causes = { released: 'a plan was released', rejected: 'a plan was rejected', expired: 'a plan expired' };

/** VMs and aggregates that Kronos does not move, and until when: quarantines and cooldowns. */
export const held = {
  title: () => 'Held',
  concerns: () => true,
  async load() {
    const [{ quarantine }, cooldowns] = await Promise.all([read('/quarantine'), read('/cooldowns')]);
    return { quarantine, cooldowns };
  },
  show: ({ quarantine, cooldowns: { aggregates, hosts, vms, total } }) => html`
    <h1>Held: what Kronos does not move now</h1>
    ${section(
      'Quarantine',
      html`${table(
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
        'No VM is in quarantine.',
      )}${quarantine.length === 0 ? '' : byHand('kronos quarantine release VM')}`,
    )}
    ${section(
      'Cooldown of VMs',
      html`${table(
        'Cooldown of VMs',
        [
          ['VM', vmLink],
          ['Aggregate', aggregateLink],
          ['Until', (c) => when(c.until), 'when'],
        ],
        vms,
        'No VM cools down.',
      )}${total > vms.length ? html`<p class="dim">${count(total - vms.length, 'more VM')}.</p>` : ''}`,
    )}
    ${section(
      'Cooldown of aggregates',
      table(
        'Cooldown of aggregates',
        [
          ['Aggregate', aggregateLink],
          ['Why', (c) => causes[c.cause]],
          ['Since', (c) => when(c.since), 'when'],
          ['Until', (c) => when(c.until), 'when'],
        ],
        aggregates,
        'No aggregate cools down.',
      ),
    )}
    ${section(
      'Hosts out as destinations',
      table(
        'Hosts out as destinations',
        [
          ['Host', (h) => html`<a href=${link.host(h.aggregate, h.host)}>${h.host}</a>`],
          ['Aggregate', aggregateLink],
          ['Until', (h) => when(h.until), 'when'],
        ],
        hosts,
        'No host is out because of failed moves. A disabled or draining host takes no VM either.',
      ),
    )}`,
};
