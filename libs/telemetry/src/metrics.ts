import { performance } from 'node:perf_hooks';
import { type Attributes, type Meter, TraceFlags, trace } from '@opentelemetry/api';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import type { Resource } from '@opentelemetry/resources';
import { AggregationTemporality, InstrumentType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { type LabelValues, type MetricName, type MetricSpec, metricSpecs } from './names.ts';
import { Exemplars, openMetrics } from './openMetrics.ts';

type Values<V> = V extends readonly string[] ? V[number] : string;
/** The labels of a metric, every one of them with one of its values. */
type LabelsOf<M extends MetricName> = {
  readonly [L in keyof (typeof metricSpecs)[M]['labels']]: Values<(typeof metricSpecs)[M]['labels'][L]>;
};

interface Counter<L> {
  add(value: number, labels: L): void;
}
interface Gauge<L> {
  set(value: number, labels: L): void;
}
interface Gauges<L> {
  /** Sets all series of a group: a series that is not named ends. */
  replace(group: string, series: readonly { readonly value: number; readonly labels: L }[]): void;
}
interface Histogram<L> {
  record(value: number, labels: L): void;
}

/** One instrument per metric of the table, with its labels typed. */
export type Instruments = {
  readonly [M in MetricName]: (typeof metricSpecs)[M]['kind'] extends 'counter'
    ? Counter<LabelsOf<M>>
    : (typeof metricSpecs)[M]['kind'] extends 'gauge'
      ? Gauge<LabelsOf<M>>
      : (typeof metricSpecs)[M]['kind'] extends 'gauges'
        ? Gauges<LabelsOf<M>>
        : Histogram<LabelsOf<M>>;
};

/** Series of one instrument whose series come and go: far above the hosts of a cloud times its policies. */
const MOST_SERIES = 100_000;

/** Collects when it is asked to: by the request for /metrics. */
class ScrapeReader extends MetricReader {
  constructor() {
    const observed = (type: InstrumentType): boolean => type === InstrumentType.OBSERVABLE_GAUGE;
    super({
      // The rest keeps the limit of the library.
      cardinalitySelector: (type) => (observed(type) ? MOST_SERIES : 2000),
      // Cumulative, the library would repeat every series that was ever observed.
      aggregationTemporalitySelector: (type) =>
        observed(type) ? AggregationTemporality.DELTA : AggregationTemporality.CUMULATIVE,
    });
  }
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

export interface Metrics {
  readonly instruments: Instruments;
  /** Runs before each scrape: the place to set gauges that are computed and not counted. */
  onScrape(fn: () => void): void;
  /** Everything in the text format of Prometheus, or in that of OpenMetrics, with exemplars. */
  scrape(format?: 'prometheus' | 'openmetrics'): Promise<string>;
  shutdown(): Promise<void>;
}

/** The content type of {@link Metrics.scrape} in the format of Prometheus. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface MetricsInput {
  /** Values of histograms name the trace in which they were recorded. Default: false, as nobody keeps the traces. */
  readonly traced?: boolean;
}

/** Metrics of one process: the instruments of the table and a few figures about the process itself. */
export function createMetrics(resource: Resource, { traced = false }: MetricsInput = {}): Metrics {
  const exemplars = new Exemplars();
  const reader = new ScrapeReader();
  const provider = new MeterProvider({ resource, readers: [reader] });
  const meter = provider.getMeter('kronos');
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  const before: (() => void)[] = [];
  const made = Object.entries<MetricSpec>(metricSpecs).map(([key, spec]) => [
    key,
    instrument(meter, spec, traced ? exemplars : null),
  ]);
  observeProcess(meter);
  return {
    // The table gives each instrument its kind and its labels, so the shape is the type's.
    instruments: Object.fromEntries(made) as Instruments,
    onScrape: (fn) => before.push(fn),
    scrape: async (format = 'prometheus') => {
      for (const fn of before) fn();
      const { resourceMetrics, errors } = await reader.collect();
      if (errors.length > 0) throw new AggregateError(errors, 'metrics could not be collected');
      return format === 'openmetrics' ? openMetrics(resourceMetrics, exemplars) : serializer.serialize(resourceMetrics);
    },
    shutdown: () => provider.shutdown(),
  };
}

function instrument(
  meter: Meter,
  spec: MetricSpec,
  exemplars: Exemplars | null,
): Counter<Attributes> | Gauge<Attributes> | Gauges<Attributes> | Histogram<Attributes> {
  // Without the unit: the name holds it, and the serialiser would write `# UNIT` lines that OpenMetrics forbids.
  const options = { description: spec.help };
  if (spec.kind === 'counter') {
    const counter = meter.createCounter(spec.name, options);
    return { add: (value, labels) => counter.add(value, checked(spec, labels)) };
  }
  if (spec.kind === 'gauge') {
    const gauge = meter.createGauge(spec.name, options);
    return { set: (value, labels) => gauge.record(value, checked(spec, labels)) };
  }
  if (spec.kind === 'gauges') {
    const groups = new Map<string, readonly { readonly value: number; readonly labels: Attributes }[]>();
    meter.createObservableGauge(spec.name, options).addCallback((result) => {
      for (const series of groups.values())
        for (const { value, labels } of series) result.observe(value, checked(spec, labels));
    });
    return { replace: (group, series) => groups.set(group, series) };
  }
  const advice = spec.buckets === undefined ? {} : { advice: { explicitBucketBoundaries: [...spec.buckets] } };
  const histogram = meter.createHistogram(spec.name, { ...options, ...advice });
  return {
    record: (value, labels) => {
      const shown = checked(spec, labels);
      histogram.record(value, shown);
      const span = trace.getActiveSpan()?.spanContext();
      if (exemplars === null || span === undefined || (span.traceFlags & TraceFlags.SAMPLED) === 0) return;
      const { traceId, spanId } = span;
      exemplars.keep(spec.name, shown, spec.buckets ?? [], { traceId, spanId, value, atMs: Date.now() });
    },
  };
}

/** A value outside of a closed list counts as `other`: no data from outside can add series without end. */
function checked(spec: MetricSpec, labels: Attributes): Attributes {
  const entries = Object.entries(spec.labels).map(([name, values]) => [
    name,
    label(values, String(labels[name] ?? '')),
  ]);
  return Object.fromEntries(entries);
}

const label = (values: LabelValues, value: string): string =>
  'bounded' in values || values.includes(value) ? value : 'other';

/** The figures that Prometheus' own client libraries give every process, by the same names. */
function observeProcess(meter: Meter): void {
  const started = Date.now() / 1000 - process.uptime();
  const gauge = (name: string, description: string, value: () => number) =>
    meter.createObservableGauge(name, { description }).addCallback((result) => result.observe(value()));
  gauge('process_start_time_seconds', 'Start of the process since the epoch.', () => started);
  gauge('process_resident_memory_bytes', 'Resident memory.', () => process.memoryUsage.rss());
  gauge('nodejs_heap_used_bytes', 'Heap in use.', () => process.memoryUsage().heapUsed);
  meter
    .createObservableCounter('process_cpu_seconds_total', {
      description: 'Processor time, user and system.',
    })
    .addCallback((result) => {
      const { user, system } = process.cpuUsage();
      result.observe((user + system) / 1e6);
    });
  let last = performance.eventLoopUtilization();
  gauge(
    'nodejs_eventloop_utilization_ratio',
    'Share of the time since the last scrape that the event loop was busy.',
    () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
  );
}
