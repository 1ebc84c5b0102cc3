import type { WhatIfCycle, WorldCycle } from './whatIf.ts';

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
const RECORDED = { colour: '#4477aa', dash: '', name: 'recorded' };
const SIMULATED = { colour: '#cc3311', dash: '6 3', name: 'simulated' };

/**
 * Imbalance and moves over time of both worlds, one picture below the other for each aggregate, as an SVG document.
 *
 * @param title what was otherwise
 */
export function whatIfChart(cycles: readonly WhatIfCycle[], title: string): string {
  const lanes = [...Map.groupBy(cycles, (cycle) => cycle.aggregate)];
  const height = Math.max(1, lanes.length) * HEIGHT;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(`Simulated: ${title}`)}</title>`,
    `<rect width="100%" height="100%" fill="white"/>`,
    ...lanes.map(
      ([aggregate, own], i) => `<g transform="translate(0 ${i * HEIGHT})">\n${panel(aggregate, own, title)}\n</g>`,
    ),
    '</svg>',
    '',
  ].join('\n');
}

function panel(aggregate: string, cycles: readonly WhatIfCycle[], title: string): string {
  const since = cycles[0]?.timeMs ?? 0;
  const until = cycles.at(-1)?.timeMs ?? since;
  const x = (ms: number): number => LEFT + (until === since ? 0 : ((ms - since) / (until - since)) * PLOT);
  const worlds = [
    { ...RECORDED, of: (cycle: WhatIfCycle): WorldCycle => cycle.recorded },
    { ...SIMULATED, of: (cycle: WhatIfCycle): WorldCycle => cycle.simulated },
  ];
  const highest = Math.max(0, ...cycles.flatMap((c) => [c.recorded.combined ?? 0, c.simulated.combined ?? 0]));
  const most = Math.max(...worlds.map(({ of }) => cycles.reduce((sum, cycle) => sum + of(cycle).moves, 0)));
  const imbalance = scale(highest, HEAD + IMBALANCE, IMBALANCE);
  const moves = scale(most, HEAD + IMBALANCE + GAP + MOVES, MOVES);
  return [
    text(LEFT, 18, `${aggregate}: ${title} (simulated)`, 'font-size="14" font-weight="bold"'),
    ...worlds.map(({ colour, dash, name }, i) =>
      [
        `<path d="M${WIDTH - 220 + i * 110} 14h24" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/>`,
        text(WIDTH - 190 + i * 110, 18, name),
      ].join(''),
    ),
    axis('combined imbalance', imbalance, HEAD + IMBALANCE, IMBALANCE),
    axis('moves, in total', moves, HEAD + IMBALANCE + GAP + MOVES, MOVES),
    ...timeTicks(since, until).map(({ ms, label }) =>
      [
        `<path d="M${px(x(ms))} ${HEAD}V${HEIGHT - FOOT}" stroke="#eee"/>`,
        text(px(x(ms)), HEIGHT - FOOT + 18, label, 'text-anchor="middle"'),
      ].join(''),
    ),
    ...worlds.map(({ colour, dash, of }) => {
      let total = 0;
      const stairs = cycles.map((cycle, i) => {
        const before = moves.y(total);
        total += of(cycle).moves;
        const at = px(x(cycle.timeMs));
        return i === 0 ? `M${at} ${px(before)}V${px(moves.y(total))}` : `H${at}V${px(moves.y(total))}`;
      });
      const style = `fill="none" stroke="${colour}" stroke-width="1.5" stroke-dasharray="${dash}"`;
      return [
        `<path d="${line(cycles, (cycle) => of(cycle).combined, x, imbalance.y)}" ${style}/>`,
        `<path d="${stairs.join('')}" ${style}/>`,
      ].join('\n');
    }),
  ].join('\n');
}

/** A line through the values; it breaks where there is none. */
function line(
  cycles: readonly WhatIfCycle[],
  value: (cycle: WhatIfCycle) => number | null,
  x: (ms: number) => number,
  y: (value: number) => number,
): string {
  let pen = 'M';
  let path = '';
  for (const cycle of cycles) {
    const at = value(cycle);
    if (at === null) pen = 'M';
    else {
      path += `${pen}${px(x(cycle.timeMs))} ${px(y(at))}`;
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
  const step =
    TICKS_MS.find((ms) => (until - since) / ms <= 8) ?? Math.ceil((until - since) / 8 / 86_400_000) * 86_400_000;
  const ticks: { ms: number; label: string }[] = [];
  let day = '';
  for (let ms = Math.ceil(since / step) * step; ms <= until; ms += step) {
    const iso = new Date(ms).toISOString();
    const label = iso.slice(0, 10) === day ? iso.slice(11, 16) : `${iso.slice(5, 10)} ${iso.slice(11, 16)}`;
    day = iso.slice(0, 10);
    ticks.push({ ms, label });
  }
  return ticks;
}

const px = (value: number): number => Math.round(value * 10) / 10;

const text = (x: number, y: number, content: string, attributes = ''): string =>
  `<text x="${x}" y="${y}" fill="#222"${attributes === '' ? '' : ` ${attributes}`}>${escaped(content)}</text>`;

const escaped = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
