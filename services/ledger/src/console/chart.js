/** A line chart of imbalances over time, as SVG. Plain browser JavaScript: it is served as it stands. */

const NS = 'http://www.w3.org/2000/svg';
const HEIGHT = 240;
const LEFT = 44;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 24;

const node = (name, attributes, text) => {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
};

/** The policies of these decisions, in the order of their first appearance. */
export const policiesOf = (decisions) => [...new Set(decisions.flatMap((d) => d.policies.map((p) => p.policy)))];

/** A value where it is known, and a gap where a policy took no part. */
function pathOf(points, x, y) {
  let path = '';
  let drawing = false;
  for (const { at, value } of points) {
    if (value === null || value === undefined) drawing = false;
    else {
      path += `${drawing ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      drawing = true;
    }
  }
  return path;
}

/** @returns {SVGElement} `width` pixels wide: imbalance per policy with its threshold, the combined imbalance, and a mark at each plan */
export function chart(decisions, fromMs, toMs, width) {
  const seen = decisions.map((d) => ({ ...d, at: Date.parse(d.time) })).filter((d) => d.at >= fromMs);
  const values = seen.flatMap((d) => [d.combined ?? 0, ...d.policies.flatMap((p) => [p.imbalance ?? 0, p.threshold])]);
  const top = Math.max(0.1, ...values) * 1.08;
  const x = (ms) => LEFT + ((ms - fromMs) / (toMs - fromMs)) * (width - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const svg = node('svg', {
    viewBox: `0 0 ${width} ${HEIGHT}`,
    role: 'img',
    'aria-label': `Imbalance of ${policiesOf(seen).join(', ')} over time`,
  });
  for (let i = 0; i <= 4; i++) {
    const value = (top / 1.08) * (i / 4);
    svg.append(node('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
    svg.append(node('text', { x: LEFT - 6, y: y(value) + 4, 'text-anchor': 'end' }, value.toFixed(2)));
  }
  const ticks = width < 600 ? 2 : 4;
  for (let i = 0; i <= ticks; i++) {
    const ms = fromMs + (toMs - fromMs) * (i / ticks);
    const label = new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
    const anchor = i === 0 ? 'start' : i === ticks ? 'end' : 'middle';
    svg.append(node('text', { x: x(ms), y: HEIGHT - 6, 'text-anchor': anchor }, label));
  }
  for (const d of seen) {
    if (d.steps === 0) continue;
    const mark = node('line', { class: 'plan', x1: x(d.at), x2: x(d.at), y1: TOP, y2: HEIGHT - BOTTOM });
    mark.append(node('title', {}, `${d.snapshotId}: ${d.steps === 1 ? '1 move' : `${d.steps} moves`}, ${d.release}`));
    svg.append(mark);
  }
  policiesOf(seen).forEach((policy, i) => {
    const own = seen.map((d) => ({ at: d.at, ...d.policies.find((p) => p.policy === policy) }));
    const threshold = own.map(({ at, threshold: value }) => ({ at, value }));
    const imbalance = own.map(({ at, imbalance: value }) => ({ at, value }));
    svg.append(node('path', { class: `line threshold k${i % 6}`, d: pathOf(threshold, x, y) }));
    svg.append(node('path', { class: `line k${i % 6}`, d: pathOf(imbalance, x, y) }));
  });
  const combined = seen.map((d) => ({ at: d.at, value: d.combined }));
  svg.append(node('path', { class: 'line combined', d: pathOf(combined, x, y) }));
  return svg;
}
