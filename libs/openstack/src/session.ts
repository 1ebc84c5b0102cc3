import { type Clock, systemClock } from '@kronos/clock';
import type { CallPlace, Http, HttpAnswer, HttpCall } from '@kronos/http';
import { createHttp, type HttpOptions, safeUrl } from '@kronos/http';
import { type AuthOptions, authRequest, identityOf, keystoneUrl } from './auth.ts';
import { type Catalog, chooseEndpoint } from './catalog.ts';
import { HttpError, Timeout, Unauthorized, Unreachable } from './errors.ts';
import { faultText, httpError, requestIdOf } from './fault.ts';
import { type IssuedToken, requestToken } from './token.ts';

export interface SessionOptions extends Omit<HttpOptions, 'tls'> {
  readonly auth: AuthOptions;
  /** A token is renewed this long before it expires, at most half its life (default 300,000). */
  readonly renewMarginMs?: number;
}

/** One authenticated call to a service's endpoint. */
export interface ServiceCall {
  /** Name for messages and metrics, e.g. `nova`. */
  readonly service: string;
  readonly method: HttpCall['method'];
  readonly url: string;
  readonly route: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** See HttpCall.idempotent. */
  readonly idempotent?: boolean;
  /** See HttpCall.checkSend. */
  readonly checkSend?: (() => string | null) | undefined;
  /** Statuses that are returned; any other is thrown as an HttpError. */
  readonly expect: readonly number[];
  readonly signal?: AbortSignal | undefined;
}

/** A user of the cloud: its token, its catalog, its connections. */
export interface Session {
  /** A valid token, from memory or from Keystone; concurrent callers share one request. */
  token(signal?: AbortSignal): Promise<string>;
  /** A service has refused this token: the next call asks Keystone for another one. */
  refused(token: string): void;
  /** Endpoint of a service type, from `endpointOverrides` or the catalog, without trailing slash. @throws EndpointNotFound */
  endpoint(serviceType: string, signal?: AbortSignal): Promise<string>;
  /**
   * Sends a call with the token. After a 401 the token is renewed once and the call sent again (a 401 means that the
   * service did nothing). @throws HttpError, Unauthorized, Unreachable, Timeout, BadAnswer.
   */
  call(call: ServiceCall): Promise<HttpAnswer>;
  /** The user, for messages; without secrets. */
  readonly identity: { readonly authUrl: string; readonly user: string };
  /** The clock of its calls. */
  readonly clock: Clock;
  close(): Promise<void>;
}

interface Token {
  readonly id: string;
  readonly catalog: Catalog;
  /** Monotonic, in milliseconds. */
  readonly renewAt: number;
  readonly expiresAt: number;
}

/** While Keystone does not answer, a valid token stays in use and the renewal is retried after this time. */
const RENEW_AGAIN_MS = 10_000;

/** Keeps a token, and renews it before it expires; concurrent callers share one request. */
class TokenCache {
  readonly #issue: () => Promise<IssuedToken>;
  readonly #clock: Clock;
  readonly #renewMarginMs: number;
  #current: Token | undefined;
  #renewal: Promise<Token> | undefined;

  constructor(issue: () => Promise<IssuedToken>, clock: Clock, renewMarginMs: number) {
    this.#issue = issue;
    this.#clock = clock;
    this.#renewMarginMs = renewMarginMs;
  }

  async valid(signal: AbortSignal | undefined): Promise<Token> {
    signal?.throwIfAborted();
    if (this.#current !== undefined && this.#clock.monotonic() < this.#current.renewAt) return this.#current;
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined;
    });
    return unlessAborted(this.#renewal, signal);
  }

  forget(id: string): void {
    if (this.#current?.id === id) this.#current = undefined;
  }

  async #renew(): Promise<Token> {
    try {
      const { id, body, lifeMs } = await this.#issue();
      const at = this.#clock.monotonic();
      const renewAt = at + lifeMs - Math.min(this.#renewMarginMs, lifeMs / 2);
      this.#current = { id, catalog: body.catalog, renewAt, expiresAt: at + lifeMs };
    } catch (error) {
      const kept = this.#current;
      const passing =
        error instanceof Unreachable || error instanceof Timeout || (error instanceof HttpError && error.status >= 500);
      if (kept === undefined || this.#clock.monotonic() >= kept.expiresAt || !passing) throw error;
      this.#current = { ...kept, renewAt: Math.min(kept.expiresAt, this.#clock.monotonic() + RENEW_AGAIN_MS) };
    }
    return this.#current;
  }
}

/** A session with Keystone: it gets tokens, renews them and finds the endpoints of services. @throws BadAuthOptions */
export function createSession(options: SessionOptions): Session {
  const { auth, renewMarginMs = 300_000 } = options;
  const authUrl = keystoneUrl(auth.authUrl);
  const request = authRequest(auth);
  const identity = { authUrl: safeUrl(authUrl), user: identityOf(auth) };
  const http: Http = createHttp({ ...options, ...(auth.tls === undefined ? {} : { tls: auth.tls }) });
  const { clock = systemClock } = options;
  const tokens = new TokenCache(
    () => requestToken(http, { authUrl, request, who: identity.user }, () => clock.now()),
    clock,
    renewMarginMs,
  );

  return {
    identity,
    clock,
    async token(signal) {
      return (await tokens.valid(signal)).id;
    },
    refused: (token) => tokens.forget(token),
    async endpoint(serviceType, signal) {
      const override = auth.endpointOverrides?.[serviceType];
      if (override !== undefined) return override.replace(/\/+$/, '');
      const { catalog } = await tokens.valid(signal);
      return chooseEndpoint(catalog, serviceType, auth.validInterfaces, auth.regionName);
    },
    async call(call) {
      const place: CallPlace = { service: call.service, method: call.method, url: safeUrl(call.url) };
      for (let again = false; ; again = true) {
        const token = await tokens.valid(call.signal);
        const { expect, ...rest } = call;
        const answer = await http.call({ ...rest, headers: { ...call.headers, 'x-auth-token': token.id } });
        if (expect.includes(answer.status)) return answer;
        if (answer.status !== 401) throw httpError(place, answer, clock.now());
        if (again) {
          const reason = `a new token was refused for ${call.method} ${place.url}: ${faultText(answer.text)}`;
          throw new Unauthorized(call.service, identity, reason, requestIdOf(answer));
        }
        tokens.forget(token.id);
      }
    },
    close: () => http.close(),
  };
}

/** The promise's value, or the signal's reason when it aborts first; the work itself goes on for the others who wait. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
