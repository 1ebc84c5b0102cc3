/**
 * The one picture of balance: hosts as bars, the highest first, and the band that the threshold allows. A flat skyline is a balanced
 * aggregate. Colours say only: above, inside or below the band.
 */
import { html, svg } from './lib/lit-html.js';
import { count, edgesOf, measureText } from './words.js';

/** The band that a threshold allows around the middle of the values; null: there are none. */
export function bandOf(values, threshold) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return null;
  const middle = (known.reduce((a, b) => Math.min(a, b)) + known.reduce((a, b) => Math.max(a, b))) / 2;
  return { low: middle - threshold / 2, high: middle + threshold / 2 };
}

/** Where a value is. Values on the edge of the band are inside it, as an imbalance at its threshold is. */
export const sideOf = (value, band) =>
  value === null || band === null
    ? 'none'
    : value > band.high + 1e-6
      ? 'warm'
      : value < band.low - 1e-6
        ? 'cold'
        : 'even';

/** One sentence, for those who do not see the picture. */
function sentenceOf(policy, values, threshold) {
  const band = bandOf(values, threshold);
  if (band === null) return `${policy}: no host has a value`;
  const sides = values.map((value) => sideOf(value, band));
  const above = sides.filter((side) => side === 'warm').length;
  const below = sides.filter((side) => side === 'cold').length;
  return above + below === 0
    ? `${policy}: all of ${count(values.length, 'host')} inside the band`
    : `${policy}: ${above} of ${count(values.length, 'host')} above the band, ${below} below`;
}

/** One path for all bars of a side: a fleet has tens of thousands of hosts. */
const SIDES = ['warm', 'even', 'cold'];
const fixed = (value) => value.toFixed(2);

/** A picture in a cell of a table has its part of a wide screen. */
const cellWidth = () => Math.round(Math.max(150, Math.min(320, innerWidth / 10)));

/** The highest value that a skyline shows: skylines beside each other have the highest of them all, so that equal bars are equal values. */
export const topOf = ({ values, threshold }) => Math.max(values[0] ?? 0, bandOf(values, threshold)?.high ?? 0, 1e-9);

/** A small skyline: a cell of a table. `values`: the highest first. `marked`: the index of one that is meant. */
export function skyline(shown, { width = cellWidth(), height = 34, scale = topOf(shown) } = {}) {
  const { policy, values, threshold, marked } = shown;
  const band = bandOf(values, threshold);
  if (band === null) return html`<span class="dim">no value</span>`;
  const top = scale * 1.04;
  const y = (value) => height - (Math.max(0, value) / top) * height;
  const step = width / values.length;
  const gap = step > 4 ? 1.5 : 0;
  const wide = Math.max(0.5, step - gap);
  const bar = (value, i) => {
    const high = Math.min(y(value), height - 1);
    return `M${fixed(i * step)} ${height}V${fixed(high)}h${fixed(wide)}V${height}z`;
  };
  return html`<svg class="skyline" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img"
    aria-label=${sentenceOf(policy, values, threshold)}>
    ${svg`<rect class="band" x="0" width=${width} y=${y(band.high)} height=${Math.max(1, y(band.low) - y(band.high))}></rect>`}
    ${SIDES.map((side) => {
      const d = values.flatMap((value, i) => (sideOf(value, band) === side ? [bar(value, i)] : [])).join('');
      return d === '' ? '' : svg`<path class=${side} d=${d}></path>`;
    })}
    ${marked === undefined ? '' : svg`<path class="marked" d=${bar(values[marked], marked)}></path>`}
    ${svg`<path class="edge-of-band" d=${`M0 ${y(band.high)}H${width}M0 ${y(Math.max(0, band.low))}H${width}`}></path>`}
  </svg>`;
}

/** Fewer points are no trend. */
const LEAST_TREND = 3;

/**
 * A line of the ratio over time, with the line at 1.
 *
 * @param promised how many of the last points count moves under way as done: they are dashed
 */
export function sparkline(points, promised) {
  const [width, height] = [cellWidth(), 30];
  const known = points.filter((point) => point !== null);
  if (known.length < LEAST_TREND) return html`<span class="dim">${count(known.length, 'cycle')}</span>`;
  const top = Math.max(1.2, ...known) * 1.05;
  const y = (value) => height - 3 - (value / top) * (height - 6);
  const x = (i) => 2 + (i / (points.length - 1)) * (width - 6);
  const path = (from, to) =>
    `M${points
      .flatMap((point, i) =>
        point === null || i < from || i >= to ? [] : [`${x(i).toFixed(1)} ${y(point).toFixed(1)}`],
      )
      .join('L')}`;
  const measured = points.length - promised;
  const last = known.at(-1);
  return html`<svg class="sparkline" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img"
    aria-label=${`Imbalance over at most 6 hours: from ${known[0].toFixed(2)} to ${last.toFixed(2)} times the threshold${promised > 0 ? ', with the moves under way counted as done' : ''}`}>
    ${svg`<path class="edge-of-band" d=${`M0 ${y(1)}H${width}`}></path>
    ${measured > 0 ? svg`<path class=${last > 1 ? 'high' : 'low'} d=${path(0, measured)}></path>` : ''}
    ${promised > 0 ? svg`<path class=${`promised ${last > 1 ? 'high' : 'low'}`} d=${path(Math.max(0, measured - 1), points.length)}></path>` : ''}
    <circle class=${last > 1 ? 'high' : 'low'} cx=${x(points.length - 1)} cy=${y(last)} r="2.2"></circle>`}
  </svg>`;
}

const SIDE_WORDS = { warm: 'above the band', inside: 'inside it', cold: 'below it (has room)' };

/**
 * Explains the bars, the colours and the figures of balance.
 *
 * @param band the one that is drawn; null: there are several
 * @param planned the one after a plan that is not drawn as done; null: none
 * @param policy the one that is drawn; null: there are several
 * @param digits decimals of the edges
 */
export const balanceLegend = ({
  band = null,
  planned = null,
  policy = null,
  digits = 0,
} = {}) => html`<p class="dim">${policy === null ? 'A bar is a host: its height is the share of the host that is in use or allocated, as the policy measures it.' : measureText(policy)}
  ${['warm', 'inside', 'cold'].map((side) => html`<span class="whole"><span class="swatch ${side}"></span> ${SIDE_WORDS[side]}</span>, `)}<span class="whole"><span class="swatch closed-host"></span> takes no VM and is not counted</span>.
  <span class="whole"><span class="swatch band"></span> The band</span>${band === null ? '' : `, ${edgesOf(band, digits)}${planned === null ? '' : ` (${edgesOf(planned, digits)} after the plan)`},`} is as wide as the threshold, halfway between the highest and the lowest host: balanced is when all are inside, at 1.00× or less of the threshold.</p>`;
