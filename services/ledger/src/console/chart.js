/** Lines over time. A table beside the chart says the same in words. */
import { nowMs } from './api.js';
import uPlot from './lib/uplot.js';
import { clockTime, localTime } from './parts.js';

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

/** By series: its lines, the same ones for every moment that is looked at. */
const linesOf = new WeakMap();

/** One line per policy, its imbalance as a multiple of the threshold of that cycle; and the line of the thresholds. */
function ratioLines(series) {
  const known = linesOf.get(series);
  if (known !== undefined) return known;
  const ratios = series.policies.map(({ policy, imbalance, threshold }, i) => ({
    label: policy,
    values: imbalance.map((value, k) => (value === null || !(threshold[k] > 0) ? null : value / threshold[k])),
    colour: `--c${i % 6}`,
    width: 1.5,
  }));
  const lines = [
    ...ratios,
    { label: '1.00×', values: series.times.map(() => 1), colour: '--dim', width: 1, dash: [4, 4] },
  ];
  linesOf.set(series, lines);
  return lines;
}

/** Imbalances as multiples of their thresholds. */
export const drawImbalance = (element, series, utc, moment) => {
  scrubbers.set(element, { times: series.times, ...moment });
  drawLines(element, { times: series.times, lines: ratioLines(series), utc, ...SCRUBBER });
};

/** Room for the names beside the ends of the lines, in pixels: no line and no mark crosses them. */
const namesRoom = ({ series }) => {
  const longest = Math.max(
    0,
    ...series.slice(1).flatMap(({ label, dash }) => (dash === undefined ? [label.length] : [])),
  );
  return Math.min(170, 52 + 6.5 * longest);
};

/** The time bar: lines with their names at the end, marks of plans, a line at the chosen moment; a click chooses one. */
const SCRUBBER = {
  height: 120,
  padding: [null, namesRoom, null, null],
  // Up to now: what happened since the last cycle has its place, and cycles that are missing are seen.
  scales: { x: { range: ({ data }, first) => [first, Math.max(data[0].at(-1), nowMs() / 1000, first + 1)] } },
  legend: { show: false },
  cursor: { y: false },
  hooks: {
    init: [
      (plot) =>
        plot.over.addEventListener('click', () => {
          const { goTo, times } = scrubbers.get(plot.root.parentElement) ?? {};
          if (plot.cursor.idx !== null) goTo?.(plot.cursor.idx === times.length - 1 ? null : plot.cursor.idx);
        }),
    ],
    draw: [
      (plot) => {
        const scrubber = scrubbers.get(plot.root.parentElement);
        if (scrubber === undefined) return;
        align(plot, scrubber);
        mark(plot, scrubber);
        link(plot, scrubber.marks ?? NO_MARKS);
      },
    ],
  },
};
/** By element: what its marks are of. */
const scrubbers = new WeakMap();

const NO_MARKS = [];
/** By the element of the links: where they stand, and what they mark. */
const linked = new WeakMap();

/** Links at the foot of the chart, one per mark. The lists of the page name them all: these are not in the order of the keys. */
function link(plot, marks) {
  const over = plot.over.querySelector('.marks') ?? document.createElement('div');
  over.className = 'marks';
  plot.over.append(over);
  const first = plot.scales.x.min * 1000;
  const last = plot.scales.x.max * 1000;
  const before = linked.get(over);
  if (before?.marks === marks && before.first === first && before.last === last && before.width === plot.width) return;
  linked.set(over, { marks, first, last, width: plot.width });
  over.replaceChildren(
    ...marks
      .filter(({ ms }) => ms >= first)
      .map(({ ms, kind, text, href }) => {
        const a = document.createElement('a');
        a.className = `mark ${kind}`;
        a.title = text;
        a.href = href;
        a.tabIndex = -1;
        // What happened since the chart was drawn stands at the end.
        a.style.left = `${plot.valToPos(Math.min(ms, last) / 1000, 'x')}px`;
        // The chart behind it would choose a moment.
        a.addEventListener('click', (event) => event.stopPropagation());
        return a;
      }),
  );
}

/** Tells the style of the slider below where the cycles are: its thumb stands under the moment that it means. */
function align(plot, { times }) {
  const { style } = plot.root.closest('.timebar');
  const [from, to] = [times[0], times.at(-1)].map((time) => plot.valToPos(Date.parse(time) / 1000, 'x'));
  style.setProperty('--from', `${plot.bbox.left / (devicePixelRatio || 1) + from}px`);
  style.setProperty('--span', `${to - from}px`);
}

function mark(plot, { times, at }) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  const x = (index) => plot.valToPos(Date.parse(times[index]) / 1000, 'x', true);
  ctx.save();
  ctx.font = `${11 * ratio}px sans-serif`;
  ctx.textAlign = 'left';
  // Of a chosen moment, the values of that moment.
  const told = (values) => (at !== null && at >= 0 ? values[at] : values.findLast((value) => value !== null));
  const named = plot.series
    .flatMap(({ label, dash, stroke }, i) => {
      const value = i === 0 || dash !== undefined ? null : told(plot.data[i]);
      return value == null ? [] : [{ label, value, colour: stroke(plot, i) }];
    })
    .toSorted((a, b) => b.value - a.value);
  // The highest first, and each below the one before: never on each other.
  let y = 0;
  for (const { label, value, colour: own } of named) {
    ctx.fillStyle = own;
    y = Math.max(y + 12 * ratio, plot.valToPos(value, 'y', true) + 4 * ratio);
    ctx.fillText(`${label} ${value.toFixed(2)}×`, bbox.left + bbox.width + 6 * ratio, y);
  }
  if (at !== null && at >= 0) {
    ctx.fillStyle = colour('--text');
    ctx.fillRect(x(at) - ratio, bbox.top, 2 * ratio, bbox.height);
  }
  ctx.restore();
}

/** So few samples are drawn as points, too. */
const FEW = 12;

/** Draws into the element, or updates what is there. uPlot takes the other properties of the chart as its options. */
export function drawLines(element, { times, lines, utc, height = HEIGHT, ...options }) {
  const key = JSON.stringify([lines.map(({ label }) => label), utc, darkScheme.matches, times.length <= FEW]);
  const before = shown.get(element);
  const width = Math.max(240, element.clientWidth);
  const sources = [times, ...lines.map(({ values }) => values)];
  const same = before?.key === key && sources.every((source, i) => source === before.sources[i]);
  if (same && before.plot.width === width) {
    // Only what is drawn over the lines has changed, such as the chosen moment.
    before.plot.redraw(false, false);
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
      // Until something is pointed at, the legend tells the newest values.
      hooks: { ready: [(own) => own.setLegend({ idx: own.data[0].length - 1 })] },
      ...options,
      tzDate: (seconds) => (utc ? uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') : new Date(seconds * 1000)),
      axes: [
        { ...axis, values: ticks, space: TICK_SPACE },
        { ...axis, space: height < HEIGHT ? 16 : 30 },
      ],
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
