/**
 * The hosts of an aggregate with their VMs as blocks: as columns or as rows. A block's size is the VM's share of the measured value of
 * its host. VMs that a plan moves are violet; where they would go, there is a dashed ghost, and an arc leads there.
 */
import { repeat } from './lib/directives/repeat.js';
import { html, svg } from './lib/lit-html.js';
import { closedBy, count, figure, link, serviceText } from './parts.js';
import { countedValues, counts, valuesAfter } from './ratio.js';
import { bandOf, sideOf } from './skyline.js';

/** More arcs hide the hosts. */
const MOST_ARCS = 12;
const PLOT = { columns: 300, top: 26, foot: 40 };
/** Room for the numbers at the edges of the band. */
const EDGES = 34;
const ROW = 22;
const ROW_LABELS = 112;

/** Steps of a plan by VM. */
const byVm = (steps) => new Map(steps.map((step) => [step.serverId, step]));

/** Per host its VMs, those of the plan where they are or would be. */
function residents({ hosts, vms }, policy, steps, withPlan) {
  const moving = byVm(steps);
  const index = new Map(hosts.map((host, i) => [host.name, i]));
  const of = hosts.map(() => []);
  vms.ids.forEach((id, i) => {
    const step = moving.get(id);
    const at = withPlan && step !== undefined ? (index.get(step.to) ?? vms.hosts[i]) : vms.hosts[i];
    of[at]?.push({ id, name: vms.names[i], weight: vms.weights[policy]?.[i] ?? 0, step });
  });
  return of;
}

/** Blocks of a host from its foot: each VM's share of the measured value. */
function stacked(own, value) {
  const sum = own.reduce((total, { weight }) => total + weight, 0);
  let offset = 0;
  return own
    .toSorted((a, b) => b.weight - a.weight || (a.id < b.id ? -1 : 1))
    .map((vm) => {
      const size = sum > 0 ? ((value ?? 0) * vm.weight) / sum : 0;
      const block = { ...vm, offset, size };
      offset += size;
      return block;
    });
}

/** Blocks of the VMs that move alone, at the top of their host, where the picture has too many VMs for all of them. */
function movers({ hosts }, values, { steps, withPlan, share }) {
  const of = new Map(hosts.map(({ name }, i) => [name, { blocks: [], top: values[i] ?? 0 }]));
  for (const step of steps) {
    const on = of.get(withPlan ? step.to : step.from);
    if (on === undefined) continue;
    const size = share(step, withPlan ? 'destination' : 'source');
    on.top = Math.max(0, on.top - size);
    on.blocks.push({ id: step.serverId, name: step.serverName, step, size, offset: on.top });
  }
  return hosts.map(({ name }) => of.get(name).blocks);
}

/** How many VMs each host has, with the plan or without it. */
function vmsOf(hosts, steps, withPlan) {
  const numbers = new Map(hosts.map(({ name, vms }) => [name, vms]));
  for (const { from, to } of withPlan ? steps : []) {
    numbers.set(from, (numbers.get(from) ?? 0) - 1);
    numbers.set(to, (numbers.get(to) ?? 0) + 1);
  }
  return numbers;
}

/** What the picture shows: per host its value, its VMs with their sizes, and ghosts of VMs that would come. */
export function layout(picture, policy, steps, withPlan) {
  const { hosts, vms, policies } = picture;
  const { policy: name, threshold } = policies[policy];
  const share = (step, side) => step.weights[name]?.[side] ?? 0;
  const after = valuesAfter({ hosts, policies }, withPlan ? steps : [], policy);
  const values = hosts.map(({ name: host }) => after.get(host));
  const blocks =
    vms === null
      ? movers(picture, values, { steps, withPlan, share })
      : residents(picture, policy, steps, withPlan).map((own, i) => stacked(own, values[i]));
  const numbers = vmsOf(hosts, steps, withPlan);
  const before = hosts.map(({ values: own }) => own[policy]);
  const planned = valuesAfter({ hosts, policies }, steps, policy);
  // The order is that of now in both pictures: only blocks move.
  const order = hosts
    .map((_, i) => i)
    .sort((a, b) => (before[b] ?? -1) - (before[a] ?? -1) || (hosts[a].name < hosts[b].name ? -1 : 1));
  // A host that is closed is in no imbalance.
  const band = bandOf(
    values.filter((_, i) => counts(hosts[i])),
    threshold,
  );
  const drawn = order.map((i) => ({
    ...hosts[i],
    value: values[i],
    planned: withPlan || planned.get(hosts[i].name) === values[i] ? null : planned.get(hosts[i].name),
    vms: numbers.get(hosts[i].name),
    side: counts(hosts[i]) ? sideOf(values[i], band) : 'closed-host',
    blocks: blocks[i],
  }));
  if (!withPlan) addGhosts(drawn, steps, share);
  // The values after a plan that is not drawn as done are beside this band, and belong to the one after it.
  const bandAfter = withPlan || steps.length === 0 ? null : bandOf(countedValues(picture, planned), threshold);
  const top = Math.max(
    1e-6,
    band?.high ?? 0,
    ...drawn.map(({ value, ghosts = [] }) => (value ?? 0) + ghosts.reduce((sum, { size }) => sum + size, 0)),
  );
  return { hosts: drawn, band, bandAfter, threshold, policy: name, top: top * 1.02, crowded: vms === null };
}

