/** Lines over time. A table beside the chart says the same in words. */
import uPlot from './lib/uplot.js';
import { merged } from './markGroups.js';
import { timesOf } from './moment.js';
import { clockTime, localTime } from './parts.js';
import { nearestTo } from './range.js';
import { ratioAt } from './ratio.js';
import { lineText } from './words.js';

const HEIGHT = 240;
/** Least distance of times on the axis, in pixels. */
const TICK_SPACE = 90;
/** The chart of each element; those that have left the page are ended, because a chart listens to the window. */
const shown = new Map();
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const darkScheme = matchMedia('(prefers-color-scheme: dark)');
/**
 * The colour of each token, by the scheme and its name. When the scheme changes, the browser reports a resize before it reports the
 * change: a cache that the change clears would give the resize the colours of the old scheme.
 */
const colours = new Map();
function colour(name) {
  const key = `${darkScheme.matches} ${name}`;
  const known = colours.get(key) ?? resolved(name);
  colours.set(key, known);
  return known;
}

/** A token as a colour that a canvas understands: `light-dark()` is resolved by an element. */
function resolved(name) {
  const probe = document.createElement('span');
  probe.style.color = token(name);
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** The lines of each series, the same ones for every moment that a person looks at. */
const linesOf = new WeakMap();

/** Per policy its imbalance as a multiple of the threshold of that cycle, at each of the cycles. */
const ratiosOf = ({ policies }) =>
  policies.map((own, i) => ({
    label: own.policy,
    values: own.imbalance.map((_, cycle) => ratioAt(own, cycle)),
    colour: `--c${i % 6}`,
    width: 1.5,
  }));

/**
 * Two lines per policy: as measured, and dashed as it would be if the moves under way were done, which is what the planner counts; and the
 * line of the thresholds.
 */
function ratioLines(series) {
  const known = linesOf.get(series);
  if (known !== undefined) return known;
  const { promised } = timesOf(series);
  const beside = promised.map((own, i) => own || promised[i - 1] === true || promised[i + 1] === true);
  const ratios = ratiosOf(series);
  const kept = (values, keeps) => values.map((value, i) => (keeps(i) ? value : null));
  const lines = {
    ratios,
    drawn: [
      ...ratios.map((line) => ({ ...line, values: kept(line.values, (i) => !promised[i]) })),
      ...(promised.includes(true)
        ? ratios.map((line) => ({ ...line, values: kept(line.values, (i) => beside[i]), dash: [3, 3] }))
        : []),
      { label: '1.00×', values: series.times.map(() => 1), colour: '--dim', width: 1, dash: [4, 4] },
    ],
  };
  linesOf.set(series, lines);
  return lines;
}

/** Imbalances as multiples of their thresholds. @param moment what the time bar shows of them */
export const drawImbalance = (element, series, utc, moment) => {
  const { ratios, drawn: lines } = ratioLines(series);
  const { starts, promised } = timesOf(series);
  scrubbers.set(element, { starts, promised, ratios, ...moment });
  // Now the names of the lines stand to the right of their ends: no line and no mark crosses them.
  const longest = Math.max(0, ...ratios.map(({ label }) => label.length));
  const room = moment.at === null ? Math.min(170, 52 + 6.5 * longest) : 12;
  drawLines(element, { times: series.times, lines, utc, ...SCRUBBER, padding: [null, room, null, null] });
};

/** Marks have a place of their own below the lines: this share of the height. */
const MARKS = 0.32;
/** The least height and width of a mark, in pixels: a finger hits it. */
const HIT = 24;

/** The time bar: lines with their names, marks of what happened, a line at the chosen moment; a click chooses one. */
const SCRUBBER = {
  height: 140,
  scales: {
    x: { range: (plot) => partOf(plot.root.parentElement) },
    y: { range: (_, __, highest) => [-MARKS * 1.08 * Math.max(1.2, highest), 1.08 * Math.max(1.2, highest)] },
  },
  legend: { show: false },
  cursor: { y: false },
  hooks: {
    init: [
      (plot) =>
        plot.over.addEventListener('click', (event) => {
          const { goTo, starts } = scrubbers.get(plot.root.parentElement) ?? {};
          const ms = plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, 'x') * 1000;
          const index = nearestTo(starts, ms);
          goTo?.(index === starts.length - 1 ? null : index);
        }),
    ],
    draw: [
      (plot) => {
        const scrubber = scrubbers.get(plot.root.parentElement);
        if (scrubber === undefined) return;
        align(plot, scrubber);
        mark(plot, scrubber);
        link(plot, scrubber);
      },
    ],
  },
};
/** By element: what its marks are of. */
const scrubbers = new WeakMap();

