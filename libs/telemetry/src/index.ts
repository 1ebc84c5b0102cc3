export { type CommandLine, commandLine, kronosVersion } from './commandLine.ts';
export { HttpListenError, isKronosError, type KronosError, StartAgain, StopTimeoutError } from './errors.ts';
export {
  type Check,
  defaultHttpLimits,
  type Handler,
  type HttpLimits,
  HttpServer,
  type Listening,
  send,
  sendBusy,
  sendJson,
} from './http.ts';
export { activeCorrelation, createLogger, type Logger, type LogInput, withCorrelation } from './log.ts';
export {
  type Counter,
  createMetrics,
  type Gauge,
  type Histogram,
  type Instruments,
  type LabelsOf,
  METRICS_CONTENT_TYPE,
  type Metrics,
} from './metrics.ts';
export {
  type AttributeName,
  attributes,
  type MetricName,
  type MetricSpec,
  metricSpecs,
  type SpanName,
  spans,
} from './names.ts';
export { createScrub, hideFields, type Scrub, scrub } from './scrub.ts';
export {
  live,
  type RunInput,
  type RunningService,
  runService,
  type ServiceContext,
  type ServiceDefinition,
  type ServiceName,
  startupMessage,
} from './service.ts';
export { startTelemetry, type Telemetry, type TelemetryInput } from './telemetry.ts';
export { activeLinks, failSpan, type SpanInput, withSpan } from './tracing.ts';
