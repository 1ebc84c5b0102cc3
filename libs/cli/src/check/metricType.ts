/** Whether the metric that a query selects is a gauge, as a share must be. Pure. */
import type { RangeSeries, Sample } from '@kronos/prometheus';

/** By name of the metric: its type as its exporter declares it. Undeclared metrics are left out. */
export type MetricTypes = ReadonlyMap<string, string>;

/** The problem, and the change of the query. */
export type WrongType = { readonly text: string; readonly remedy: string };

const RANGE = '5m';
/** The series of a histogram or a summary carry these after its name. */
const PARTS = /_(?:bucket|sum|count)$/;

/** The metrics that the series belong to. None for the result of a PromQL function, which has no metric name. */
export const metricsOf = (samples: readonly Sample[]): string[] => [
  ...new Set(samples.flatMap(({ labels }) => labels.__name__ ?? [])),
];

/** The metrics whose types `wrongType` asks for. */
export const typesNeeded = (samples: readonly Sample[]): string[] =>
  metricsOf(samples).flatMap((name) => (PARTS.test(name) ? [name, name.replace(PARTS, '')] : [name]));

type Answered = { readonly samples: readonly Sample[]; readonly range: readonly RangeSeries[] };

/** Types whose metrics are several series each. */
const FAMILIES: ReadonlySet<string> = new Set(['histogram', 'gaugehistogram', 'summary']);

/**
 * Null for a gauge, and where the type is not known. An exporter that declares no type is judged by the name and the values:
 * `_total` that grows is a counter, `_info` that is always 1 is an info metric.
 */
export function wrongType(
  query: string,
  { samples, range }: Answered,
  types: MetricTypes,
  wanted: 'share' | 'rate' = 'share',
): WrongType | null {
  for (const name of metricsOf(samples)) {
    const type = types.get(name);
    if (type === 'counter' || (type === undefined && name.endsWith('_total') && grows(range)))
      return {
        text: `${name} is a counter: it only grows, so its value is no ${wanted}`,
        remedy: `Take its rate, such as rate(${query}[${RANGE}])${wanted === 'share' ? ', and divide it by the total of the host' : ''}.`,
      };
    const whole = name.replace(PARTS, '');
    const family = type ?? types.get(whole);
    if (family !== undefined && FAMILIES.has(family))
      return {
        text: `${name} is a series of the ${family} ${whole}, so its value is no ${wanted}`,
        remedy: `Select a gauge, or compute one value from the ${family}, such as rate(${whole}_sum[${RANGE}]).`,
      };
    if (type === 'info' || (name.endsWith('_info') && samples.every(({ value }) => value === 1)))
      return {
        text: `${name} is an info metric: its value is always 1, and what it says is in its labels`,
        remedy: `Select a gauge whose value is ${wanted === 'share' ? 'the share of the host in use' : 'the rate'}.`,
      };
  }
  return null;
}

/** Whether no series ever falls, and at least one rises: what a counter does. */
export function grows(range: readonly RangeSeries[]): boolean {
  const steps = range.flatMap(({ samples }) =>
    samples.slice(1).map(({ value }, i) => value - (samples[i]?.value ?? Number.NaN)),
  );
  return steps.some((step) => step > 0) && !steps.some((step) => step < 0);
}
