/** Calls of Prometheus: credentials, time limits, retries, and POST or GET. */
import { readFileSync, statSync } from 'node:fs';
import { type CallPlace, createHttp, type HttpAnswer, type HttpOptions, joinUrl, safeUrl } from '@kronos/http';
import { BadPrometheusOptions } from './errors.ts';

export interface PrometheusOptions
  extends Pick<
    HttpOptions,
    | 'onCall'
    | 'onCredential'
    | 'injectHeaders'
    | 'clock'
    | 'transport'
    | 'now'
    | 'monotonic'
    | 'sleep'
    | 'random'
    | 'userAgent'
    | 'inProgress'
  > {
  /** Base URL, with a path prefix if there is one, e.g. `https://mimir.example/prometheus`. */
  readonly url: string;
  /** Limit of one attempt (default 30,000). */
  readonly timeoutMs?: number;
  /** Attempts after the first that failed (default 3). */
  readonly maxRetries?: number;
  /** Upper bound of the wait before the first further attempt; doubles each time (default 1,000). */
  readonly retryBackoffMs?: number;
  /** PEM file. */
  readonly caCert?: string | undefined;
  readonly clientCert?: string | undefined;
  readonly clientKey?: string | undefined;
  /** `false` accepts any certificate. */
  readonly verifySsl?: boolean;
  readonly bearerToken?: string | undefined;
  /** Read again when it changes. */
  readonly bearerTokenFile?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

export const DEFAULT_TIMEOUT_MS = 30_000;

/** An answer of any status, and the call that it is of. */
interface Answered {
  readonly place: CallPlace;
  readonly answer: HttpAnswer;
}

type Parameters = Readonly<Record<string, string>>;

export interface Transport {
  get(path: string, signal: AbortSignal | undefined, parameters?: Parameters): Promise<Answered>;
  /** As a form by POST, since queries may be long; by GET where POST is not allowed (a read-only proxy). */
  ask(path: string, form: Parameters, signal: AbortSignal | undefined): Promise<Answered>;
  /** The kind of credentials, for messages. */
  readonly credentials: string;
  close(): Promise<void>;
}

/** @throws BadPrometheusOptions */
export function createTransport(options: PrometheusOptions): Transport {
  const base = baseUrl(options.url);
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const retries = { retries: options.maxRetries ?? 3, backoffMs: options.retryBackoffMs ?? 1_000 };
  const authorization = createAuthorization(options);
  const http = createHttp({
    ...options,
    tls: {
      caFile: options.caCert,
      certFile: options.clientCert,
      keyFile: options.clientKey,
      insecure: options.verifySsl === false,
    },
    limits: {
      connectMs: Math.min(5_000, timeoutMs),
      headersMs: timeoutMs,
      bodyMs: timeoutMs,
      totalMs: (timeoutMs + 30_000) * (retries.retries + 1),
    },
    retry: { connection: retries, status: retries },
  });
  let postRefused = false;

  const get: Transport['get'] = async (path, signal, parameters = {}) => {
    const url = joinUrl(base, path, parameters);
    const call = { service: 'prometheus', method: 'GET' } as const;
    const answer = await http.call({ ...call, url, route: path, headers: authorization.headers(), signal });
    return { place: { ...call, url: safeUrl(url) }, answer };
  };

  return {
    get,
    async ask(path, form, signal) {
      if (postRefused) return get(path, signal, form);
      const url = joinUrl(base, path);
      const call = { service: 'prometheus', method: 'POST' } as const;
      const answer = await http.call({
        ...call,
        url,
        route: path,
        form,
        // A query changes nothing, so it may be retried.
        idempotent: true,
        headers: authorization.headers(),
        signal,
      });
      if (answer.status !== 405) return { place: { ...call, url: safeUrl(url) }, answer };
      postRefused = true;
      return get(path, signal, form);
    },
    credentials: authorization.description,
    close: () => http.close(),
  };
}

function baseUrl(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new BadPrometheusOptions('url', `"${url}" is not a URL; expected e.g. http://prometheus.example:9090`);
  }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') {
    throw new BadPrometheusOptions('url', `"${safeUrl(url)}" must begin with http:// or https://`);
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new BadPrometheusOptions('url', 'credentials do not belong in the URL; set username and password');
  }
  return `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '');
}

interface Authorization {
  readonly headers: () => Readonly<Record<string, string>>;
  /** The kind, for messages. */
  readonly description: string;
}

function createAuthorization(options: PrometheusOptions): Authorization {
  const kinds = [options.bearerToken, options.bearerTokenFile, options.username].filter((value) => value !== undefined);
  if (kinds.length > 1) {
    throw new BadPrometheusOptions('bearer_token', 'give one of bearer_token, bearer_token_file, and username');
  }
  if (options.bearerToken !== undefined) {
    const value = `Bearer ${options.bearerToken}`;
    return { headers: () => ({ authorization: value }), description: 'a bearer token' };
  }
  if (options.username !== undefined) {
    if (options.username.includes(':')) throw new BadPrometheusOptions('username', 'it must not contain a colon');
    const value = `Basic ${Buffer.from(`${options.username}:${options.password ?? ''}`).toString('base64')}`;
    return { headers: () => ({ authorization: value }), description: `basic authentication as ${options.username}` };
  }
  const file = options.bearerTokenFile;
  if (file === undefined) return { headers: () => ({}), description: 'no credentials' };
  let read: { stamp: string; value: string } | undefined;
  const headers = (): Record<string, string> => {
    try {
      const { mtimeMs, size, ino } = statSync(file);
      const stamp = `${mtimeMs} ${size} ${ino}`;
      if (read?.stamp !== stamp) read = { stamp, value: `Bearer ${readFileSync(file, 'utf8').trim()}` };
      return { authorization: read.value };
    } catch (cause) {
      throw new BadPrometheusOptions('bearer_token_file', `cannot read ${file}`, cause);
    }
  };
  headers();
  return { headers, description: `the bearer token of ${file}` };
}
