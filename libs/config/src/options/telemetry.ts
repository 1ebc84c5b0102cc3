import { bool, decimal, EVERYONE, optionalUrl, seconds, secret, secretFile, text } from '../option.ts';

/** The options of the section `[telemetry]`. */
export const telemetry = {
  otlp_endpoint: optionalUrl({
    by: EVERYONE,
    help: 'OTLP/HTTP receiver for traces, e.g. http://localhost:4318; /v1/traces is appended. Not set: no traces are sent.',
  }),
  otlp_headers: secret({
    by: EVERYONE,
    help: 'Headers for the receiver, as a comma list of NAME=VALUE. They hold tokens and are secret.',
  }),
  otlp_headers_file: secretFile('otlp_headers', { by: EVERYONE }),
  otlp_timeout: seconds(10, { min: 0.1, by: EVERYONE, help: 'Limit of one export.' }),
  service_name: text('kronos-{service}', {
    by: EVERYONE,
    help: 'service.name of traces and metrics. {service} stands for the name of the service.',
  }),
  host_metrics: bool(true, {
    by: ['scorer'],
    help: 'Serve kronos_host_value_ratio, a series for each host and policy. false: the dashboard of hosts stays empty.',
  }),
  sampling_ratio: decimal(1, {
    min: 0,
    max: 1,
    by: EVERYONE,
    help: 'Share of the traces that are recorded. A trace that arrives sampled is always continued.',
  }),
} as const;
