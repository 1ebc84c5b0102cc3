import { byText, DAY_MS, iso } from '@kronos/contracts';
import { escaped } from './markup.ts';
import type { WhatIfCycle, WorldCycle } from './whatIfRun.ts';

const WIDTH = 960;
const LEFT = 64;
const RIGHT = 16;
const PLOT = WIDTH - LEFT - RIGHT;
const IMBALANCE = 200;
const MOVES = 110;
const HEAD = 48;
const GAP = 36;
const FOOT = 44;
const HEIGHT = HEAD + IMBALANCE + GAP + MOVES + FOOT;
/** Told apart by people who see colours differently too, and by the dashes. */
const STYLES = [
  { colour: '#4477aa', dash: '' },
  { colour: '#cc3311', dash: '6 3' },
];

/** The two sides of a chart. */
export type ChartLabels = {
  /** The two lines. */
  readonly names: readonly [string, string];
  readonly title: string;
  /** The measure of the upper lines. Default: the combined imbalance. */
  readonly axis?: string;
  /** Heading of an aggregate's part. */
  readonly heading: (aggregate: string) => string;
};

/** A what-if beside what was recorded. */
export const whatIfLabels = (change: string): ChartLabels => ({
  names: ['recorded', 'simulated'],
  title: `Simulated: ${change}`,
  heading: (aggregate) => `${aggregate}: ${change} (simulated)`,
});

/** A cycle of both lines: the combined imbalance, and the moves that began in it. */
export type ChartCycle = {
  readonly aggregate: string;
  readonly timeMs: number;
  readonly both: readonly [Drawn, Drawn];
};
type Drawn = Pick<WorldCycle, 'combined' | 'moves'>;

type Point = { readonly atMs: number; readonly value: number };

/** The points of a line that are drawn in one column of the picture: those that its shape there follows from. */
type Column = {
  readonly index: number;
  first: Point;
  min: Point;
  max: Point;
  last: Point;
};

/** One world of one aggregate, thinned out to what can be seen: a column of pixels takes the same room whatever is in it. */
class Lines {
  /** Columns of the imbalance; null where the line breaks. */
  readonly imbalance: (Column | null)[] = [];
  /** Moves in total, after the last cycle of each column. */
  readonly moves: { readonly index: number; atMs: number; total: number }[] = [];
  total = 0;
  highest = 0;

  add(index: number, atMs: number, { combined, moves }: Drawn): void {
    this.total += moves;
    const stair = this.moves.at(-1);
    // The first stair starts at 0, in a place of its own.
    if (stair === undefined || stair.index !== index || this.moves.length === 1)
      this.moves.push({ index, atMs, total: this.total });
    else Object.assign(stair, { atMs, total: this.total });
    const column = this.imbalance.at(-1);
    if (combined === null) {
      if (column !== null && column !== undefined && column.index !== index) this.imbalance.push(null);
      return;
    }
    this.highest = Math.max(this.highest, combined);
    const point = { atMs, value: combined };
    if (column === null || column === undefined || column.index !== index)
      this.imbalance.push({ index, first: point, min: point, max: point, last: point });
    else {
      if (combined < column.min.value) column.min = point;
      if (combined > column.max.value) column.max = point;
      column.last = point;
    }
  }
}

/**
 * Imbalance and moves over time, two lines each, one picture below the other for each aggregate. It is drawn from cycles that
 * come one by one; what it keeps does not grow with their number.
 */
export class CycleChart {
  readonly #sinceMs: number;
  readonly #untilMs: number;
  readonly #byAggregate = new Map<string, readonly Lines[]>();

  /** @param extent times of the first and the last cycle, in ms since the epoch */
  constructor({ sinceMs, untilMs }: { readonly sinceMs: number; readonly untilMs: number }) {
    this.#sinceMs = sinceMs;
    this.#untilMs = untilMs;
  }

