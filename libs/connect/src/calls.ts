import { learnSecret } from '@kronos/config';
import type { CallReport, HttpOptions } from '@kronos/http';
import { attributes, type Instruments, OPENSTACK_APIS, spans } from '@kronos/telemetry';
import { context, propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

/** Hooks of every HTTP client: they propagate the trace, count calls to OpenStack and register tokens as secrets. */
export function callHooks(
  metrics: Instruments | undefined,
): Pick<HttpOptions, 'injectHeaders' | 'onCall' | 'onCredential'> {
  return {
    onCredential: learnSecret,
    injectHeaders: () => {
      const carrier: Record<string, string> = {};
      propagation.inject(context.active(), carrier);
      return carrier;
    },
    onCall: (report) => {
      if (metrics !== undefined) count(metrics, report);
      span(report);
    },
  };
}

/** Following a move takes many calls: after this many calls within one span, only failed calls have spans. */
const MOST_CALLS = 50;
const made = new WeakMap<Span, number>();

/** The span of a finished call, as a child of the active span. */
function span({ service, method, route, status, durationMs, attempt, error }: CallReport): void {
  const within = trace.getActiveSpan();
  if (within === undefined) return;
  const failed = error !== undefined || (status ?? 0) >= 400;
  const before = made.get(within) ?? 0;
  if (before >= MOST_CALLS && !failed) return;
  made.set(within, before + 1);
  const endTime = Date.now();
  const call = trace.getTracer('kronos').startSpan(spans.request, {
    kind: SpanKind.CLIENT,
    startTime: endTime - durationMs,
    attributes: {
      'peer.service': service,
      'http.request.method': method,
      'url.template': route,
      ...(status === undefined ? {} : { 'http.response.status_code': status }),
      ...(attempt === 1 ? {} : { 'http.request.resend_count': attempt - 1 }),
      ...(error === undefined ? {} : { [attributes.errorType]: error }),
    },
  });
  if (failed) call.setStatus({ code: SpanStatusCode.ERROR });
  call.end(endTime);
}

function count(metrics: Instruments, { service, method, status, durationMs }: CallReport): void {
  const api = OPENSTACK_APIS.find((one) => one === service);
  if (api === undefined) return;
  const shown = status === undefined ? 'error' : (`${Math.floor(status / 100)}xx` as '2xx');
  metrics.openstackRequests.add(1, { api, method: method as 'GET', status: shown });
  metrics.openstackDuration.record(durationMs / 1000, { api });
}
