import type { Attributes } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { DataPointType, type MetricData, type ResourceMetrics } from '@opentelemetry/sdk-metrics';

/** The content type of {@link openMetrics}. */
export const OPENMETRICS_CONTENT_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** A trace in which a value of a histogram was recorded. */
export interface Exemplar {
  readonly traceId: string;
  readonly spanId: string;
  readonly value: number;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/** The newest exemplar of each bucket of each series of a histogram. */
export class Exemplars {
  readonly #series = new Map<string, Map<string, Exemplar[]>>();

  /** @param bounds upper bounds of the histogram's buckets, ascending */
  keep(metric: string, labels: Attributes, bounds: readonly number[], exemplar: Exemplar): void {
    const above = bounds.findIndex((bound) => exemplar.value <= bound);
    const ofMetric = this.#series.get(metric) ?? new Map<string, Exemplar[]>();
    this.#series.set(metric, ofMetric);
    const key = JSON.stringify(labels);
    const buckets = ofMetric.get(key) ?? [];
    ofMetric.set(key, buckets);
    buckets[above < 0 ? bounds.length : above] = exemplar;
  }

  of(metric: string, labels: Attributes, bucket: number): Exemplar | undefined {
    return this.#series.get(metric)?.get(JSON.stringify(labels))?.[bucket];
  }
}

/** As OpenMetrics writes numbers: `1.0`, `+Inf`. */
function number(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}

const bound = (value: number): string => (Number.isInteger(value) ? `${value}.0` : number(value));

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

function labelled(name: string, labels: Attributes, more: readonly (readonly [string, string])[] = []): string {
  const pairs = [...Object.entries(labels).map(([key, value]) => [key, String(value)] as const), ...more];
  return pairs.length === 0 ? name : `${name}{${pairs.map(([key, value]) => `${key}="${escaped(value)}"`).join(',')}}`;
}

function family(metric: MetricData, exemplars: Exemplars): string[] {
  const { name, description } = metric.descriptor;
  switch (metric.dataPointType) {
    case DataPointType.SUM: {
      const base = name.replace(/_total$/, '');
      const lines = metric.dataPoints.map((p) => `${labelled(`${base}_total`, p.attributes)} ${number(p.value)}`);
      return [`# TYPE ${base} counter`, `# HELP ${base} ${escaped(description)}`, ...lines];
    }
    case DataPointType.GAUGE: {
      const lines = metric.dataPoints.map((p) => `${labelled(name, p.attributes)} ${number(p.value)}`);
      return [`# TYPE ${name} gauge`, `# HELP ${name} ${escaped(description)}`, ...lines];
    }
    case DataPointType.HISTOGRAM: {
      const lines = metric.dataPoints.flatMap(({ attributes, value }) => {
        let count = 0;
        const buckets = value.buckets.counts.map((inBucket, i) => {
          count += inBucket;
          const le = bound(value.buckets.boundaries[i] ?? Number.POSITIVE_INFINITY);
          const exemplar = exemplars.of(name, attributes, i);
          const trace =
            exemplar === undefined
              ? ''
              : ` # {trace_id="${exemplar.traceId}",span_id="${exemplar.spanId}"} ${number(exemplar.value)} ${exemplar.atMs / 1000}`;
          return `${labelled(`${name}_bucket`, attributes, [['le', le]])} ${count}${trace}`;
        });
        return [
          ...buckets,
          `${labelled(`${name}_sum`, attributes)} ${number(value.sum ?? 0)}`,
          `${labelled(`${name}_count`, attributes)} ${value.count}`,
        ];
      });
      return [`# TYPE ${name} histogram`, `# HELP ${name} ${escaped(description)}`, ...lines];
    }
    default:
      return [];
  }
}

const target = (resource: Resource): string[] => {
  const labels = Object.entries(resource.attributes).map(([key, value]) => [key.replaceAll('.', '_'), value] as const);
  return [
    '# TYPE target info',
    '# HELP target Target metadata',
    `${labelled('target_info', Object.fromEntries(labels))} 1`,
  ];
};

/** All metrics in the OpenMetrics text format 1.0.0. Unlike Prometheus' older format it carries exemplars. */
export function openMetrics({ resource, scopeMetrics }: ResourceMetrics, exemplars: Exemplars): string {
  const families = scopeMetrics.flatMap(({ metrics }) => metrics.flatMap((metric) => family(metric, exemplars)));
  return [...target(resource), ...families, '# EOF', ''].join('\n');
}

/** Whether the `Accept` header of a scrape asks for OpenMetrics. Prometheus lists both formats and prefers OpenMetrics. */
export function wantsOpenMetrics(accept: string | undefined): boolean {
  return (accept ?? '').split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const q = parameters.find((parameter) => parameter.startsWith('q='));
    return type === 'application/openmetrics-text' && Number(q?.slice(2) ?? 1) > 0;
  });
}
