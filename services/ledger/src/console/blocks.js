/**
 * The hosts of an aggregate with their VMs as blocks: as columns or as rows. A block's size is the VM's share of the measured value of
 * its host. VMs that a plan moves are violet; where they would go, there is a dashed ghost, and an arc leads there.
 */
import { repeat } from './lib/directives/repeat.js';
import { html, svg } from './lib/lit-html.js';
import { closedBy, link, serviceText } from './parts.js';
import { counts } from './ratio.js';
import { count, sharesText, shareText, shortened } from './words.js';

const PLOT = { columns: 290, top: 26, foot: 38 };
/** Room for the numbers at the edges of the band. */
const EDGES = 40;
/** A host whose VMs would leave has a lane of its own above the columns: more of them hide the hosts. */
const LANE = 10;
const MOST_LANES = 6;
/** A line below a column: a VM that leaves or comes. */
const LINE = 14;
/** Columns with room for names below them; names of narrower ones are upright. */
const NAMED = 64;
/** Columns with room for a value with decimals over them, and for two such values. */
const DECIMALS = 48;
const CHANGES = 80;
const CHANGES_DECIMALS = 112;
const UPRIGHT = 12;
const UPRIGHT_FOOT = 110;
/** Width of a letter, at most. */
const LETTER = 7;
const ROW = 22;
const ROW_LABELS = 112;

const stepOf = (hosts, width) => (width - EDGES) / Math.max(1, hosts.length);

/** Whether columns of that width have below them which VMs leave and come. */
export const columnsAreNamed = (hosts, width) => stepOf(hosts, width) > NAMED;

/** Where everything stands in the picture of the columns. */
function frameOf({ hosts, top, changes, short }, width) {
  const step = stepOf(hosts, width);
  const bar = Math.max(1, step * 0.82);
  const lanes = step > NAMED ? lanesOf(hosts) : [];
  const above = PLOT.top + lanes.length * LANE;
  const base = above + PLOT.columns;
  const lines = step > NAMED ? Math.max(0, ...[...changes.values()].map((own) => own.length)) : 0;
  const longest = Math.max(0, ...hosts.map(({ name }) => short(name).length + 4)) * LETTER + LINE;
  const foot = step > NAMED ? PLOT.foot + lines * LINE : step > UPRIGHT ? Math.min(UPRIGHT_FOOT, longest) : LINE;
  return {
    width,
    step,
    bar,
    lanes,
    above,
    base,
    height: base + foot,
    y: (value) => base - (Math.max(0, value) / top) * PLOT.columns,
    x: (i) => i * step + (step - bar) / 2,
    high: (size) => (size / top) * PLOT.columns,
  };
}

/** The hosts whose VMs would leave, each with the hosts where they would go; none where they are too many to be followed. */
function lanesOf(hosts) {
  const lanes = hosts.flatMap(({ blocks }, from) => {
    const leaving = new Set(blocks.flatMap(({ step, id }) => (step === undefined ? [] : [id])));
    const to = hosts.flatMap(({ ghosts = [] }, i) => (ghosts.some(({ id }) => leaving.has(id)) ? [i] : []));
    return to.length === 0 ? [] : [{ from, to }];
  });
  return lanes.length > MOST_LANES ? [] : lanes;
}

/** The height over a host: the sizes of the VMs that would come, each at least as high as its ghost is drawn. */
const GHOST = 4;
const over = ({ ghosts = [] }, { high }) => ghosts.reduce((sum, { size }) => sum + Math.max(GHOST, high(size)) + 1, 0);

/** The band and the numbers at its edges. */
function bandOfColumns({ band, digits }, { width, base, y }) {
  const floor = svg`<text class="edge" x=${width - 2} y=${base} text-anchor="end">0 %</text>`;
  if (band === null) return floor;
  return svg`<rect class="band" x="0" width=${width - EDGES} y=${y(band.high)} height=${Math.max(1, y(Math.max(0, band.low)) - y(band.high))}></rect>
    ${edges(band, y).map(([value, at]) => (at > base - LINE ? '' : svg`<text class="edge" x=${width - 2} y=${at} text-anchor="end">${shareText(value, digits)}</text>`))}${floor}`;
}

