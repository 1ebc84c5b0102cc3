/** Draws which step waits for which: steps that wait for none on the left, arrows to those that follow. */
import { html, svg } from './lib/lit-html.js';
import { count } from './words.js';

const NODE = { width: 150, height: 26, right: 50, below: 10 };
const TEXT = 20;
const short = (text) => (text.length > TEXT ? `${text.slice(0, TEXT - 1)}…` : text);

/** Column of each step: one behind the last of those that it waits for. */
function columns(steps) {
  const of = new Map();
  // Steps come in an order in which they can be done.
  for (const { taskId, dependsOn } of steps)
    of.set(
      taskId,
      dependsOn.reduce((most, id) => Math.max(most, (of.get(id) ?? -1) + 1), 0),
    );
  return of;
}

export function dependencies(steps) {
  const awaited = new Set(steps.flatMap(({ dependsOn }) => dependsOn));
  const shown = steps.filter(({ taskId, dependsOn }) => dependsOn.length > 0 || awaited.has(taskId));
  if (shown.length === 0) return html`<p class="dim">No step waits for another.</p>`;
  const column = columns(shown);
  const filled = [];
  const places = new Map(
    shown.map(({ taskId }) => {
      const x = column.get(taskId);
      filled[x] = (filled[x] ?? 0) + 1;
      return [taskId, { x: x * (NODE.width + NODE.right), y: (filled[x] - 1) * (NODE.height + NODE.below) }];
    }),
  );
  const width = filled.length * (NODE.width + NODE.right) - NODE.right;
  const height = Math.max(...filled.map((n) => n ?? 0)) * (NODE.height + NODE.below) - NODE.below;
  const edges = shown.flatMap(({ taskId, dependsOn }) =>
    dependsOn.map((id) => {
      const [from, to] = [places.get(id), places.get(taskId)];
      const [x1, y1, x2, y2] = [from.x + NODE.width, from.y + NODE.height / 2, to.x, to.y + NODE.height / 2];
      return svg`<path class="edge" d=${`M${x1} ${y1}C${x1 + 25} ${y1} ${x2 - 25} ${y2} ${x2 - 6} ${y2}`}></path>
        <path class="tip" d=${`M${x2} ${y2}l-7 -4v8z`}></path>`;
    }),
  );
  const nodes = shown.map(({ taskId, step, serverName }) => {
    const { x, y } = places.get(taskId);
    return svg`<g><title>${`Step ${step}: ${serverName}`}</title>
      <rect class="node" x=${x} y=${y} width=${NODE.width} height=${NODE.height} rx="4"></rect>
      <text x=${x + 8} y=${y + 17}>${short(`${step} ${serverName}`)}</text></g>`;
  });
  const waits = shown.filter(({ dependsOn }) => dependsOn.length > 0).length;
  const others = steps.length - shown.length;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Dependencies">
      <svg class="graph" width=${width} height=${height} viewBox=${`-1 -1 ${width + 2} ${height + 2}`} role="img"
        aria-label=${`${count(waits, 'step')} of ${steps.length} wait for others; the column Waits for of the table lists them`}>${edges}${nodes}</svg>
    </div>${others === 0 ? '' : html`<p class="dim">${count(others, 'step')} more: none waits for another, and none is waited for.</p>`}`;
}
