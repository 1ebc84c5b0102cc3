/** One row per host, one column per policy; colours say where a value is in the threshold band. */
import { repeat } from './lib/directives/repeat.js';
import { html } from './lib/lit-html.js';
import { heat, heatWords, link, ratioText, serviceText } from './parts.js';
import { counts, ratioOf } from './ratio.js';
import { shareText } from './words.js';

/**
 * @param view what the person chose: `{ filter, sort }`, sort by the index of a policy or by name (-1)
 * @param past the snapshot is a recorded one: its hosts are shown at that moment too
 */
export function heatmap({ aggregate, policies, hosts, snapshot }, view, choose, past) {
  const text = view.filter.toLowerCase();
  const rows = hosts.filter(({ name }) => name.toLowerCase().includes(text));
  if (view.sort >= 0) rows.sort((a, b) => (b.values[view.sort] ?? -1) - (a.values[view.sort] ?? -1));
  return html`
    <div class="tools">
      <label>Filter <input type="search" .value=${view.filter} @input=${(e) => choose({ ...view, filter: e.target.value })}></label>
      <label>Order <select @change=${(e) => choose({ ...view, sort: Number(e.target.value) })}>
        <option value="-1">by name</option>
        ${policies.map(({ policy }, i) => html`<option value=${i} ?selected=${view.sort === i}>by ${policy}</option>`)}
      </select></label>
      <span class="dim" role="status">${rows.length} of ${hosts.length} hosts</span>
    </div>
    <p class="legend" aria-hidden="true">
      ${['cold-3', 'cold-2', 'cold-1', 'even', 'warm-1', 'warm-2', 'warm-3'].map(
        (kind) => html`<span><span class="swatch ${kind}"></span> ${heatWords(kind)}</span>`,
      )}
    </p>
    <div class="scroll" tabindex="0" role="region" aria-label="Heat map"><table class="heat">
      <thead><tr>
        <th scope="col">Host</th><th scope="col">Service</th><th scope="col" class="number">VMs</th>
        ${policies.map(
          (p) => html`<th scope="col" class="number">${p.policy}
            <small>${p.participates ? `${ratioText(ratioOf(p))}: ${shareText(p.imbalance, 1)} apart, allowed ${shareText(p.threshold)}` : (p.reason?.text ?? 'skipped')}</small></th>`,
        )}
      </tr></thead>
      <tbody>${repeat(
        rows,
        ({ name }) => name,
        (host) => html`<tr>
          <th scope="row"><a href=${link.host(aggregate, host.name, past ? snapshot.id : undefined)}>${host.name}</a></th>
          <td class=${counts(host) ? '' : 'warn'}>${serviceText(host.service)}</td>
          <td class="number">${host.vms}</td>
          ${policies.map((policy, i) => {
            const kind = heat(host.values[i], policy);
            return html`<td class="number cell ${kind}" title=${heatWords(kind)}>${shareText(host.values[i], 1)}</td>`;
          })}
        </tr>`,
      )}</tbody>
    </table></div>`;
}
