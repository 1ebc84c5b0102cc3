import { tryRead } from '../api.js';
import { html } from '../lib/lit-html.js';
import { eventsTable, facts, figure, link, missing, moves, named, section, when } from '../parts.js';
import { host } from './host.js';

/** One VM: where it is, what holds it there, what happened to it. */
export const vm = {
  title: ({ id }) => `VM ${id}`,
  concerns: host.concerns,
  async load({ name, id }) {
    const [vms, log] = await Promise.all([
      tryRead(`/aggregates/${encodeURIComponent(name)}/vms?id=${encodeURIComponent(id)}`),
      tryRead(`/vms/${encodeURIComponent(id)}`),
    ]);
    return { name, id, vms, log };
  },
  show({ name, id, vms, log }) {
    const [seen] = vms.vms ?? [];
    const known = log.aggregates?.find((one) => one.aggregate === name);
    const said = known?.moves[0]?.serverName;
    return html`
      <h1>${seen?.name ?? said ?? id}</h1>
      <p><a href=${link.aggregate(name)}>${name}</a> ${named('uuid', id)} <code>${id}</code></p>
      ${section(
        'Now',
        seen === undefined
          ? vms.refused === undefined
            ? html`<p class="dim" data-state="missing">The newest snapshot of ${name} has no such VM.</p>`
            : missing(vms.refused)
          : facts([
              ['Host', html`<a href=${link.host(name, seen.host)}>${seen.host}</a>`],
              ['Status', seen.taskState === null ? seen.status : `${seen.status}, ${seen.taskState}`],
              ['Flavor', `${seen.flavor ?? 'unknown'}: ${seen.vcpus} vCPUs, ${seen.ramMb} MiB, ${seen.diskGb} GiB`],
              ...vms.policies.map((policy, i) => [policy, figure(seen.values[i])]),
            ]),
      )}
      ${section(
        'What holds it',
        facts([
          [
            'Quarantine',
            known?.quarantine == null
              ? 'none'
              : html`${known.quarantine.text} until ${known.quarantine.until === null ? 'it is released' : when(known.quarantine.until)}`,
          ],
          ['Cooling down until', known?.coolingDownUntil == null ? 'not cooling down' : when(known.coolingDownUntil)],
          ['Excluded by', seen?.optedOutBy ?? 'nothing'],
          ['Locked', seen === undefined ? 'unknown' : seen.locked ? 'yes' : 'no'],
          [
            'Last failure',
            known?.lastFailure == null
              ? 'none'
              : html`${known.lastFailure.errorType}: ${known.lastFailure.text} ${when(known.lastFailure.at)}`,
          ],
        ]),
      )}
      ${section(
        'Moves',
        moves(known?.moves ?? [], () => name, 'No move that is not forgotten.'),
      )}
      ${section('Recent events', log.refused === undefined ? eventsTable(log.events) : html`<p class="dim">The log says nothing recent about it.</p>`)}`;
  },
};
