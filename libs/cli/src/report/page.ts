/** The report as one HTML page: no script, nothing that is loaded. Pure. */
import { iso } from '@kronos/contracts';
import { type ChartLabels, CycleChart, escaped } from '@kronos/replay';
import type { AggregateFigures, ReportCycle } from './figures.ts';
import { linesOf, modeOf, notesOf, policyHeads, policyRows } from './lines.ts';

export const minute = (ms: number): string => `${iso(ms).slice(0, 16).replace('T', ' ')} UTC`;

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem;border-top:1px solid #ccc;padding-top:1rem}
table{border-collapse:collapse;margin:1rem 0}th,td{text-align:left;padding:.2rem 1.2rem .2rem 0;vertical-align:top}
thead th{border-bottom:1px solid #999}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
svg{max-width:100%;height:auto}small{color:#555}@media print{h2{break-before:auto}section{break-inside:avoid}}`;

const LABELS: Omit<ChartLabels, 'title'> = { names: ['as it was', 'with plans'], heading: (aggregate) => aggregate };

/**
 * @param cycles of all aggregates, for the charts
 * @param nowMs when the page is made
 */
export function reportPage(
  aggregates: readonly AggregateFigures[],
  cycles: readonly ReportCycle[],
  nowMs: number,
): string {
  const body = aggregates.length === 0 ? '<p>The log holds no decision in this range.</p>' : '';
  return htmlPage('Kronos: report', [
    `<p><small>Made from the event log at ${minute(nowMs)}.</small></p>`,
    body,
    ...aggregates.map((of) =>
      section(
        of,
        cycles.filter(({ aggregate }) => aggregate === of.aggregate),
      ),
    ),
    `<p><small>${notesOf(aggregates).map(escaped).join('<br>')}</small></p>`,
  ]);
}

/** A page of a report around its parts. */
export const htmlPage = (title: string, parts: readonly string[]): string =>
  [
    '<!doctype html>',
    `<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title>`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<style>${STYLE}</style></head><body>`,
    `<h1>${escaped(title)}</h1>`,
    ...parts,
    '</body></html>',
    '',
  ].join('\n');

/** The figures of an aggregate: lines with their labels, and a row for each policy where there is one. */
export function figureTables(
  lines: readonly { readonly label: string; readonly text: string }[],
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): string[] {
  const cell = (text: string): string => `<td class="n">${escaped(text)}</td>`;
  return [
    `<table>${lines.map(({ label, text }) => `<tr><th>${label}</th><td>${escaped(text)}</td></tr>`).join('\n')}</table>`,
    ...(rows.length === 0
      ? []
      : [
          `<table><thead><tr>${heads.map((head, i) => `<th${i === 0 ? '' : ' class="n"'}>${head}</th>`).join('')}</tr></thead>`,
          ...rows.map(([policy = '', ...cells]) => `<tr><th>${escaped(policy)}</th>${cells.map(cell).join('')}</tr>`),
          '</table>',
        ]),
  ];
}

function section(of: AggregateFigures, cycles: readonly ReportCycle[]): string {
  const chart = new CycleChart(of);
  for (const { aggregate, timeMs, recorded, planned } of cycles)
    chart.add({ aggregate, timeMs, both: [recorded, planned] });
  return [
    `<section><h2>${escaped(of.aggregate)}: ${modeOf(of)}</h2>`,
    `<p>${minute(of.sinceMs)} to ${minute(of.untilMs)}</p>`,
    ...figureTables(linesOf(of), policyHeads(of), policyRows(of)),
    chart.svg({ ...LABELS, title: `${of.aggregate}: combined imbalance and moves` }),
    '</section>',
  ].join('\n');
}
