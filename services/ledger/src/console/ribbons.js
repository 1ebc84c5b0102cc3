/**
 * A plan as one picture: the touched hosts before it on the left, after it on the right, and a ribbon for each move between them. The
 * same picture shows the progress: a ribbon is green when its move is done, and red when it failed.
 */
import { shortened } from './blocks.js';
import { html, svg } from './lib/lit-html.js';
import { link } from './parts.js';
import { countedValues, valuesAfter } from './ratio.js';
import { copiedMb } from './sizes.js';
import { bandOf, edgesOf, sideOf } from './skyline.js';

const ROW = 40;
const BAR = 30;
const TOP = 24;
/** Room of a bar, and of the names beside it. */
const SIDE = 150;
const NAMES = 190;
const NARROW = 700;
/** Labels that are nearer to each other cannot be read: the table of the steps has all of them. */
const LABEL = 11;
/** On a narrow screen a name stands above its bar. */
const NAME_ABOVE = 18;

/** Where there is no room between the hosts: who comes, above the bar after the plan. */
function coming(steps, name, width) {
  const [first, ...others] = steps.filter(({ to }) => to === name);
  if (first === undefined) return '';
  return `+ ${shortened(first.serverName, width / 3)}${others.length === 0 ? '' : ` and ${others.length} more`}`;
}

/** @param steps those that are chosen; `statusOf` says how far each is */
export function ribbons(picture, { steps, policy, aggregate, statusOf }) {
  const width = Math.max(300, Math.min(innerWidth, 2600) - 64);
  const names = width < NARROW ? 0 : NAMES;
  const above = names === 0 ? NAME_ABOVE : 0;
  const side = width < NARROW ? width * 0.3 : SIDE;
  const { threshold, policy: policyName } = picture.policies[policy];
  const before = valuesAfter(picture, [], policy);
  const after = valuesAfter(picture, steps, policy);
  const touched = [...new Set(steps.flatMap(({ from, to }) => [from, to]))].sort(
    (a, b) => (before.get(b) ?? 0) - (before.get(a) ?? 0),
  );
  const [bandBefore, bandAfter] = [before, after].map((values) => bandOf(countedValues(picture, values), threshold));
  const top = Math.max(1e-6, ...touched.map((name) => Math.max(before.get(name) ?? 0, after.get(name) ?? 0)));
  const size = (value) => (Math.max(0, value ?? 0) / top) * side;
  const left = names + 44 + side;
  const right = width - 44 - side;
  const row = new Map(touched.map((name, i) => [name, TOP + above + i * (ROW + above)]));
  const height = TOP + touched.length * (ROW + above);
  const out = new Map();
  const come = new Map();
  const labelled = new Map();
  const texts = [];
  const place = (map, name, thick) => {
    const used = map.get(name) ?? 2;
    map.set(name, used + thick);
    return row.get(name) + Math.min(BAR - 2, used) + thick / 2;
  };
  const most = Math.max(1e-9, ...steps.map(({ weights }) => weights[policyName]?.source ?? 0));
  const drawn = steps.map((step) => {
    const thick = 1.5 + ((step.weights[policyName]?.source ?? 0) / most) * 6;
    const [y1, y2] = [place(out, step.from, thick), place(come, step.to, thick)];
    const [x1, x2] = [left + 4, right - 8];
    const bend = (x2 - x1) * 0.45;
    const said = names > 0 && y2 - (labelled.get(step.to) ?? 0) >= LABEL;
    if (said) {
      labelled.set(step.to, y2);
      // Above all curves, so that none of them crosses a text.
      texts.push(
        svg`<text class="ribbon-name" x=${x2 - 8} y=${y2 - thick / 2 - 3} text-anchor="end">${`${step.step} ${step.serverName} · ${Math.round(copiedMb(step) / 1024)} GiB`}</text>`,
      );
    }
    return svg`<g class="ribbon ${statusOf(step)}" data-step=${step.step}>
      <path d=${`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} stroke-width=${thick}></path>
      <path class="head" d=${`M${x2} ${y2 - 5}l7 5l-7 5z`}></path>
      <title>${`${step.step} ${step.serverName}: ${step.from} → ${step.to}`}</title></g>`;
  });
  const bars = touched.map((name) => {
    const y = row.get(name);
    const [b, a] = [before.get(name) ?? null, after.get(name) ?? null];
    return svg`
      <a href=${link.host(aggregate, name)}><text class="name" x=${names === 0 ? 0 : 8} y=${names === 0 ? y - 5 : y + 20}>${names === 0 ? shortened(name, width / 3) : name}</text></a>
      ${names === 0 ? svg`<text class="ribbon-name" x=${width} y=${y - 5} text-anchor="end">${coming(steps, name, width)}</text>` : ''}
      <rect class=${sideOf(b, bandBefore)} x=${left - size(b)} y=${y} width=${size(b)} height=${BAR} rx="2"></rect>
      <text class="dim" x=${left - size(b) - 5} y=${y + 19} text-anchor="end">${b === null ? '?' : b.toFixed(2)}</text>
      <rect class=${sideOf(a, bandAfter)} x=${right} y=${y} width=${size(a)} height=${BAR} rx="2"></rect>
      <text class="dim" x=${right + size(a) + 5} y=${y + 19}>${a === null ? '?' : a.toFixed(2)}</text>`;
  });
  const said = (text, band) => (names === 0 || band === null ? text : `${text} · band ${edgesOf(band)}`);
  const bandRect = (band, x) =>
    band === null
      ? ''
      : svg`<rect class="band" x=${x(band)} width=${Math.max(0, Math.min(side + 40, size(band.high)) - size(Math.max(0, band.low)))} y=${TOP - 6} height=${height - TOP + 4}></rect>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Picture of the plan">
    <svg class="ribbons" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${`${steps.length} moves between ${touched.length} hosts; the table has the numbers`}>
      ${bandRect(bandBefore, (band) => left - Math.min(side + 40, size(band.high)))}${bandRect(bandAfter, (band) => right + size(Math.max(0, band.low)))}
      <text class="dim" x=${left} y="12" text-anchor="end">${said(`${policyName} before`, bandBefore)}</text><text class="dim" x=${right} y="12">${said('after', bandAfter)}</text>
      ${drawn}${bars}${texts}</svg></div>`;
}