/** From the top of a host up to its lane, along it, and down to each host where its VMs would go. */
function arrows({ hosts }, frame) {
  const { lanes, x, y, bar } = frame;
  return lanes.map(({ from, to }, lane) => {
    const at = PLOT.top / 2 + lane * LANE;
    const start = x(from) + bar - 4;
    const ends = to.map((i) => [
      x(i) + 5 + Math.min(lane * 6, bar / 3),
      y(hosts[i].value ?? 0) - over(hosts[i], frame),
    ]);
    const all = [start, ...ends.map(([end]) => end)];
    const down = ends.map(([end, top]) => `M${end} ${at}V${top - 4}`).join('');
    return svg`<path class="lane" d=${`M${start} ${y(hosts[from].value ?? 0)}V${at}M${Math.min(...all)} ${at}H${Math.max(...all)}${down}`}></path>
      <path class="lane-end" d=${ends.map(([end, top]) => `M${end - 4} ${top - 7}h8l-4 6z`).join('')}></path>`;
  });
}

/** A VM that would come, as it would stand on the others. */
function ghostsOf(host, i, { x, y, bar, high }) {
  let top = y(host.value ?? 0);
  return (host.ghosts ?? []).map(({ size, name }) => {
    const tall = Math.max(GHOST, high(size));
    top -= tall + 1;
    return svg`<rect class="ghost" x=${x(i)} width=${bar} y=${top} height=${tall}><title>${`${name} would come here`}</title></rect>`;
  });
}

/** Below a column: its name, its VMs, and which of them leave or come. */
function footOf(host, i, { frame: { step, bar, x, base }, aggregate, snapshot, draining, changes, short }) {
  const middle = x(i) + bar / 2;
  const own = changes.get(host.name) ?? [];
  const line = (n) => base + PLOT.foot - 7 + n * LINE;
  return svg`<a href=${link.host(aggregate, host.name, snapshot)}><text class="name" x=${middle} y=${base + 16} text-anchor="middle">${shortened(short(host.name), step)}<title>${host.name}</title></text></a>
    <text class="count" x=${middle} y=${line(0)} text-anchor="middle">${underName(host, draining, step)}</text>
    ${fitting(own, step).map(
      (words, n) =>
        svg`<text class="change" x=${middle} y=${line(n + 1)} text-anchor="middle">${shortened(words, step)}<title>${own[n].texts[0]}</title></text>`,
    )}`;
}

/** The longest form of all lines of a host that fits; the last one is cut. */
function fitting(own, width) {
  const form = [0, 1].find((n) => own.every(({ texts }) => texts[n].length * LETTER < width)) ?? 2;
  return own.map(({ texts }) => texts[form]);
}

/** The same of a narrow column: its name stands upright, with how many VMs leave or come. */
function uprightOf(host, i, { frame: { step, bar, x, base, above }, changes, short, digits }) {
  const own = changes.get(host.name) ?? [];
  const by = own.reduce((sum, change) => sum + change.by, 0);
  const moved = own.length > 0;
  const middle = x(i) + bar / 2 + 4;
  const words = `${shortened(short(host.name), UPRIGHT_FOOT - 30)}${moved ? ` ${by < 0 ? '−' : '+'}${Math.abs(by)}` : ''}`;
  return svg`${step > UPRIGHT ? svg`<text class=${moved ? 'change' : 'count'} transform=${`translate(${middle} ${base + 6}) rotate(-90)`} text-anchor="end">${words}</text>` : ''}
    <rect class="hit" x=${i * step} width=${step} y=${above} height=${PLOT.columns}><title>${`${host.name}: ${shareText(host.value, digits)}, ${count(host.vms, 'VM')}`}</title></rect>`;
}

