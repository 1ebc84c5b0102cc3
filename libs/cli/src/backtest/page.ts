/** The report of a backtest as one HTML page: no script, nothing that is loaded. Pure. */
import type { BacktestFigures } from '@kronos/backtest';
import { CycleChart, escaped, type WhatIfCycle } from '@kronos/replay';
import { figureTables, htmlPage, minute } from '../report/page.ts';
import { backtestHeads, backtestLines, backtestRows, NOTES } from './lines.ts';

const NAMES = ['as it was', 'with Kronos'] as const;

/** The charts of a backtest, drawn cycle by cycle: their size does not grow with the range. */
export class BacktestCharts {
  readonly #extent: { readonly sinceMs: number; readonly untilMs: number };
  readonly #imbalance = new Map<string, CycleChart>();
  readonly #peaks = new Map<string, Map<string, CycleChart>>();

  constructor(extent: { readonly sinceMs: number; readonly untilMs: number }) {
    this.#extent = extent;
  }

  add({ aggregate, timeMs, recorded, simulated }: WhatIfCycle): void {
    const chart = this.#imbalance.get(aggregate) ?? new CycleChart(this.#extent);
    this.#imbalance.set(aggregate, chart);
    chart.add({ aggregate, timeMs, both: [recorded, simulated] });
    const peaks = this.#peaks.get(aggregate) ?? new Map<string, CycleChart>();
    this.#peaks.set(aggregate, peaks);
    for (const policy of Object.keys(simulated.peak)) {
      const own = peaks.get(policy) ?? new CycleChart(this.#extent);
      peaks.set(policy, own);
      const both = [recorded, simulated].map(({ peak, moves }) => ({ combined: peak[policy] ?? null, moves }));
      const [was, would] = both;
      if (was !== undefined && would !== undefined) own.add({ aggregate, timeMs, both: [was, would] });
    }
  }

  svgs(aggregate: string): string[] {
    const labels = (title: string, axis: string) => ({ names: NAMES, title, axis, heading: () => title });
    return [
      this.#imbalance.get(aggregate)?.svg(labels(`${aggregate}: combined imbalance`, 'combined imbalance')) ?? '',
      ...[...(this.#peaks.get(aggregate) ?? [])].map(([policy, chart]) =>
        chart.svg(labels(`${aggregate}: hottest host, ${policy}`, `highest value of a host`)),
      ),
    ];
  }
}

/** @param nowMs when the page is made */
export const backtestPage = (figures: readonly BacktestFigures[], charts: BacktestCharts, nowMs: number): string =>
  htmlPage('Kronos: backtest', [
    `<p><small>Reconstructed from the history of Nova and Prometheus at ${minute(nowMs)}.</small></p>`,
    ...figures.map((of) => section(of, charts)),
    `<p><small>${NOTES.map(escaped).join('<br>')}</small></p>`,
  ]);

function section(of: BacktestFigures, charts: BacktestCharts): string {
  const moves = of.people.listed.map(
    ({ serverName, from, to, endedMs, verdict, kronosTo }) =>
      `<tr><td>${minute(endedMs)}</td><td>${escaped(serverName)}</td><td>${escaped(from)}</td><td>${escaped(to)}</td><td>${VERDICTS[verdict]}${kronosTo === null ? '' : ` (${escaped(kronosTo)})`}</td></tr>`,
  );
  return [
    `<section><h2>${escaped(of.aggregate)}</h2>`,
    `<p>${minute(of.sinceMs)} to ${minute(of.untilMs)}</p>`,
    ...figureTables(backtestLines(of), backtestHeads, backtestRows(of)),
    ...charts.svgs(of.aggregate),
    ...(moves.length === 0
      ? []
      : [
          '<h3>Moves by people</h3><table><thead><tr><th>ended</th><th>server</th><th>from</th><th>to</th><th>Kronos within a day</th></tr></thead>',
          ...moves,
          '</table>',
        ]),
    '</section>',
  ].join('\n');
}

const VERDICTS = {
  sameDestination: 'the same',
  otherDestination: 'to another host',
  notMoved: 'would not move it',
  notJudged: 'not judged',
} as const;
