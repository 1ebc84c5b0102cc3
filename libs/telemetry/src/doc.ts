import { attributes, type LabelValues, type MetricSpec, metricSpecs, spans } from './names.ts';

const values = (label: LabelValues): string => ('bounded' in label ? label.bounded : label.join(', '));

/** docs/telemetry.md, from the table of names. A test keeps it equal to this. */
export function telemetryDoc(): string {
  const lines = [
    '# Metrics, traces and logs',
    '',
    'Generated from `libs/telemetry/src/names.ts` by `npm run generate`.',
    '',
    'Each service serves `/metrics` (Prometheus), `/healthz` (the process lives) and `/readyz` (200 or 503, with the reasons) on its',
    'port of `[http]`. Traces go to `[telemetry] otlp_endpoint` over OTLP/HTTP. Logs go to standard output as one JSON object per',
    'line; on a terminal they are readable. A line names `trace_id`, `span_id` and `correlationId`: the id of the snapshot or the',
    'command at the start of the chain.',
    '',
    '## Metrics',
    '',
    'Labels are bounded: no metric grows with servers, plans or tasks, and one, `kronos_host_value_ratio`, with hosts. Beside these there are `target_info`,',
    '`process_start_time_seconds`, `process_resident_memory_bytes`, `process_cpu_seconds_total`, `nodejs_heap_used_bytes` and',
    '`nodejs_eventloop_utilization_ratio`.',
    '',
    '| metric | kind | labels | meaning |',
    '|---|---|---|---|',
  ];
  for (const { name, kind, labels, help } of Object.values<MetricSpec>(metricSpecs)) {
    const shown = Object.entries(labels).map(([label, v]) => `\`${label}\` (${values(v)})`);
    lines.push(`| \`${name}\` | ${kind === 'gauges' ? 'gauge' : kind} | ${shown.join('; ')} | ${help} |`);
  }
  lines.push(
    '',
    '## Spans',
    '',
    Object.values(spans)
      .map((name) => `\`${name}\``)
      .join(', '),
    '',
    '## Attributes',
    '',
  );
  lines.push(
    Object.values(attributes)
      .map((name) => `\`${name}\``)
      .join(', '),
  );
  return `${lines.join('\n')}\n`;
}

/** Generated files by their path in the repository. */
export const telemetryFiles = (): Map<string, string> => new Map([['docs/telemetry.md', telemetryDoc()]]);