/** @param running VMs that move now: their uuids */
export function columns(shown, { aggregate, width, snapshot, running, draining }) {
  const { hosts, crowded, changes, short, digits } = shown;
  const frame = frameOf(shown, width);
  const { step, bar, base, height, x, y, high } = frame;
  const blocks = hosts.flatMap((host, i) => host.blocks.map((block) => ({ ...block, i, side: host.side })));
  const how = { frame, aggregate, snapshot, draining, changes, short, digits };
  return html`<svg class="blocks" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${sentence(shown)}>
    ${bandOfColumns(shown, frame)}
    ${crowded ? hosts.map((host, i) => svg`<rect class=${host.side} x=${x(i)} width=${bar} y=${y(host.value ?? 0)} height=${base - y(host.value ?? 0)}></rect>`) : ''}
    ${repeat(
      blocks,
      ({ id }) => id,
      ({ offset, size, i, side, step: moves, id, name }) =>
        svg`<rect class="vm ${side} ${moves === undefined ? '' : 'moves'} ${running.has(id) ? 'running' : ''}"
          x=${x(i)} width=${bar} y=${y(offset + size)} height=${Math.max(0.4, high(size) - (high(size) > 3 ? 0.8 : 0.2))}><title>${`${name}: ${shareText(size, 1)}`}</title></rect>`,
    )}
    ${hosts.map((host, i) => ghostsOf(host, i, frame))}
    ${arrows(shown, frame)}
    ${hosts.map(
      (host, i) => svg`
        ${step > 34 ? svg`<text class="value" x=${x(i) + bar / 2} y=${y(host.value ?? 0) - over(host, frame) - 6} text-anchor="middle">${valueText(host, step, digits)}</text>` : ''}
        ${counts(host) ? '' : svg`<rect class="closed" x=${x(i)} width=${bar} y=${y(host.value ?? 0)} height=${base - y(host.value ?? 0)}><title>${serviceText(host.service)}</title></rect>`}
        ${step > NAMED ? footOf(host, i, how) : uprightOf(host, i, how)}`,
    )}
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
function valueText({ value, planned }, width, digits) {
  if (value === null) return '?';
  return planned == null || width < CHANGES
    ? shareText(value, width < DECIMALS ? 0 : digits)
    : sharesText(value, planned, width < CHANGES_DECIMALS ? 0 : digits);
}

/** Its VMs, and why it takes none: no more than fits. */
function underName(host, draining, width) {
  const why = draining.has(host.name) ? 'draining' : counts(host) ? null : closedBy(host.service);
  if (why === null) return count(host.vms, 'VM');
  return width > 104 ? `${count(host.vms, 'VM')} · ${why}` : `${host.vms} · ${why}`;
}

/** One row per host: for phones, and for many hosts. */
export function rows(shown, { aggregate, width, snapshot, running }) {
  const { hosts, band, top, crowded, changes, digits } = shown;
  const room = Math.max(60, width - ROW_LABELS - 104);
  const at = (value) => (Math.max(0, value) / top) * room;
  return html`<ul class="host-rows">${repeat(
    hosts,
    ({ name }) => name,
    (host) => html`<li><a href=${link.host(aggregate, host.name, snapshot)}>${host.name}</a>
      <svg class="blocks" width=${room} height=${ROW} viewBox=${`0 0 ${room} ${ROW}`} role="img" aria-label=${`${shareText(host.value, digits)}, ${count(host.vms, 'VM')}`}>
        ${band === null ? '' : svg`<rect class="band" x=${at(band.low)} width=${at(band.high) - at(Math.max(0, band.low))} y="0" height=${ROW}></rect>`}
        ${crowded ? svg`<rect class=${host.side} x="0" y="3" height=${ROW - 6} width=${at(host.value ?? 0)}></rect>` : ''}
        ${host.blocks.map(
          ({ id, name, offset, size, step }) =>
            svg`<rect class="vm ${host.side} ${step === undefined ? '' : 'moves'} ${running.has(id) ? 'running' : ''}" x=${at(offset)} y="3" height=${ROW - 6} width=${Math.max(0.3, at(size) - 0.6)}><title>${name}</title></rect>`,
        )}
        ${(host.ghosts ?? []).map(({ name, offset, size }) => svg`<rect class="ghost" x=${at(offset) + 1} y="3" height=${ROW - 6} width=${Math.max(3, at(size))}><title>${`${name} would come here`}</title></rect>`)}
      </svg>
      <span class="number">${host.planned == null ? shareText(host.value, digits) : sharesText(host.value, host.planned, digits)}</span>
      ${
        changes.get(host.name)?.length > 0
          ? html`<span class="change">${changes
              .get(host.name)
              .map(({ texts: [whole] }) => whole)
              .join(', ')}</span>`
          : ''
      }</li>`,
  )}</ul>`;
}

function sentence({ hosts, policy }) {
  const above = hosts.filter(({ side }) => side === 'warm').length;
  const below = hosts.filter(({ side }) => side === 'cold').length;
  const coming = hosts.reduce((sum, { ghosts = [] }) => sum + ghosts.length, 0);
  return `${policy}: ${above} of ${hosts.length} hosts above the band, ${below} below${coming === 0 ? '' : `; ${count(coming, 'VM')} would move`}. The table has the numbers.`;
}
