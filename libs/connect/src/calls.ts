import type { CallReport, HttpOptions } from '@kronos/http';
import type { Instruments } from '@kronos/telemetry';
import { context, propagation } from '@opentelemetry/api';

type Api = 'keystone' | 'nova' | 'placement';
const apis: readonly string[] = ['keystone', 'nova', 'placement'] satisfies Api[];

/** Hooks of every HTTP client: the trace goes on in the request, and calls to OpenStack are counted. */
export function callHooks(metrics: Instruments | undefined): Pick<HttpOptions, 'injectHeaders' | 'onCall'> {
  return {
    injectHeaders: () => {
      const carrier: Record<string, string> = {};
      propagation.inject(context.active(), carrier);
      return carrier;
    },
    ...(metrics === undefined ? {} : { onCall: (report: CallReport) => count(metrics, report) }),
  };
}

function count(metrics: Instruments, { service, method, status, durationMs }: CallReport): void {
  if (!apis.includes(service)) return;
  const api = service as Api;
  const shown = status === undefined ? 'error' : (`${Math.floor(status / 100)}xx` as '2xx');
  metrics.openstackRequests.add(1, { api, method: method as 'GET', status: shown });
  metrics.openstackDuration.record(durationMs / 1000, { api });
}
