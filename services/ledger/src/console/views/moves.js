import { nowMs, read } from '../api.js';
import { html } from '../lib/lit-html.js';
import { moves as movesTable, section } from '../parts.js';
import { timeline } from '../timeline.js';
import { count } from '../words.js';

/** The newest moves that are listed per aggregate. */
const SHOWN = 30;

/** The moves under way, and the newest moves of every aggregate that had some. */
export const moves = {
  title: () => 'Moves',
  concerns: (change) => change.type.startsWith('migration.') || change.type.startsWith('plan.'),
  async load() {
    const [tasks, { aggregates }] = await Promise.all([read('/tasks?limit=200'), read('/aggregates')]);
    const recent = aggregates
      .filter(({ lastMoveEnd, movesInFlight }) => lastMoveEnd !== null || movesInFlight > 0)
      .toSorted((a, b) => ((a.lastMoveEnd?.at ?? '') < (b.lastMoveEnd?.at ?? '') ? 1 : -1))
      .slice(0, 12);
    const moved = [];
    for (const { name } of recent)
      moved.push(await read(`/aggregates/${encodeURIComponent(name)}/moves?limit=${SHOWN}`));
    return { tasks, moved };
  },
  show: ({ tasks, moved }) => html`
    <h1>Moves</h1>
    ${section(
      'Moving now',
      html`${movesTable(tasks.tasks, ({ aggregate }) => aggregate)}
        ${tasks.total > tasks.tasks.length ? html`<p class="dim">${count(tasks.total - tasks.tasks.length, 'more task')}.</p>` : ''}`,
    )}
    ${moved.filter(({ moves: list }) => list.length > 0).map((one) => timeline(one, nowMs(), `Moves of ${one.aggregate}`))}`,
};
