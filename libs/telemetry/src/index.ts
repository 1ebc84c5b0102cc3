export { attemptAttributes } from './attemptAttributes.ts';
export { commandLine } from './commandLine.ts';
export { StartAgain } from './errors.ts';
export { type Check, checkOf, HttpServer } from './http.ts';
export { createLogger, type Logger, withCorrelation } from './log.ts';
export { createMetrics, type Instruments, type Metrics } from './metrics.ts';
export { attributes, metricSpecs, OPENSTACK_APIS, type SpanName, spans } from './names.ts';
export { beginEvents, send, sendBusy, sendJson, sendTagged } from './replies.ts';
export {
  live,
  type RunningService,
  runService,
  type ServiceContext,
  type ServiceDefinition,
} from './service.ts';
export { startTelemetry } from './telemetry.ts';
export { failSpan, withSpan } from './tracing.ts';
export { kronosVersion } from './version.ts';
