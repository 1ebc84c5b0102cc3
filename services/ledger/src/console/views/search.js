import { read } from '../api.js';
import { html } from '../lib/lit-html.js';
import { link, section, table, when } from '../parts.js';
import { address, kinds } from '../results.js';
import { count } from '../words.js';

const results = ({ query, results: rows }) =>
  table(
    'Results',
    [
      ['Name', (r) => html`<a href=${address(r)}>${r.name}</a>`],
      ['What', (r) => kinds[r.kind]],
      [
        'Aggregate',
        (r) => (r.aggregate === null ? '' : html`<a href=${link.aggregate(r.aggregate)}>${r.aggregate}</a>`),
      ],
      [
        'Host',
        (r) =>
          r.kind === 'vm' || r.kind === 'task' ? html`<a href=${link.host(r.aggregate, r.host)}>${r.host}</a>` : '',
      ],
      ['Id', (r) => (r.id === r.name ? '' : html`<code>${r.id}</code>`)],
    ],
    rows,
    `Nothing has a name or an id that contains “${query}”.`,
  );

/** The search by name or id. */
export const search = {
  title: () => 'Search',
  concerns: () => false,
  load(_, query) {
    const text = query.get('q') ?? '';
    const field = document.querySelector('#search input');
    if (document.activeElement !== field) field.value = text;
    return read(`/search?limit=100&q=${encodeURIComponent(text)}`);
  },
  show: (found) => html`
    <h1>Search: ${found.query}</h1>
    ${section(
      'Results',
      html`<p role="status">${count(found.total, 'result')}${found.total > found.results.length ? `; the best ${found.results.length} are shown` : ''}.</p>
        ${results(found)}
        <p class="dim">${
          found.namesSince === null
            ? 'No snapshot is kept yet: hosts and VMs cannot be found.'
            : html`Hosts and VMs are those of the newest snapshots, the oldest of which is of ${when(found.namesSince)}. Older plans: <code>kronos plans --since all</code>.`
        }</p>`,
    )}`,
};
