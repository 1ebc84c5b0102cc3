/**
 * The moves of a plan as one picture: on the left the hosts that VMs leave, on the right those where they arrive, and a ribbon for each
 * move. Every end of a ribbon has a line of its own with the name of the VM, so that no name is on another one or below a ribbon. The
 * same picture shows the progress: a ribbon is green when its move is done, and red when it failed.
 */

import { html, svg } from './lib/lit-html.js';
import { flows, flowText, named, pairs, sizeText } from './pairs.js';
import { link } from './parts.js';
import { countedValues, valuesAfter } from './ratio.js';
import { bandOf, sideOf } from './skyline.js';
import { count, digitsBeside, edgesOf, listed, measureText, sharesText, shortened, withoutDomain } from './words.js';

/** The line of a ribbon's end, and the room around the lines of a host. */
const LINE = 14;
const PAD = 2;
const LEAST_ROW = 20;
const GAP = 3;
/** Width of a letter, about. */
const LETTER = 7;
const TOP = 16;
const BAR = 12;
/** Room of a value before and after, in each number of decimals: `100 → 100 %`, `99.5 → 99.5 %`. */
const VALUES = [84, 104];
/** On a narrow screen nothing is beside each other. */
const NARROW = 700;
/** On a wide one the list of the pairs is beside the picture. */
const WIDE = 1100;
const LIST = 340;

/** More hosts that take no part are counted. */
const MOST_OTHERS = 8;

const at = (least, value, most) => Math.round(Math.max(least, Math.min(value, most)));

/** Widths of the columns, for a picture of that width. */
const columnsOf = (width) => ({
  name: at(80, width * 0.1, 170),
  bar: at(40, width * 0.1, 220),
  label: at(96, width * 0.13, 220),
});

