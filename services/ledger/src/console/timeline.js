/** Moves as a timeline: one row each, with a bar from its start to its end. The columns say the same in words. */
import { html, svg } from './lib/lit-html.js';
import { clockTime, duration, link, named, said, section, table, when } from './parts.js';
import { count } from './words.js';

const outcomes = {
  underWay: ['move', 'under way'],
  completed: ['over', 'completed'],
  warned: ['warn', 'completed with warnings'],
  damaged: ['bad', 'its server was in ERROR'],
  retried: ['warn', 'failed, tried again'],
  failed: ['bad', 'failed'],
  skipped: ['dim', 'skipped'],
};
const WIDTH = 1000;
/** A short move is still seen. */
const LEAST = 6;

function bar({ startedAt, endedAt, outcome }, fromMs, toMs) {
  if (startedAt === null) return '';
  const place = (ms) => ((ms - fromMs) / Math.max(1, toMs - fromMs)) * WIDTH;
  const start = place(Date.parse(startedAt));
  const end = endedAt === null ? WIDTH : place(Date.parse(endedAt));
  const width = Math.max(LEAST, end - start);
  return html`<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
    ${svg`<rect class="track" width="1000" height="10"></rect>
      <rect class=${outcomes[outcome][0]} x=${Math.min(start, WIDTH - width)} width=${width} height="10"></rect>`}
  </svg>`;
}

/** Older moves are shown when a person asks for them. */
const FIRST = 10;

/** Nothing where there are no moves. */
export function timeline({ aggregate, moves, since }, nowMs, title = 'Moves over time') {
  if (moves.length === 0) return '';
  const begun = moves.flatMap(({ startedAt }) => (startedAt === null ? [] : [Date.parse(startedAt)]));
  const fromMs = Math.min(nowMs, ...begun);
  const rows = (caption, some) =>
    table(
      caption,
      [
        ['VM', (m) => named(m.serverName ?? m.serverId, m.serverId, link.vm(aggregate, m.serverId))],
        [
          'From and to',
          (m) =>
            html`<a href=${link.host(aggregate, m.from)}>${m.from}</a> → <a href=${link.host(aggregate, m.to)}>${m.to}</a>`,
        ],
        [begun.length === 0 ? 'When' : `${clockTime(fromMs)} to now`, (m) => bar(m, fromMs, nowMs), 'bars'],
        ['Started', (m) => (m.startedAt === null ? 'never' : when(m.startedAt)), 'when'],
        ['Took', (m) => (m.durationMs === null ? '' : duration(m.durationMs)), 'number'],
        [
          'How it ended',
          (m) =>
            html`<span class=${outcomes[m.outcome][0]}>${outcomes[m.outcome][1]}</span>${m.text === null ? '' : `: ${said(m.text)}`}`,
        ],
      ],
      some,
      '',
    );
  const older = moves.slice(FIRST);
  return section(
    title,
    html`${rows(title, moves.slice(0, FIRST))}
      ${older.length === 0 ? '' : html`<details><summary>${count(older.length, 'older move')}</summary>${rows('Older moves', older)}</details>`}
      ${since === null ? '' : html`<p class="dim">The newest moves among the events since ${clockTime(Math.min(Date.parse(since), fromMs))}.</p>`}`,
    'moves-over-time',
  );
}
