import { read, tryRead } from '../api.js';
import { byHand, drainCommand, undrainCommand } from '../commands.js';
import { isAbout } from '../concerns.js';
import { repeat } from '../lib/directives/repeat.js';
import { html } from '../lib/lit-html.js';
import { link, missing, section, serviceText, table } from '../parts.js';
import { person } from '../session.js';
import { count } from '../words.js';

/** Chooses the hosts. The address of the next page names them all: nothing is kept elsewhere. */
function chooser({ page, hosts }, { view, choose }) {
  if (hosts.refused !== undefined) return missing(hosts.refused);
  const chosen = { hosts: [], rolling: false, parallel: 1, ...view };
  const has = (name) => chosen.hosts.includes(name);
  const toggle = (name) =>
    choose({ ...chosen, hosts: has(name) ? chosen.hosts.filter((one) => one !== name) : [...chosen.hosts, name] });
  const start = (event) => {
    event.preventDefault();
    const query = new URLSearchParams(chosen.hosts.map((name) => ['host', name]));
    query.set('since', page.sequence);
    query.set('parallel', chosen.rolling ? 1 : chosen.parallel);
    query.set('rolling', chosen.rolling);
    location.hash = link.drains(page.name, `?${query}`);
  };
  return html`<form @submit=${start}>
    <div class="tools">
      <label>Order <select @change=${(e) => choose({ ...chosen, rolling: e.target.value === 'rolling' })}>
        <option value="parallel">empty them, leave them disabled</option>
        <option value="rolling" ?selected=${chosen.rolling}>rolling maintenance: enable each before the next</option>
      </select></label>
      ${
        chosen.rolling
          ? ''
          : html`<label>Hosts at the same time <input type="number" min="1" max="50" required .value=${String(chosen.parallel)}
              @change=${(e) => e.target.reportValidity() && choose({ ...chosen, parallel: Number(e.target.value) })}></label>`
      }
    </div>
    <div class="scroll" tabindex="0" role="region" aria-label="Hosts to choose"><table>
      <thead><tr><th scope="col">Host</th><th scope="col">Service</th><th scope="col" class="number">VMs</th></tr></thead>
      <tbody>${repeat(
        hosts.hosts,
        ({ name }) => name,
        ({ name, service, vms }) => html`<tr>
          <td><label><input type="checkbox" .checked=${has(name)} @change=${() => toggle(name)}> ${name}</label></td>
          <td>${serviceText(service)}</td><td class="number">${vms}</td></tr>`,
      )}</tbody></table></div>
    <p class="dim">${chosen.hosts.length === 0 ? 'Choose hosts in the order of their drains.' : `Order: ${chosen.hosts.join(', ')}.`}
      Nothing is drained yet: you confirm each drain on the next page.</p>
    <p class="commands"><button type="submit" ?disabled=${chosen.hosts.length === 0 || chosen.hosts.length > 50}>Continue with ${count(chosen.hosts.length, 'host')}</button></p>
  </form>`;
}

/** The hosts that may be drained beside the next one. */
function besides({ hosts, next: { host } }, parallel) {
  const under = hosts.filter(({ state }) => !['todo', 'over'].includes(state)).length;
  const waiting = hosts.filter((one) => one.state === 'todo' && one.host !== host).map((one) => one.host);
  const room = Math.max(0, parallel - under - 1);
  return waiting.length === 0
    ? ''
    : room === 0
      ? html` <span class="dim">${waiting[0]} follows when a host is empty.</span>`
      : html` <span class="dim">Beside it, ${waiting.slice(0, room).join(', ')} may follow at once.</span>`;
}

/** The next act, and the button for it. */
function next(run, name, { rolling, parallel }) {
  const { act, host, problem } = run.next;
  switch (act) {
    case 'drain':
      return html`<p>Drain <a href=${link.host(name, host)}>${host}</a> next.${besides(run, parallel)}</p>${byHand(`kronos drain ${host}`)}${drainCommand(name, host)}`;
    case 'maintain':
      return html`<p>${host} is empty. Do its maintenance, then end its drain: the next host follows when ${host} is enabled.</p>${byHand(`kronos undrain ${host}`)}${undrainCommand(host, host)}`;
    case 'wait':
      return html`<p class="dim">Wait: the next host follows when ${rolling ? 'this one is enabled' : 'a host is empty'}.</p>`;
    default:
      return problem === null
        ? html`<p class="good">${rolling ? 'Every host had its maintenance.' : 'Every host is empty, or its drain has ended.'}</p>`
        : html`<p class="bad">The run has stopped: ${problem}.</p><p><a href=${link.drains(name)}>Choose hosts again</a></p>`;
  }
}

/** Drains of the aggregate that are not of the run: they take VMs away, too. */
function otherDrains({ drains }, run, name) {
  const others = drains.filter(({ host }) => run.hosts.every((one) => one.host !== host));
  return others.length === 0
    ? ''
    : html`<p>Not of this run: ${others.map(({ host, text }, i) => html`${i === 0 ? '' : '; '}<a href=${link.host(name, host)}>${host}</a> is drained (${text})`)}.</p>`;
}

const progress = (run, name, seen) =>
  table(
    'Hosts of the run',
    [
      ['Host', ({ host }) => html`<a href=${link.host(name, host)}>${host}</a>`],
      ['VMs', ({ host }) => seen.get(host)?.vms ?? '', 'number'],
      ['Service', ({ host }) => (seen.has(host) ? serviceText(seen.get(host).service) : '')],
      [
        'Drain',
        ({ state, text }) =>
          html`<span class=${state === 'stuck' ? 'bad' : state === 'drained' ? 'good' : ''}>${text}</span>`,
      ],
      ...(person() === null
        ? []
        : [
            [
              'Commands',
              ({ host, state }) =>
                host === run.next.host || ['todo', 'over', 'ending'].includes(state) ? '' : undrainCommand(host, host),
            ],
          ]),
    ],
    run.hosts,
    'No host.',
  );

/** Rolling maintenance: which hosts, how many at the same time, how far each is, and what is next. */
export const drains = {
  title: ({ name }) => `Rolling maintenance: ${name}`,
  concerns: (change, { name }) => isAbout(change, name),
  async load({ name }, query) {
    const base = `/aggregates/${encodeURIComponent(name)}`;
    const [run, page, hosts] = await Promise.all([
      query.has('host') ? read(`${base}/drains?${query}`) : undefined,
      read(base),
      tryRead(`${base}/hosts`),
    ]);
    return { name, query, run, page, hosts };
  },
  show({ name, query, run, page, hosts }, how) {
    const rolling = query.get('rolling') === 'true';
    const parallel = Number(query.get('parallel') ?? 1);
    const seen = new Map((hosts.hosts ?? []).map((host) => [host.name, host]));
    return html`
      <h1>Rolling maintenance: <a href=${link.aggregate(name)}>${name}</a></h1>
      ${
        run === undefined
          ? section('Hosts', chooser({ page, hosts }, how))
          : html`${section('Next', next(run, name, { rolling, parallel }))}
            ${section('Hosts', html`${progress(run, name, seen)}${otherDrains(page, run, name)}`)}
            <p class="dim">${
              rolling
                ? 'Rolling maintenance: one host at a time, enabled before the next.'
                : `At most ${count(parallel, 'host')} at the same time.`
            }
              You confirm each drain. You can close this page: drains go on without it, and its address shows the run again.</p>`
      }`;
  },
};