/** A host of one side with its flows, the room that it needs, and its values. */
function rowsOf(names, flowsOf, { before, after }) {
  let y = TOP;
  return names.map((name) => {
    const own = flowsOf(name);
    const height = Math.max(LEAST_ROW, own.length * LINE + 2 * PAD);
    const row = { name, flows: own, y, height, before: before.get(name) ?? null, after: after.get(name) ?? null };
    y += height + GAP;
    return row;
  });
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Both sides: hosts beside those that they exchange VMs with, and the flows of a host in the order of their other ends. */
function sides(all, values) {
  const high = (name) => values.before.get(name) ?? -1;
  const sources = [...new Set(all.map(({ from }) => from))].sort((a, b) => high(b) - high(a) || (a < b ? -1 : 1));
  const place = (name) => mean(all.filter(({ to }) => to === name).map(({ from }) => sources.indexOf(from)));
  const destinations = [...new Set(all.map(({ to }) => to))].sort(
    (a, b) => place(a) - place(b) || high(b) - high(a) || (a < b ? -1 : 1),
  );
  const ordered = all.toSorted(
    (a, b) =>
      sources.indexOf(a.from) - sources.indexOf(b.from) || destinations.indexOf(a.to) - destinations.indexOf(b.to),
  );
  return {
    left: rowsOf(sources, (name) => ordered.filter(({ from }) => from === name), values),
    right: rowsOf(destinations, (name) => ordered.filter(({ to }) => to === name), values),
  };
}

/** The middle of the line of a flow at a host. */
const lineOf = (row, flow) => row.y + row.height / 2 + (row.flows.indexOf(flow) - (row.flows.length - 1) / 2) * LINE;

/** How far the moves of a flow are together. */
function progressOf({ steps }, statusOf) {
  const all = new Set(steps.map(statusOf));
  if (all.has('failed')) return 'failed';
  if (all.size === 1) return [...all][0];
  return all.has('running') || all.has('done') ? 'running' : '';
}

/** A host's value before and after: `43 → 27 %`. */
const changeText = ({ before, after }, digits) =>
  before === null || after === null ? '?' : sharesText(before, after, digits);

/** Bar of a host: what stays, and in violet what leaves or comes; behind it the band after the plan. */
function bar(row, { x, y, width, scale, bands, arrives }) {
  const rest = arrives ? restOf(row) : (row.after ?? 0);
  const end = arrives ? (row.after ?? 0) : (row.before ?? 0);
  const to = (value) => Math.max(0, Math.min(width, value * scale));
  const { low, high } = bands.after ?? { low: 0, high: 0 };
  return svg`<rect class="band" x=${x + to(low)} y=${y - BAR / 2 - 3} width=${to(high) - to(low)} height=${BAR + 6}></rect>
    <rect class=${sideOf(row.before, bands.before)} x=${x} y=${y - BAR / 2} width=${to(rest)} height=${BAR}></rect>
    <rect class="moves" x=${x + to(rest)} y=${y - BAR / 2} width=${Math.max(0, to(end) - to(rest))} height=${BAR}></rect>`;
}

/** Of a host that VMs come to, what was there before them: it may lose others. */
const restOf = ({ before, after }) => Math.min(before ?? 0, after ?? 0);

function scene(picture, { steps, policy }) {
  const values = { before: valuesAfter(picture, [], policy), after: valuesAfter(picture, steps, policy) };
  const { threshold } = picture.policies[policy];
  const bands = {
    before: bandOf(countedValues(picture, values.before), threshold),
    after: bandOf(countedValues(picture, values.after), threshold),
  };
  const { left, right } = sides(flows(steps), values);
  const top = Math.max(
    1e-6,
    bands.after?.high ?? 0,
    ...[...left, ...right].flatMap(({ before, after }) => [before ?? 0, after ?? 0]),
  );
  const short = withoutDomain(picture.hosts.map(({ name }) => name));
  const ends = [...left, ...right].map(({ after }) => after);
  const digits = digitsBeside(
    bands.after,
    ends,
    ends.map((value) => sideOf(value, bands.after)),
  );
  return { left, right, bands, top, byName: named(steps), short, digits };
}

/** The text at an end of a ribbon, cut to its room; the size is never cut. */
function endText(what, room, size = '') {
  const rest = size === '' ? '' : ` · ${size}`;
  return `${shortened(what, room - rest.length * LETTER)}${rest}`;
}

const label = (kind, [x, y], words, anchor = 'start') =>
  svg`<text class=${kind} x=${x} y=${y + 4} text-anchor=${anchor}>${words}</text>`;

const hostName = ({ aggregate, short }, name, [x, y], room) =>
  svg`<a href=${link.host(aggregate, name)}><text class="name" x=${x} y=${y + 4}>${shortened(short(name), room)}<title>${name}</title></text></a>`;

/** A host that VMs leave: its name, its bar, its values, and the names of its VMs at the edge. */
function leftRow(row, how) {
  const { column, end, scale, bands, byName, digits } = how;
  const y = row.y + row.height / 2;
  return svg`<rect class="row" x="0" y=${row.y} width=${end} height=${row.height} rx="4"></rect>
    ${hostName(how, row.name, [6, y], column.name - 8)}
    ${bar(row, { x: column.name, y, width: column.bar, scale, bands, arrives: false })}
    ${label('dim', [column.name + column.bar + 6, y], changeText(row, digits))}
    ${row.flows.map((flow) => label('leaves', [end - 6, lineOf(row, flow)], endText(flowText(flow, byName), column.label, sizeText(flow)), 'end'))}`;
}

/** A host where VMs arrive: the same the other way round. */
function rightRow(row, how) {
  const { column, start, end, scale, bands, byName, short, digits } = how;
  const y = row.y + row.height / 2;
  const x = start + column.label;
  const what = (flow) =>
    byName || flow.steps.length === 1
      ? flowText(flow, true)
      : `${count(flow.steps.length, 'VM')} of ${short(flow.from)}`;
  return svg`<rect class="row" x=${start} y=${row.y} width=${end} height=${row.height} rx="4"></rect>
    ${row.flows.map((flow) => label('arrives', [start + 6, lineOf(row, flow)], endText(what(flow), column.label - 8)))}
    ${hostName(how, row.name, [x, y], column.name - 6)}
    ${bar(row, { x: x + column.name, y, width: column.bar, scale, bands, arrives: true })}
    ${label('dim', [x + column.name + column.bar + 6, y], changeText(row, digits))}`;
}

function ribbon(flow, { from, to, most, byName, statusOf }) {
  const [[x1, y1], [x2, y2]] = [from, to];
  const bend = (x2 - x1) * 0.5;
  return svg`<g class="ribbon ${progressOf(flow, statusOf)}">
    <path d=${`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} stroke-width=${1.5 + (flow.mb / most) * 5}></path>
    <path class="head" d=${`M${x2} ${y2 - 5}l7 5l-7 5z`}></path>
    <title>${`${flowText(flow, byName)}, ${sizeText(flow)}: ${flow.from} → ${flow.to}`}</title></g>`;
}

/** Both sides and the ribbons between them. */
function wide({ left, right, bands, top, byName, short, digits }, { aggregate, statusOf, width }) {
  const column = columnsOf(width);
  const height = Math.max(...[...left, ...right].map((row) => row.y + row.height)) + 2;
  const end = column.name + column.bar + VALUES[digits] + column.label;
  const start = width - end;
  const how = { aggregate, column, start, end, scale: column.bar / top, bands, byName, short, digits };
  const of = new Map(right.map((row) => [row.name, row]));
  const most = Math.max(1, ...left.flatMap((row) => row.flows.map(({ mb }) => mb)));
  const moves = left.reduce((sum, row) => sum + row.flows.reduce((all, { steps }) => all + steps.length, 0), 0);
  const ribbonOf = (row) => (flow) =>
    ribbon(flow, {
      from: [end + 3, lineOf(row, flow)],
      to: [start - 9, lineOf(of.get(flow.to), flow)],
      most,
      byName,
      statusOf,
    });
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Picture of the plan">
    <svg class="ribbons" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${`${count(moves, 'move')} off ${count(left.length, 'host')} to ${count(right.length, 'host')}; the table has the numbers`}>
      ${label('dim', [6, 8], 'VMs leave')}${label('dim', [start + 6, 8], 'VMs arrive')}
      ${left.flatMap((row) => row.flows.map(ribbonOf(row)))}
      ${left.map((row) => leftRow(row, how))}${right.map((row) => rightRow(row, how))}</svg></div>`;
}