function addGhosts(hosts, steps, share) {
  for (const host of hosts) {
    let offset = host.value ?? 0;
    host.ghosts = steps
      .filter(({ to }) => to === host.name)
      .map((step) => {
        const ghost = { id: step.serverId, name: step.serverName, offset, size: share(step, 'destination') };
        offset += ghost.size;
        return ghost;
      });
  }
}

/** @param progress of VMs that move now: uuid to true */
export function columns(shown, { aggregate, width, snapshot, running, draining }) {
  const { hosts, band, top, crowded } = shown;
  const step = (width - EDGES) / Math.max(1, hosts.length);
  const bar = Math.max(1, step * 0.82);
  const base = PLOT.top + PLOT.columns;
  const y = (value) => base - (Math.max(0, value) / top) * PLOT.columns;
  const x = (i) => i * step + (step - bar) / 2;
  const blocks = hosts.flatMap((host, i) => host.blocks.map((block) => ({ ...block, i, side: host.side, host })));
  const height = PLOT.top + PLOT.columns + PLOT.foot;
  return html`<svg class="blocks" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${sentence(shown)}>
    ${
      band === null
        ? ''
        : svg`<rect class="band" x="0" width=${width - EDGES} y=${y(band.high)} height=${Math.max(1, y(Math.max(0, band.low)) - y(band.high))}></rect>`
    }
    ${band === null ? '' : edges(band, y).map(([value, at]) => svg`<text class="edge" x=${width - 2} y=${at} text-anchor="end">${value.toFixed(2)}</text>`)}
    ${crowded ? hosts.map((host, i) => svg`<rect class=${host.side} x=${x(i)} width=${bar} y=${y(host.value ?? 0)} height=${base - y(host.value ?? 0)}></rect>`) : ''}
    ${repeat(
      blocks,
      ({ id }) => id,
      ({ offset, size, i, side, step: moves, id, name }) => {
        const high = (size / top) * PLOT.columns;
        return svg`<rect class="vm ${side} ${moves === undefined ? '' : 'moves'} ${running.has(id) ? 'running' : ''}"
          x=${x(i)} width=${bar} y=${y(offset + size)} height=${Math.max(0.4, high - (high > 3 ? 0.8 : 0.2))}><title>${`${name}: ${figure(size)}`}</title></rect>`;
      },
    )}
    ${hosts.map((host, i) =>
      (host.ghosts ?? []).map(({ offset, size, name }) => {
        const high = Math.max(4, (size / top) * PLOT.columns);
        return svg`<rect class="ghost" x=${x(i)} width=${bar} y=${y(offset) - high - 1} height=${high}><title>${`${name} would come here`}</title></rect>
          ${high > 13 && bar > 50 ? svg`<text class="ghost-name" x=${x(i) + bar / 2} y=${y(offset) - high / 2 + 3} text-anchor="middle">${name}</text>` : ''}`;
      }),
    )}
    ${arcs(shown, { x, y, bar, top })}
    ${hosts.map((host, i) => {
      const middle = x(i) + bar / 2;
      const over = (host.ghosts ?? []).reduce((sum, { size }) => sum + Math.max(size, (5 / PLOT.columns) * top), 0);
      return svg`
        ${step > 30 ? svg`<text class="value" x=${middle} y=${y((host.value ?? 0) + over) - 6} text-anchor="middle">${valueText(host, step)}</text>` : ''}
        ${counts(host) ? '' : svg`<rect class="closed" x=${x(i)} width=${bar} y=${PLOT.top} height=${PLOT.columns}><title>${serviceText(host.service)}</title></rect>`}
        ${
          step > 64
            ? svg`<a href=${link.host(aggregate, host.name, snapshot)}><text class="name" x=${middle} y=${base + 16} text-anchor="middle">${shortened(host.name, step)}<title>${host.name}</title></text></a>
              <text class="count" x=${middle} y=${base + 31} text-anchor="middle">${underName(host, draining, step)}</text>`
            : svg`<rect class="hit" x=${i * step} width=${step} y=${PLOT.top} height=${PLOT.columns}><title>${`${host.name}: ${figure(host.value)}, ${count(host.vms, 'VM')}`}</title></rect>`
        }`;
    })}
  </svg>`;
}

/** The numbers at the edges of the band, and where their lines stand: never on each other. */
function edges({ low, high }, y) {
  const middle = (y(high) + y(low)) / 2;
  return [
    [high, Math.min(y(high) + 4, middle - 3)],
    [Math.max(0, low), Math.max(y(low) + 4, middle + 9)],
  ];
}

