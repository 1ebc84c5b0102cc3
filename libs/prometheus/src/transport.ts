/** Calls of Prometheus: credentials, time limits, retries, and POST or GET. */
import { readFileSync, statSync } from 'node:fs';
import { type CallPlace, createHttp, type HttpAnswer, type HttpOptions, joinUrl, safeUrl } from '@kronos/http';
import { BadPrometheusOptions } from './errors.ts';

export interface PrometheusOptions
  extends Pick<
    HttpOptions,
    'onCall' | 'onCredential' | 'injectHeaders' | 'clock' | 'transport' | 'random' | 'inProgress'
  > {
  /** Base URL, with a path prefix if there is one, e.g. `https://mimir.example/prometheus`. Absent: that of the catalog. */
  readonly url?: string | undefined;
  /** Headers of every request; their values may be secrets. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends the token of Keystone, and finds the server in the catalog. */
  readonly keystone?: KeystoneAccess | undefined;
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

/** A user of Keystone, for a server that checks its tokens (OpenStack Aetos). */
export interface KeystoneAccess {
  /** For messages; without secrets. */
  readonly user: string;
  token(signal?: AbortSignal): Promise<string>;
  /** A token was refused: the next one is new. */
  refused(token: string): void;
  /** The endpoint of the server in the catalog. */
  endpoint(signal?: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

export const DEFAULT_TIMEOUT_MS = 30_000;

/** An answer of any status, and the call that it is of. */
interface Answered {
  readonly place: CallPlace;
  readonly answer: HttpAnswer;
}

type Parameters = Readonly<Record<string, string>>;

export interface QueryTransport {
  get(path: string, signal: AbortSignal | undefined, parameters?: Parameters): Promise<Answered>;
  /** As a form by POST, since queries may be long; by GET where POST is not allowed (a read-only proxy). */
  ask(path: string, form: Parameters, signal: AbortSignal | undefined): Promise<Answered>;
  /** The kind of credentials, for messages. */
  readonly credentials: string;
  close(): Promise<void>;
}

/** @throws BadPrometheusOptions */
export function createPrometheusTransport(options: PrometheusOptions): QueryTransport {
  const { keystone, headers: own = {}, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (options.url === undefined && keystone === undefined)
    throw new BadPrometheusOptions('url', 'is missing; give the URL of Prometheus, or let Keystone find it');
  const given = options.url === undefined ? null : baseUrl(options.url);
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
  // The proxy of OpenStack takes queries by GET alone.
  let postRefused = keystone !== undefined;

  /** Sends a call, with a new token after one that was refused. */
  async function send(
    method: 'GET' | 'POST',
    path: string,
    { query, form, signal }: { query?: Parameters; form?: Parameters; signal: AbortSignal | undefined },
  ): Promise<Answered> {
    const base = given ?? baseUrl((await keystone?.endpoint(signal)) ?? '');
    const url = joinUrl(base, path, query ?? {});
    const call = { service: 'prometheus', method } as const;
    for (let again = false; ; again = true) {
      const token = await keystone?.token(signal);
      const answer = await http.call({
        ...call,
        url,
        route: path,
        ...(form === undefined ? {} : { form }),
        // A query changes nothing, so it may be retried.
        idempotent: true,
        headers: { ...own, ...authorization.headers(), ...(token === undefined ? {} : { 'x-auth-token': token }) },
        signal,
      });
      if (answer.status !== 401 || token === undefined || again)
        return { place: { ...call, url: safeUrl(url) }, answer };
      keystone?.refused(token);
    }
  }

  const get: QueryTransport['get'] = (path, signal, parameters = {}) =>
    send('GET', path, { query: parameters, signal });

  return {
    get,
    async ask(path, form, signal) {
      if (postRefused) return get(path, signal, form);
      const answered = await send('POST', path, { form, signal });
      if (answered.answer.status !== 405) return answered;
      postRefused = true;
      return get(path, signal, form);
    },
    credentials: authorization.description,
    async close() {
      await http.close();
      await keystone?.close();
    },
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
  // People copy the URL of a query, and catalogs hold it.
  return `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '').replace(/\/api\/v1$/, '');
}

interface Authorization {
  readonly headers: () => Readonly<Record<string, string>>;
  /** The kind, for messages. */
  readonly description: string;
}

function createAuthorization(options: PrometheusOptions): Authorization {
  const { keystone, headers = {} } = options;
  if (keystone !== undefined) return { headers: () => ({}), description: `the Keystone token of ${keystone.user}` };
  const one = staticAuthorization(options);
  const names = Object.keys(headers);
  if (names.length === 0) return one;
  return { ...one, description: `${one.description}, the headers ${names.join(', ')}` };
}

function staticAuthorization(options: PrometheusOptions): Authorization {
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
