import { type Config, learnSecret, type Reader } from '@kronos/config';
import type { Tracer } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_NAMESPACE,
  ATTR_SERVICE_VERSION,
} from '@opentelemetry/semantic-conventions';
import type { DestinationStream } from 'pino';
import { createLogger, type Logger, lineRenderer } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { startTracing } from './tracing.ts';

export interface TelemetryInput {
  readonly service: Reader;
  readonly version: string;
  /** The process among the replicas: host name and pid, or the pod. */
  readonly instance: string;
  readonly config: Config;
  /** Default: standard output. */
  readonly destination?: DestinationStream;
}

/** Logger, tracer and metrics of one process. */
export interface Telemetry {
  readonly log: Logger;
  readonly tracer: Tracer;
  readonly metrics: Metrics;
  /** Sends what is left. Never fails. */
  shutdown(): Promise<void>;
}

/** Starts logging, tracing and metrics as the configuration says. Once per process: tracing is registered globally. */
export async function startTelemetry({
  service,
  version,
  instance,
  config,
  destination,
}: TelemetryInput): Promise<Telemetry> {
  const terminal = destination === undefined && process.stdout.isTTY;
  const log = createLogger({
    service,
    version,
    level: config.log.level,
    render: await lineRenderer(config.log.format, { terminal }),
    ...(destination === undefined ? {} : { destination }),
  });
  const resource = resourceFromAttributes({
    [ATTR_SERVICE_NAME]: config.telemetry.serviceName,
    [ATTR_SERVICE_NAMESPACE]: 'kronos',
    [ATTR_SERVICE_VERSION]: version,
    [ATTR_SERVICE_INSTANCE_ID]: instance,
  });
  const headers = parseOtlpHeaders(config.telemetry.otlpHeaders?.reveal() ?? '');
  for (const value of Object.values(headers)) learnSecret(value);
  const tracing = await startTracing({
    resource,
    endpoint: config.telemetry.otlpEndpoint,
    headers,
    timeoutMs: config.telemetry.otlpTimeout * 1000,
    samplingRatio: config.telemetry.samplingRatio,
    log,
  });
  const metrics = createMetrics(resource, { traced: config.telemetry.otlpEndpoint !== null });
  return {
    log,
    tracer: tracing.tracer,
    metrics,
    shutdown: async () => {
      await Promise.all([tracing.shutdown(), metrics.shutdown()]);
    },
  };
}

/** `name=value, name=value`; the value may hold `=`. */
export function parseOtlpHeaders(text: string): Record<string, string> {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .map((pair): [string, string] => {
      const at = pair.indexOf('=');
      return at < 0 ? [pair, ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    });
  return Object.fromEntries(pairs);
}
