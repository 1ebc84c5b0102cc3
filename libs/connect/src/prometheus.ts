import type { Config } from '@kronos/config';
import { createPrometheus, type Prometheus } from '@kronos/prometheus';
import { callHooks } from './calls.ts';
import type { HttpMeans } from './openstack.ts';

/** The client of the `[prometheus]` section; null where no url is set (rules-only mode needs none). */
export function openPrometheus(config: Config, means: HttpMeans = {}): Prometheus | null {
  const { prometheus } = config;
  if (prometheus.url === null) return null;
  return createPrometheus({
    url: prometheus.url,
    timeoutMs: prometheus.timeout * 1000,
    maxRetries: prometheus.maxRetries,
    retryBackoffMs: prometheus.retryBackoff * 1000,
    verifySsl: prometheus.verifySsl,
    caCert: prometheus.caCert ?? undefined,
    clientCert: prometheus.clientCert ?? undefined,
    clientKey: prometheus.clientKey ?? undefined,
    // The client gets the path, not the content, so it notices a rotated token.
    ...(prometheus.bearerTokenFile === null
      ? { bearerToken: prometheus.bearerToken?.reveal() }
      : { bearerTokenFile: prometheus.bearerTokenFile }),
    username: prometheus.username ?? undefined,
    password: prometheus.password?.reveal(),
    ...callHooks(undefined),
    ...means,
  });
}