/** On a phone: the hosts that VMs leave, each with where they go; then the others with what comes. */
function stacked({ left, right, bands, top, byName, digits }, { aggregate, statusOf, width }) {
  const scale = width / top;
  const list = (title, rows, text) =>
    html`<h3>${title}</h3><ul class="plain ends">${rows.map(
      (
        row,
      ) => html`<li><p class="host"><a href=${link.host(aggregate, row.name)}>${row.name}</a> <span>${changeText(row, digits)}</span></p>
        <svg class="ribbons" width=${width} height=${BAR + 6} viewBox=${`0 0 ${width} ${BAR + 6}`} aria-hidden="true">${bar(row, { x: 0, y: BAR / 2 + 3, width, scale, bands, arrives: rows === right })}</svg>
        ${row.flows.map((flow) => html`<p class="end ${progressOf(flow, statusOf)}">${text(flow)}</p>`)}</li>`,
    )}</ul>`;
  return html`${list('VMs leave', left, (flow) => `${flowText(flow, byName)} · ${sizeText(flow)} → ${flow.to}`)}
    ${list('VMs arrive', right, (flow) => `${flowText(flow, byName)} from ${flow.from}`)}`;
}

/** Which VMs go from which host to which one, one line for each pair of hosts. */
export const pairList = (steps, { aggregate, short }) =>
  html`<div class="pairs scroll" tabindex="0" role="region" aria-label="What moves where"><ul class="plain">${pairs(
    steps,
  ).map(
    (pair) =>
      html`<li><span class="whole"><a href=${link.host(aggregate, pair.from)}>${short(pair.from)}</a> → <a href=${link.host(aggregate, pair.to)}>${short(pair.to)}</a>:</span> ${flowText(pair, named(steps))}, ${sizeText(pair)}</li>`,
  )}</ul></div>`;

/** The hosts that no move touches: they are in the aggregate, and not in the picture. */
function others({ hosts }, { left, right, short }) {
  const touched = new Set([...left, ...right].map(({ name }) => name));
  const rest = hosts.flatMap(({ name }) => (touched.has(name) ? [] : [short(name)]));
  if (rest.length === 0) return '';
  return html`<span>${rest.length > MOST_OTHERS ? `${rest.length} more hosts take` : `${listed(rest)} ${rest.length === 1 ? 'takes' : 'take'}`} no part.</span> `;
}

/** @param steps those that are chosen; `statusOf` says how far each is */
export function ribbons(picture, { steps, policy, aggregate, statusOf }) {
  if (steps.length === 0) return html`<p class="dim">No move is left.</p>`;
  const shown = scene(picture, { steps, policy });
  const beside = innerWidth >= WIDE;
  const width = Math.max(280, Math.min(innerWidth, 2600) - 64 - (beside ? LIST : 0));
  const how = { aggregate, statusOf, width };
  const { bands } = shown;
  return html`<div class="moved">${innerWidth < NARROW ? stacked(shown, how) : html`${wide(shown, how)}${pairList(steps, { aggregate, short: shown.short })}`}</div>
    <p class="dim">${others(picture, shown)}${measureText(picture.policies[policy])} Before → after the plan:
      <span class="whole"><span class="swatch move"></span> what leaves and arrives</span>, <span class="whole"><span class="swatch warm"></span> a host above the band now</span>,
      <span class="whole"><span class="swatch cold"></span> below it</span>, <span class="whole"><span class="swatch inside"></span> inside</span>.
      ${bands.after === null ? '' : html`<span class="swatch band"></span> The band after the plan, ${edgesOf(bands.after, shown.digits)}: balanced is when every host is inside it.`}</p>`;
}
