import { type Config, headersOption } from '@kronos/config';
import { createSession } from '@kronos/openstack';
import { createPrometheus, type KeystoneAccess, type Prometheus } from '@kronos/prometheus';
import { callHooks } from './calls.ts';
import { authOptions, type HttpMeans } from './openstack.ts';

/** The service type under which the catalog has OpenStack's own server for Prometheus, Aetos. */
const SERVICE_TYPE = 'metric-storage';

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The client of the `[prometheus]` section; null where it names no server (rules-only mode needs none).
 *
 * @param env where a `[nova] cloud` is looked up, with `auth = keystone`
 */
export function openPrometheus(config: Config, means: HttpMeans = {}, env: Env = process.env): Prometheus | null {
  const { prometheus } = config;
  const keystone = prometheus.auth === 'keystone';
  if (prometheus.url === null && !keystone) return null;
  return createPrometheus({
    url: prometheus.url ?? undefined,
    ...(keystone ? { keystone: keystoneAccess(config, means, env) } : {}),
    headers: headersOption(prometheus.headers?.reveal() ?? ''),
    timeoutMs: prometheus.timeout * 1000,
    maxRetries: prometheus.maxRetries,
    retryBackoffMs: prometheus.retryBackoff * 1000,
    verifySsl: prometheus.verifySsl,
    caCert: prometheus.caCert ?? undefined,
    clientCert: prometheus.clientCert ?? undefined,
    clientKey: prometheus.clientKey ?? undefined,
    ...credentialsOf(prometheus),
    ...callHooks(undefined),
    ...means,
  });
}

const credentialsOf = ({ bearerTokenFile, bearerToken, username, password }: Config['prometheus']) => ({
  // The client gets the path, not the content, so it notices a rotated token.
  ...(bearerTokenFile === null ? { bearerToken: bearerToken?.reveal() } : { bearerTokenFile }),
  username: username ?? undefined,
  password: password?.reveal(),
});

function keystoneAccess(config: Config, means: HttpMeans, env: Env): KeystoneAccess {
  const session = createSession({ auth: authOptions(config, env), ...callHooks(undefined), ...means });
  return {
    user: session.identity.user,
    token: (signal) => session.token(signal),
    refused: (token) => session.refused(token),
    endpoint: (signal) => session.endpoint(SERVICE_TYPE, signal),
    close: () => session.close(),
  };
}