/** The part of the time that the chart of an element shows, in seconds; none where it shows all. */
function partOf(element) {
  const part = scrubbers.get(element)?.part;
  return part === undefined ? [] : [part.fromMs / 1000, part.toMs / 1000];
}

/** By the element of the links: where they stand, and what they mark. */
const linked = new WeakMap();

/** How many texts of one mark are shown. */
const MOST_TEXTS = 6;
const textsOf = (marks) =>
  [
    ...marks.slice(0, MOST_TEXTS).map(({ text }) => text),
    ...(marks.length > MOST_TEXTS ? [`and ${marks.length - MOST_TEXTS} more`] : []),
  ].join('\n');

/** A mark: a link to why; of several, a button that shows the time of them all. */
function markOf({ x, kind, marks }, { open, starts }) {
  const [first] = marks;
  const element = document.createElement(marks.length === 1 ? 'a' : 'button');
  element.className = `mark ${kind}`;
  element.title = textsOf(marks);
  element.tabIndex = -1;
  element.style.left = `${x}px`;
  if (marks.length === 1) element.href = first.href;
  else {
    element.type = 'button';
    element.textContent = String(marks.length);
    const last = marks.at(-1);
    const room = Math.max(2000, 0.2 * (last.ms - first.ms));
    const part = { fromMs: first.ms - room, toMs: last.ms + room };
    element.addEventListener('click', () => open({ index: nearestTo(starts, first.ms), part }));
  }
  // The chart behind it would choose a moment.
  element.addEventListener('click', (event) => event.stopPropagation());
  return element;
}

/** Links at the foot of the chart, one per mark. The lists of the page name them all: these are not in the order of the keys. */
function link(plot, scrubber) {
  const { marks } = scrubber;
  const over = plot.over.querySelector('.marks') ?? document.createElement('div');
  over.className = 'marks';
  plot.over.append(over);
  const { min, max } = plot.scales.x;
  const before = linked.get(over);
  if (before?.marks === marks && before.min === min && before.max === max && before.width === plot.width) return;
  linked.set(over, { marks, min, max, width: plot.width });
  // Marks of events since the chart was drawn stand at the end.
  const shownMarks = marks
    .filter(({ ms }) => ms >= min * 1000 && (ms <= max * 1000 || max >= scrubber.starts.at(-1) / 1000))
    .map((one) => ({ ...one, ms: Math.min(one.ms, max * 1000) }));
  const x = (ms) => plot.valToPos(ms / 1000, 'x');
  over.replaceChildren(...merged(shownMarks, x, HIT).map((group) => markOf(group, scrubber)));
}

/** Tells the style of the slider below where the cycles are: its thumb stands under the moment that it means. */
function align(plot, { ends }) {
  const { style } = plot.root.closest('.timebar');
  const [from, to] = ends.map((ms) => plot.valToPos(ms / 1000, 'x'));
  style.setProperty('--from', `${plot.bbox.left / (devicePixelRatio || 1) + from}px`);
  style.setProperty('--span', `${to - from}px`);
}

/** The line at the chosen moment, and beside it, or at the end of the lines, what each of them is there. */
function mark(plot, { starts, promised, at, part, ratios }) {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio || 1;
  const x = (index) => plot.valToPos(starts[index] / 1000, 'x', true);
  const index =
    at !== null && at >= 0
      ? at
      : starts.findLastIndex((start, i) => start <= part.toMs && ratios.some(({ values }) => values[i] !== null));
  if (index < 0 || starts[index] < part.fromMs || starts[index] > part.toMs) return;
  ctx.save();
  if (at !== null) {
    ctx.fillStyle = colour('--text');
    ctx.fillRect(x(index) - scale, bbox.top, 2 * scale, bbox.height);
  }
  ctx.font = `${11 * scale}px sans-serif`;
  const named = ratios
    .flatMap(({ label, values, colour: name }) =>
      values[index] == null
        ? []
        : [
            {
              text: lineText(label, values[index], at !== null && promised[index]),
              value: values[index],
              own: colour(name),
            },
          ],
    )
    .toSorted((a, b) => b.value - a.value);
  const widest = Math.max(0, ...named.map(({ text }) => ctx.measureText(text).width));
  // On the side that has room.
  const right = at === null || x(index) + widest + 14 * scale < bbox.left + bbox.width;
  ctx.textAlign = right ? 'left' : 'right';
  // The highest first, and each below the one before: never on each other.
  let y = bbox.top;
  const placed = named.map((one) => {
    y = Math.max(y + 12 * scale, plot.valToPos(one.value, 'y', true) + 4 * scale);
    return { ...one, y, width: ctx.measureText(one.text).width };
  });
  const from = x(index) + (right ? 8 : -8) * scale;
  ctx.fillStyle = colour('--card');
  ctx.globalAlpha = 0.85;
  for (const { y: foot, width } of placed)
    ctx.fillRect(right ? from - 2 * scale : from - width - 2 * scale, foot - 10 * scale, width + 4 * scale, 13 * scale);
  ctx.globalAlpha = 1;
  for (const { text, value, own, y: foot } of placed) {
    ctx.fillStyle = own;
    ctx.fillText(text, from, foot);
    ctx.beginPath();
    ctx.arc(x(index), plot.valToPos(value, 'y', true), 3 * scale, 0, 2 * Math.PI);
    ctx.fill();
  }
  ctx.restore();
}