  add({ aggregate, timeMs, both }: ChartCycle): void {
    const lines = this.#byAggregate.get(aggregate) ?? both.map(() => new Lines());
    this.#byAggregate.set(aggregate, lines);
    const index = Math.floor(this.#x(timeMs));
    for (const [i, drawn] of both.entries()) lines[i]?.add(index, timeMs, drawn);
  }

  /** The chart as an SVG document. */
  svg(labels: ChartLabels): string {
    const charted = [...this.#byAggregate].sort(([a], [b]) => byText(a, b));
    const height = Math.max(1, charted.length) * HEIGHT;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
      `<title>${escaped(labels.title)}</title>`,
      `<rect width="100%" height="100%" fill="white"/>`,
      ...charted.map(
        ([aggregate, lines], i) =>
          `<g transform="translate(0 ${i * HEIGHT})">\n${this.#panel(lines, labels.heading(aggregate), labels)}\n</g>`,
      ),
      '</svg>',
      '',
    ].join('\n');
  }

  #x(ms: number): number {
    const span = this.#untilMs - this.#sinceMs;
    return LEFT + (span <= 0 ? 0 : ((ms - this.#sinceMs) / span) * PLOT);
  }

  #panel(lines: readonly Lines[], heading: string, { names, axis: shown = 'combined imbalance' }: ChartLabels): string {
    const x = (ms: number): number => this.#x(ms);
    const imbalance = scale(Math.max(...lines.map(({ highest }) => highest)), HEAD + IMBALANCE, IMBALANCE);
    const moves = scale(Math.max(...lines.map(({ total }) => total)), HEAD + IMBALANCE + GAP + MOVES, MOVES);
    return [
      text(LEFT, 18, heading, 'font-size="14" font-weight="bold"'),
      ...STYLES.map(({ colour, dash }, i) =>
        [
          `<path d="M${WIDTH - 220 + i * 110} 14h24" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/>`,
          text(WIDTH - 190 + i * 110, 18, names[i] ?? ''),
        ].join(''),
      ),
      axis(shown, imbalance, HEAD + IMBALANCE, IMBALANCE),
      axis('moves, in total', moves, HEAD + IMBALANCE + GAP + MOVES, MOVES),
      ...timeTicks(this.#sinceMs, this.#untilMs).map(({ ms, label }) =>
        [
          `<path d="M${px(x(ms))} ${HEAD}V${HEIGHT - FOOT}" stroke="#eee"/>`,
          text(px(x(ms)), HEIGHT - FOOT + 18, label, 'text-anchor="middle"'),
        ].join(''),
      ),
      ...STYLES.map(({ colour, dash }, i) => {
        const own = lines[i] ?? new Lines();
        const stairs = own.moves.map(({ atMs, total }, n) =>
          n === 0 ? `M${px(x(atMs))} ${px(moves.y(0))}V${px(moves.y(total))}` : `H${px(x(atMs))}V${px(moves.y(total))}`,
        );
        const style = `fill="none" stroke="${colour}" stroke-width="1.5" stroke-dasharray="${dash}"`;
        return [
          `<path d="${line(own.imbalance, x, imbalance.y)}" ${style}/>`,
          `<path d="${stairs.join('')}" ${style}/>`,
        ].join('\n');
      }),
    ].join('\n');
  }
}

/** A cycle of a what-if for a chart: the recorded decision, and the simulated one. */
export const whatIfDrawn = ({ aggregate, timeMs, recorded, simulated }: WhatIfCycle): ChartCycle => ({
  aggregate,
  timeMs,
  both: [recorded, simulated],
});

/** A line through the points of the columns; it breaks where there are none. */
function line(columns: readonly (Column | null)[], x: (ms: number) => number, y: (value: number) => number): string {
  let pen = 'M';
  let path = '';
  for (const column of columns) {
    if (column === null) {
      pen = 'M';
      continue;
    }
    const points = new Set([column.first, column.min, column.max, column.last]);
    for (const { atMs, value } of [...points].sort((a, b) => a.atMs - b.atMs)) {
      path += `${pen}${px(x(atMs))} ${px(y(value))}`;
      pen = 'L';
    }
  }
  return path;
}

type Scale = { readonly y: (value: number) => number; readonly ticks: readonly number[] };

/** From 0 to a round number at or above the highest value. */
function scale(highest: number, bottom: number, height: number): Scale {
  const rough = (highest > 0 ? highest : 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  const steps = Math.max(1, Math.ceil((highest > 0 ? highest : 1) / step - 1e-9));
  return {
    y: (value) => bottom - (value / (steps * step)) * height,
    ticks: Array.from({ length: steps + 1 }, (_, i) => i * step),
  };
}

function axis(name: string, { y, ticks }: Scale, bottom: number, height: number): string {
  return [
    text(LEFT, bottom - height - 8, name),
    ...ticks.map((tick) =>
      [
        `<path d="M${LEFT} ${px(y(tick))}h${PLOT}" stroke="#ddd"/>`,
        text(LEFT - 8, px(y(tick)) + 4, String(Number(tick.toPrecision(3))), 'text-anchor="end"'),
      ].join(''),
    ),
  ].join('\n');
}

const TICKS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * 60_000);

function timeTicks(since: number, until: number): { ms: number; label: string }[] {
  const step = TICKS_MS.find((ms) => (until - since) / ms <= 8) ?? Math.ceil((until - since) / 8 / DAY_MS) * DAY_MS;
  const ticks: { ms: number; label: string }[] = [];
  let day = '';
  for (let ms = Math.ceil(since / step) * step; ms <= until; ms += step) {
    const text = iso(ms);
    const label = text.slice(0, 10) === day ? text.slice(11, 16) : `${text.slice(5, 10)} ${text.slice(11, 16)}`;
    day = text.slice(0, 10);
    ticks.push({ ms, label });
  }
  return ticks;
}

const px = (value: number): number => Math.round(value * 10) / 10;

const text = (x: number, y: number, content: string, attributes = ''): string =>
  `<text x="${x}" y="${y}" fill="#222"${attributes === '' ? '' : ` ${attributes}`}>${escaped(content)}</text>`;
