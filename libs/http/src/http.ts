import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { type Clock, limit, systemClock } from '@kronos/clock';
import { Agent, type Dispatcher, EnvHttpProxyAgent, request as send } from 'undici';
import { BadAnswer, BadHttpOptions, type CallPlace, NotSent, Timeout, Unreachable } from './errors.ts';
import type { CallsInProgress } from './inProgress.ts';
import {
  parseRetryAfter,
  RETRIED_STATUSES,
  type RetryOptions,
  type RetryPolicy,
  retryDelayMs,
  retryPolicy,
} from './retry.ts';
import { safeUrl } from './url.ts';

/** TLS of one client. Files are PEM and are read when the client is made. */
export interface TlsOptions {
  /** CA bundle instead of Node's own. */
  readonly caFile?: string | undefined;
  /** `true` accepts any certificate. */
  readonly insecure?: boolean | undefined;
  /** Client certificate and its key. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/**
 * Time limits, in milliseconds. The first three hold for each attempt and may be overrun by a second (undici's timers are
 * coarse); `totalMs` holds for the call with all its retries, exactly.
 */
export interface TimeLimits {
  readonly connectMs: number;
  readonly headersMs: number;
  /** Longest silence while the body arrives. */
  readonly bodyMs: number;
  readonly totalMs: number;
}

const DEFAULT_LIMITS: TimeLimits = { connectMs: 5_000, headersMs: 60_000, bodyMs: 30_000, totalMs: 180_000 };

/** The defaults fill the gaps; a total that is not given leaves room for two attempts at least. */
export function timeLimits(options: Partial<TimeLimits> = {}): TimeLimits {
  const limits = { ...DEFAULT_LIMITS, ...options };
  const attemptMs = limits.connectMs + limits.headersMs + limits.bodyMs;
  return { ...limits, totalMs: options.totalMs ?? Math.max(DEFAULT_LIMITS.totalMs, 2 * attemptMs) };
}

/** One attempt on the wire, as metrics and traces see it. */
export interface CallReport {
  readonly service: string;
  readonly method: string;
  /** The path with its ids as placeholders, e.g. `/servers/{id}/action`. */
  readonly route: string;
  /** undefined when no answer came. */
  readonly status: number | undefined;
  readonly durationMs: number;
  /** 1 is the first attempt. */
  readonly attempt: number;
  /** Code of the error, when there was no usable answer. */
  readonly error?: string;
}

export interface HttpOptions {
  readonly tls?: TlsOptions;
  readonly limits?: Partial<TimeLimits>;
  readonly retry?: RetryOptions;
  /** Connections per origin (default 8). */
  readonly connections?: number;
  /** Largest answer that is read (default 64 MiB). */
  readonly maxBodyBytes?: number;
  /** Value of `User-Agent`. */
  readonly userAgent?: string;
  /** Where `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are looked up, in capitals or not (default: the process's environment). */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where calls are noted while they are under way. */
  readonly inProgress?: CallsInProgress;
  /** Called after every attempt. What it throws is ignored. */
  readonly onCall?: (report: CallReport) => void;
  /** Called with each credential that a request or an answer carries in its headers, so that it is never shown. */
  readonly onCredential?: (value: string) => void;
  /** Called for every attempt; adds headers, e.g. `traceparent`. */
  readonly injectHeaders?: () => Readonly<Record<string, string>>;
  /** Time and timers (default: this machine's). */
  readonly clock?: Clock;
  /** Sends one attempt (default: undici). */
  readonly transport?: Transport;
  /** Uniform in [0, 1). */
  readonly random?: () => number;
}

/** One attempt as it is handed to the connection. */
export interface HttpAttempt {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** To be called when the first byte is about to be written, and not before. What it throws ends the attempt: nothing is sent. */
  readonly checkSend: (() => void) | undefined;
  readonly signal: AbortSignal;
  readonly limits: TimeLimits;
  /** On a connection of its own that was not used before. */
  readonly fresh: boolean;
}
export interface Transported {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: { text(): Promise<string> };
}
/** Sends one attempt. Rejects with an error of undici or Node, or with the signal's reason. */
export type Transport = (attempt: HttpAttempt) => Promise<Transported>;

export interface HttpCall {
  readonly service: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly route: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as `application/x-www-form-urlencoded`. */
  readonly form?: Readonly<Record<string, string>>;
  /**
   * Whether the call may be sent again when its fate is not known. Default: `true` for GET. A call that is not idempotent is
   * sent at most once, on a connection of its own, so that a stale kept-alive connection cannot make its fate uncertain.
   */
  readonly idempotent?: boolean;
  /**
   * Called for each attempt when its connection is ready and the next thing to happen is that its first byte is written, so
   * that neither a slow connection nor a process that was stopped meanwhile can send it late. A text says why the request
   * must not be sent: the call fails with {@link NotSent}. With it, `maybeSent` of an error is exact.
   */
  readonly checkSend?: (() => string | null) | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case; repeated headers joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface Http {
  /**
   * Sends one call and reads the whole answer, whatever its status. Idempotent calls are tried again after a lost
   * connection, a time limit or one of `RETRIED_STATUSES`; the last answer is returned when the retries are used up.
   *
   * @throws Unreachable, Timeout, NotSent, BadAnswer (too large), or the reason of the caller's signal.
   */
  call(call: HttpCall): Promise<HttpAnswer>;
  /** Breaks off what is under way. */
  close(): Promise<void>;
}

/** Certificates that no known CA has signed. */
const CERTIFICATE =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT.*)$/;
/** Node's own advice, for people who start Node. */
const NODE_HINT = /; if the root CA is installed locally.*$/s;
const CERTIFICATE_HINT =
  'name the CA that signed it (cacert in clouds.yaml, cafile of [nova], ca_cert of [prometheus] and [notify:NAME])';

/** Codes of errors that are raised before a byte of the request is written: no connection, or a certificate that is refused. */
const NOT_SENT = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_INVALID_ARG',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

const CREDENTIAL_HEADERS = new Set(['authorization', 'proxy-authorization', 'x-auth-token', 'x-subject-token']);

/** This machine itself is never asked for through a proxy. */
const LOCAL = ['localhost', '127.0.0.1', '::1'];

/** Connections that go through the proxies that the environment names, if it names any. */
function agent(options: Agent.Options, env: NonNullable<HttpOptions['env']>): Dispatcher {
  const named = (name: string) => env[name.toLowerCase()] || env[name];
  const [httpProxy, httpsProxy] = [named('HTTP_PROXY'), named('HTTPS_PROXY')];
  if (httpProxy === undefined && httpsProxy === undefined) return new Agent(options);
  const { connect, ...rest } = options;
  const requestTls = typeof connect === 'object' ? connect : {};
  return new EnvHttpProxyAgent({
    ...rest,
    connect: requestTls,
    requestTls,
    // Empty: none, instead of what the process's own environment says.
    httpProxy: httpProxy ?? '',
    httpsProxy: httpsProxy ?? '',
    noProxy: [named('NO_PROXY') ?? '', ...LOCAL].join(','),
  });
}

type Attempts = {
  readonly options: HttpOptions;
  readonly limits: TimeLimits;
  readonly maxBodyBytes: number;
  readonly clock: Clock;
  readonly transport: Transport;
};

/** One attempt of a call, its report, and the credentials in its headers. */
function attempts({ options, limits, maxBodyBytes, clock, transport }: Attempts) {
  function noteCredentials(headers: Readonly<Record<string, string>>): void {
    if (options.onCredential === undefined) return;
    for (const [name, value] of Object.entries(headers))
      if (CREDENTIAL_HEADERS.has(name.toLowerCase())) options.onCredential(value.replace(/^(Bearer|Basic)\s+/i, ''));
  }

  return async function attempt(call: HttpCall, number: number, total: AbortSignal): Promise<HttpAnswer> {
    const place = placeOf(call);
    const started = clock.monotonic();
    const report = (status: number | undefined, error?: string): void => {
      const seen: CallReport = {
        service: call.service,
        method: call.method,
        route: call.route,
        status,
        durationMs: clock.monotonic() - started,
        attempt: number,
        ...(error === undefined ? {} : { error }),
      };
      try {
        options.onCall?.(seen);
      } catch {
        // Telemetry never breaks a call.
      }
    };
    noteCredentials(call.headers ?? {});
    const signal = call.signal === undefined ? total : AbortSignal.any([call.signal, total]);
    let status: number | undefined;
    let sent = false;
    const checkSend = (): void => {
      const refusal = call.checkSend?.() ?? null;
      if (refusal !== null) throw new NotSent(place, refusal);
      sent = true;
    };
    try {
      const answer = await transport({
        url: call.url,
        fresh: !isIdempotent(call),
        limits,
        method: call.method,
        signal,
        headers: {
          accept: 'application/json',
          'user-agent': options.userAgent ?? 'kronos',
          ...bodyType(call),
          ...options.injectHeaders?.(),
          ...call.headers,
        },
        body: bodyOf(call),
        checkSend: call.checkSend === undefined ? undefined : checkSend,
      });
      status = answer.statusCode;
      const headers = flatten(answer.headers);
      noteCredentials(headers);
      const text = await answer.body.text();
      report(status);
      return { status, headers, text };
    } catch (cause) {
      if (call.signal?.aborted) {
        report(status, 'ABORTED');
        throw call.signal.reason;
      }
      const known = call.checkSend === undefined ? null : sent;
      const circumstances = { limits, maxBodyBytes, totalPassed: total.aborted, sent: known };
      const error = cause instanceof NotSent ? cause : explain(place, cause, circumstances);
      report(status, error.code);
      throw error;
    }
  };
}

/** The result of an attempt that another attempt may cure: a status, or no answer. */
type Tried =
  | { readonly answer: HttpAnswer; readonly failure?: undefined }
  | { readonly answer?: undefined; readonly failure: Unreachable | Timeout };

/** The result of a call that ends with this attempt. */
function resultOf({ answer, failure }: Tried): HttpAnswer {
  if (answer !== undefined) return answer;
  throw failure;
}

/** Why another attempt is made. */
const reasonOf = ({ answer, failure }: Tried): string =>
  failure === undefined ? `it answered ${answer.status}` : failure.message;

/** Counts the attempts of one call: the wait before the next one, and whether it may still be made. */
function retries(retry: RetryPolicy, random: () => number, clock: Clock) {
  const used = { connection: 0, status: 0 };
  return ({ answer }: Tried): { readonly wait: number; readonly spent: boolean } => {
    const kind = answer === undefined ? 'connection' : 'status';
    used[kind] += 1;
    const retryAfterMs = answer === undefined ? undefined : parseRetryAfter(answer.headers['retry-after'], clock.now());
    const at = { backoffMs: retry[kind].backoffMs, retry: used[kind], retryAfterMs };
    return { wait: retryDelayMs(retry, at, random()), spent: used[kind] > retry[kind].retries };
  };
}

/** The connections of a client: kept ones, and a fresh one for each call that is sent once. */
function connections(options: HttpOptions, limits: TimeLimits, maxBodyBytes: number) {
  const common = {
    headersTimeout: limits.headersMs,
    bodyTimeout: limits.bodyMs,
    maxResponseSize: maxBodyBytes,
    allowH2: false,
    connect: { ...tlsOf(options.tls ?? {}), timeout: limits.connectMs },
  };
  const env = options.env ?? process.env;
  const pool = agent({ ...common, connections: options.connections ?? 8, pipelining: 1 }, env);
  // No keep-alive: a call that is sent once starts on a fresh connection.
  const once = agent({ ...common, pipelining: 0 }, env);
  const transport: Transport =
    options.transport ??
    (({ url, fresh, checkSend, limits: _, ...rest }) =>
      send(url, {
        dispatcher: fresh ? once : pool,
        ...rest,
        ...(checkSend === undefined ? {} : checkedBody(rest.headers, rest.body, checkSend)),
      }));
  return {
    transport,
    async close(): Promise<void> {
      await Promise.all([pool.destroy(), once.destroy()]);
    },
  };
}

/** A client over undici, with connections of its own. @throws BadHttpOptions when a file of `tls` cannot be read */
export function createHttp(options: HttpOptions): Http {
  const limits = timeLimits(options.limits);
  const retry = retryPolicy(options.retry);
  const { clock = systemClock, maxBodyBytes = 64 * 1024 * 1024, random = Math.random } = options;
  const { transport, close } = connections(options, limits, maxBodyBytes);
  const attempt = attempts({ options, limits, maxBodyBytes, clock, transport });
  let closed = false;

  async function tryOnce(call: HttpCall, number: number, total: AbortSignal): Promise<Tried> {
    try {
      return { answer: await attempt(call, number, total) };
    } catch (error) {
      if (!(error instanceof Unreachable || error instanceof Timeout) || total.aborted || closed) throw error;
      return { failure: error };
    }
  }

  /** Waits; false when the time of the call ended first. @throws the reason of the caller's own signal */
  async function waited(call: HttpCall, ms: number, total: AbortSignal): Promise<boolean> {
    await clock.sleep(ms, total, ...(call.signal === undefined ? [] : [call.signal]));
    call.signal?.throwIfAborted();
    return !total.aborted;
  }

  return {
    async call(call) {
      call.signal?.throwIfAborted();
      const place = placeOf(call);
      if (closed) throw new Unreachable(place, 'this client is closed', { maybeSent: false });
      const total = limit(clock, limits.totalMs);
      const started = clock.monotonic();
      const noted = options.inProgress?.begin(place, call.route, started);
      const next = retries(retry, random, clock);
      try {
        for (let number = 1; ; number += 1) {
          const tried = await tryOnce(call, number, total.signal);
          if (tried.answer !== undefined && !RETRIED_STATUSES.has(tried.answer.status)) return tried.answer;
          noted?.attempt(number + 1, reasonOf(tried));
          const { wait, spent } = next(tried);
          const hopeless = spent || clock.monotonic() - started + wait >= limits.totalMs;
          if (hopeless || !isIdempotent(call) || !(await waited(call, wait, total.signal))) return resultOf(tried);
        }
      } finally {
        noted?.end();
        total.clear();
      }
    },
    async close() {
      closed = true;
      await close();
    },
  };
}

const placeOf = ({ service, method, url }: HttpCall): CallPlace => ({ service, method, url: safeUrl(url) });

/**
 * A body that undici asks for at the moment at which it writes the head of the request, and not before (`writeIterable` in its
 * client-h1.js): when the check throws, no byte is on the connection.
 */
function checkedBody(
  headers: Readonly<Record<string, string>>,
  text: string | null,
  check: () => void,
): { readonly headers: Readonly<Record<string, string>>; readonly body: Readable } {
  const body = {
    *[Symbol.iterator](): Generator<string, void> {
      check();
      if (text !== null) yield text;
    },
  };
  return {
    // Without its length the body would be sent in chunks, which not every WSGI server reads.
    headers: text === null ? headers : { ...headers, 'content-length': String(Buffer.byteLength(text)) },
    // undici takes any iterable of strings; its types name only streams.
    body: body as unknown as Readable,
  };
}

function isIdempotent(call: HttpCall): boolean {
  return call.idempotent ?? call.method === 'GET';
}

function bodyOf(call: HttpCall): string | null {
  if (call.json !== undefined) return JSON.stringify(call.json);
  if (call.form !== undefined) return new URLSearchParams(call.form).toString();
  return null;
}

function bodyType(call: HttpCall): Record<string, string> {
  if (call.json !== undefined) return { 'content-type': 'application/json' };
  if (call.form !== undefined) return { 'content-type': 'application/x-www-form-urlencoded' };
  return {};
}

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

type Circumstances = Pick<Attempts, 'limits' | 'maxBodyBytes'> & {
  readonly totalPassed: boolean;
  /** Whether it was sent; null when nobody looked. */
  readonly sent: boolean | null;
};

function explain(
  place: CallPlace,
  cause: unknown,
  { limits, maxBodyBytes, totalPassed, sent }: Circumstances,
): Unreachable | Timeout | BadAnswer {
  const code = codeOf(cause);
  if (totalPassed) return new Timeout(place, 'total', limits.totalMs, { maybeSent: sent ?? true, cause });
  switch (code) {
    case 'UND_ERR_CONNECT_TIMEOUT':
      return new Timeout(place, 'connect', limits.connectMs, { maybeSent: false, cause });
    case 'UND_ERR_HEADERS_TIMEOUT':
      return new Timeout(place, 'headers', limits.headersMs, { maybeSent: true, cause });
    case 'UND_ERR_BODY_TIMEOUT':
      return new Timeout(place, 'body', limits.bodyMs, { maybeSent: true, cause });
    case 'UND_ERR_RES_EXCEEDED_MAX_SIZE':
      return new BadAnswer(place, `the answer is larger than ${maxBodyBytes} bytes`, undefined, cause);
  }
  const words = cause instanceof Error && cause.message !== '' ? cause.message : code;
  const reason = CERTIFICATE.test(code) ? `${words.replace(NODE_HINT, '')}: ${CERTIFICATE_HINT}` : words;
  const maybeSent = sent ?? !(NOT_SENT.has(code) || whileConnecting(cause));
  return new Unreachable(place, reason, { maybeSent, cause });
}

/** Whether the system refused to resolve the name or to connect. The same codes (EHOSTUNREACH) may come later, too. */
function whileConnecting(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(whileConnecting);
  const syscall = error instanceof Error && 'syscall' in error ? error.syscall : undefined;
  return syscall === 'connect' || syscall === 'getaddrinfo';
}

/** Code of an error of undici or of Node; an AggregateError (several addresses tried) has its first error's. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return 'UNKNOWN';
}

function tlsOf(tls: TlsOptions): { ca?: string; cert?: string; key?: string; rejectUnauthorized?: boolean } {
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    throw new BadHttpOptions('certFile, keyFile', 'a client certificate and its key are given together or not at all');
  }
  return {
    ...(tls.caFile === undefined ? {} : { ca: readPem('caFile', tls.caFile) }),
    ...(tls.certFile === undefined ? {} : { cert: readPem('certFile', tls.certFile) }),
    ...(tls.keyFile === undefined ? {} : { key: readPem('keyFile', tls.keyFile) }),
    ...(tls.insecure === true ? { rejectUnauthorized: false } : {}),
  };
}

function readPem(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new BadHttpOptions(option, `cannot read ${path}; give the path of a readable PEM file`, cause);
  }
}