/** Its value; of a host that a plan changes, also the one with the plan, where there is room. */
function valueText({ value, planned }, width) {
  if (value === null) return '?';
  return planned == null || width < 80 ? value.toFixed(2) : `${value.toFixed(2)} → ${planned.toFixed(2)}`;
}

/** Its VMs, and why it takes none: no more than fits. */
function underName(host, draining, width) {
  const why = draining.has(host.name) ? 'draining' : counts(host) ? null : closedBy(host.service);
  if (why === null) return count(host.vms, 'VM');
  return width > 104 ? `${count(host.vms, 'VM')} · ${why}` : `${host.vms} · ${why}`;
}

/** The name, cut in its middle to fit the width. @param width in pixels */
export const shortened = (name, width) => {
  const most = Math.max(5, Math.floor(width / 7));
  if (name.length <= most) return name;
  // Hosts differ at their ends.
  const end = Math.ceil(most / 2);
  return `${name.slice(0, most - end - 1)}…${name.slice(-end)}`;
};

function arcs({ hosts }, { x, y, bar, top }) {
  const places = new Map(
    hosts.flatMap(({ ghosts = [] }, i) =>
      ghosts.map(({ id, offset, size }) => [id, { i, at: offset + Math.max(size, (4 / PLOT.columns) * top) / 2 }]),
    ),
  );
  if (places.size > MOST_ARCS) return '';
  return hosts.flatMap(({ blocks }, i) =>
    blocks.flatMap(({ id, offset, size }) => {
      const to = places.get(id);
      if (to === undefined) return [];
      const right = to.i > i;
      const [x1, y1] = [x(i) + (right ? bar : 0), y(offset + size / 2)];
      const [x2, y2] = [x(to.i) + (right ? 0 : bar), y(to.at)];
      const bend = (x2 - x1) * 0.45;
      const up = Math.min(y1, y2) - 18;
      return [
        svg`<path class="arc" d=${`M${x1} ${y1}C${x1 + bend} ${Math.min(y1, up)} ${x2 - bend} ${up} ${x2} ${y2}`}></path><circle class="arc-end" cx=${x2} cy=${y2} r="3"></circle>`,
      ];
    }),
  );
}

/** One row per host: for phones, and for many hosts. */
export function rows(shown, { aggregate, width, snapshot, running }) {
  const { hosts, band, top, crowded } = shown;
  const room = Math.max(60, width - ROW_LABELS - 60);
  const at = (value) => (Math.max(0, value) / top) * room;
  return html`<ul class="host-rows">${repeat(
    hosts,
    ({ name }) => name,
    (host) => html`<li><a href=${link.host(aggregate, host.name, snapshot)}>${host.name}</a>
      <svg class="blocks" width=${room} height=${ROW} viewBox=${`0 0 ${room} ${ROW}`} role="img" aria-label=${`${figure(host.value)}, ${count(host.vms, 'VM')}`}>
        ${band === null ? '' : svg`<rect class="band" x=${at(band.low)} width=${at(band.high) - at(Math.max(0, band.low))} y="0" height=${ROW}></rect>`}
        ${crowded ? svg`<rect class=${host.side} x="0" y="3" height=${ROW - 6} width=${at(host.value ?? 0)}></rect>` : ''}
        ${host.blocks.map(
          ({ id, name, offset, size, step }) =>
            svg`<rect class="vm ${host.side} ${step === undefined ? '' : 'moves'} ${running.has(id) ? 'running' : ''}" x=${at(offset)} y="3" height=${ROW - 6} width=${Math.max(0.3, at(size) - 0.6)}><title>${name}</title></rect>`,
        )}
        ${(host.ghosts ?? []).map(({ name, offset, size }) => svg`<rect class="ghost" x=${at(offset) + 1} y="3" height=${ROW - 6} width=${Math.max(3, at(size))}><title>${`${name} would come here`}</title></rect>`)}
      </svg>
      <span class="number">${host.value === null ? '?' : host.value.toFixed(2)}</span></li>`,
  )}</ul>`;
}

function sentence({ hosts, policy }) {
  const above = hosts.filter(({ side }) => side === 'warm').length;
  const below = hosts.filter(({ side }) => side === 'cold').length;
  const coming = hosts.reduce((sum, { ghosts = [] }) => sum + ghosts.length, 0);
  return `${policy}: ${above} of ${hosts.length} hosts above the band, ${below} below${coming === 0 ? '' : `; ${count(coming, 'VM')} would move`}. The table has the numbers.`;
}

/** A choice between few: one of them is pressed. The last may be a link to another page, as a template. */
export const switches = (label, options, chosen, choose) =>
  html`<div class="switch" role="group" aria-label=${label}>${options.map((option) =>
    Array.isArray(option)
      ? html`<button type="button" aria-pressed=${String(option[0] === chosen)} @click=${() => choose(option[0])}>${option[1]}</button>`
      : option,
  )}</div>`;