/** Below zero there are only marks. */
const fromZero = (_, splits) => splits.map((split) => (split < 0 ? null : split));

/** The axes of time and of values. */
function axesOf(height) {
  const axis = {
    stroke: colour('--dim'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line') },
  };
  const moment = (seconds) => localTime(new Date(seconds * 1000).toISOString());
  /** The time of day, with seconds where the ticks are that near; the day where it is another one than before. */
  const ticks = (_, splits, __, ___, step) =>
    splits.map((seconds, i) => {
      const { day, time } = moment(seconds);
      if (step >= 86_400) return day;
      const before = i === 0 ? { day: '', time: '' } : moment(splits[i - 1]);
      // Ticks of less than a second have no time of their own.
      const clock = before.time === time ? '' : step < 60 ? time : time.slice(0, 5);
      return before.day === day ? clock : `${clock}\n${day}`;
    });
  return [
    { ...axis, values: ticks, space: TICK_SPACE },
    {
      ...axis,
      space: height < HEIGHT ? 16 : 30,
      filter: fromZero,
      grid: { ...axis.grid, filter: fromZero },
      ticks: { ...axis.ticks, filter: fromZero },
    },
  ];
}

/** So few samples are drawn as points, too. */
const FEW = 12;

/** Draws into the element, or updates what is there. uPlot takes the other properties of the chart as its options. */
export function drawLines(element, { times, lines, utc, height = HEIGHT, ...options }) {
  const key = JSON.stringify([
    lines.map(({ label, dash }) => [label, dash === undefined]),
    utc,
    darkScheme.matches,
    times.length <= FEW,
    options.padding,
  ]);
  const [partFrom, partTo] = partOf(element);
  const before = shown.get(element);
  const width = Math.max(240, element.clientWidth);
  const sources = [times, ...lines.map(({ values }) => values)];
  const same = before?.key === key && sources.every((source, i) => source === before.sources[i]);
  if (same && before.plot.width === width) {
    // Only the marks over the lines or the shown part have changed, such as the chosen moment.
    const { min, max } = before.plot.scales.x;
    if (partFrom === undefined || (min === partFrom && max === partTo)) before.plot.redraw(false, false);
    else before.plot.setScale('x', { min: partFrom, max: partTo });
    return;
  }
  const data = [times.map((time) => Date.parse(time) / 1000), ...sources.slice(1)];
  if (before?.key === key) {
    if (!same) before.plot.setData(data);
    if (before.plot.width !== width) before.plot.setSize({ width, height });
    shown.set(element, { ...before, sources });
    return;
  }
  before?.plot.destroy();
  const value = (_, v) => (v === null || v === undefined ? '' : v.toFixed(3));
  const plot = new uPlot(
    {
      width,
      height,
      // The last time of the axis is not cut.
      padding: [null, 34, null, null],
      // One sample has no range of its own.
      scales: {
        x: { range: ({ data }, first, last) => (data[0].length > 1 ? [first, last] : [first - 30, first + 30]) },
      },
      // Without a cursor, the legend shows the newest values.
      hooks: { ready: [(own) => own.setLegend({ idx: own.data[0].length - 1 })] },
      ...options,
      tzDate: (seconds) => (utc ? uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') : new Date(seconds * 1000)),
      axes: axesOf(height),
      series: [
        { value: (_, seconds) => (seconds === null ? '' : clockTime(new Date(seconds * 1000).toISOString())) },
        ...lines.map(({ values: _, colour: name, ...line }) => ({
          ...line,
          stroke: colour(name),
          // Few samples are seen as what they are: no trend.
          points: { show: times.length <= FEW, size: 5 },
          value,
        })),
      ],
    },
    data,
    element,
  );
  shown.set(element, { key, plot, sources });
}

function endGone() {
  for (const [element, { plot }] of shown)
    if (!element.isConnected) {
      plot.destroy();
      shown.delete(element);
    }
}

/** For `ref`: calls `draw` with the element once it is in the page and has its width. */
export const drawn = (draw) => (element) =>
  queueMicrotask(() => (element === undefined ? endGone() : element.isConnected && draw(element)));
